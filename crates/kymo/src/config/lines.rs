//! Keys of listeners for lines: their addresses in `[listen]` and their tables. Both come from the listeners' declarations, so that
//! a new listener changes nothing here.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;

use kymo_ingest::line_listeners::{self, LineListener, LineSettings};
use serde::de::{DeserializeSeed, Error as _, IntoDeserializer as _, MapAccess, Visitor};
use serde::{Deserialize as _, Deserializer};

use super::File;

/// Addresses of a listener; `None`: it does not listen.
pub(crate) type LineAddresses = Option<Vec<SocketAddr>>;

/// A value that each listener has, in the order of [`line_listeners::ALL`].
pub(super) trait LineValue: Sized {
    /// The value without a key.
    fn default_of(listener: &'static LineListener) -> Self;
    /// Reads the value of the listener's key.
    fn read<'de, D: Deserializer<'de>>(
        listener: &'static LineListener,
        from: D,
    ) -> Result<Self, D::Error>;
}

/// The values of all listeners without any key.
pub(super) fn defaults<T: LineValue>() -> Vec<T> {
    line_listeners::ALL.iter().map(T::default_of).collect()
}

impl LineValue for LineAddresses {
    fn default_of(_: &'static LineListener) -> LineAddresses {
        None
    }

    fn read<'de, D: Deserializer<'de>>(
        _: &'static LineListener,
        from: D,
    ) -> Result<LineAddresses, D::Error> {
        super::addresses(from)
    }
}

impl LineValue for LineSettings {
    fn default_of(listener: &'static LineListener) -> LineSettings {
        listener.defaults()
    }

    fn read<'de, D: Deserializer<'de>>(
        listener: &'static LineListener,
        from: D,
    ) -> Result<LineSettings, D::Error> {
        from.deserialize_map(SettingsVisitor(listener))
    }
}

/// Reads the table of a listener.
struct SettingsVisitor(&'static LineListener);

impl<'de> Visitor<'de> for SettingsVisitor {
    type Value = LineSettings;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LineSettings, A::Error> {
        let mut settings = self.0.defaults();
        while let Some(at) = map.next_key_seed(SettingKey(self.0))? {
            settings.set(at, map.next_value_seed(SettingValue(self.0, at))?);
        }
        Ok(settings)
    }
}

/// Finds the place of a setting's key.
struct SettingKey(&'static LineListener);

impl<'de> DeserializeSeed<'de> for SettingKey {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<usize, D::Error> {
        let key = String::deserialize(from)?;
        let mut settings = self.0.settings.iter();
        let place = settings.position(|setting| setting.name == key);
        place.ok_or_else(|| D::Error::unknown_field(&key, &[]))
    }
}

/// Reads the value of a setting.
struct SettingValue(&'static LineListener, usize);

impl<'de> DeserializeSeed<'de> for SettingValue {
    type Value = u32;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<u32, D::Error> {
        let value = u32::deserialize(from)?;
        match self.0.settings.get(self.1) {
            Some(setting) => setting.check(value).map_err(D::Error::custom),
            None => Ok(value),
        }
    }
}

/// A table whose keys that are named as listeners are read into `values`, while all others are passed on.
pub(super) struct WithoutLines<'a, M, T> {
    /// The table.
    pub map: M,
    /// The values of the listeners.
    pub values: &'a mut [T],
}

impl<'de, M: MapAccess<'de>, T: LineValue> MapAccess<'de> for WithoutLines<'_, M, T> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        mut seed: K,
    ) -> Result<Option<K::Value>, M::Error> {
        loop {
            match self.map.next_key_seed(AnyKey(seed))? {
                None => return Ok(None),
                Some(Key::Other(key)) => return Ok(Some(key)),
                Some(Key::OfListener(at, unused)) => {
                    seed = unused;
                    let value = self.map.next_value_seed(ListenerValue(at, PhantomData))?;
                    if let (Some(place), Some(value)) = (self.values.get_mut(at), value) {
                        *place = value;
                    }
                }
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        self.map.next_value_seed(seed)
    }
}

/// A key of the table: that of a listener, with the reader of other keys, or another.
enum Key<K, V> {
    OfListener(usize, K),
    Other(V),
}

/// Reads a key.
struct AnyKey<K>(K);

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for AnyKey<K> {
    type Value = Key<K, K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        let key = String::deserialize(from)?;
        let mut listeners = line_listeners::ALL.iter();
        match listeners.position(|listener| listener.name == key) {
            Some(at) => Ok(Key::OfListener(at, self.0)),
            None => self.0.deserialize(key.into_deserializer()).map(Key::Other),
        }
    }
}

/// Reads the value of the listener at a place.
struct ListenerValue<T>(usize, PhantomData<T>);

impl<'de, T: LineValue> DeserializeSeed<'de> for ListenerValue<T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<T>, D::Error> {
        match line_listeners::ALL.get(self.0) {
            Some(listener) => T::read(listener, from).map(Some),
            None => Ok(None),
        }
    }
}

/// Writes the keys of addresses.
pub(super) fn addresses_text(file: &mut File, lines: &[LineAddresses]) {
    for (listener, addresses) in line_listeners::ALL.iter().zip(lines) {
        let help = format!(
            "Addresses and ports for {}, by UDP and TCP. Without it: none.\nBeyond loopback it takes `insecure`.",
            listener.takes
        );
        let example = format!("[{}]", super::quoted(listener.example));
        let addresses = super::addresses_text(addresses);
        file.key(listener.name, &help, addresses.ok_or(&*example));
    }
}

/// Writes the tables of listeners that have settings.
pub(super) fn settings_text(file: &mut File, lines: &[LineSettings]) {
    for (listener, settings) in line_listeners::ALL.iter().zip(lines) {
        if !listener.settings.is_empty() {
            file.0.push_str(&format!("\n[{}]\n", listener.name));
        }
        for (setting, value) in listener.settings.iter().zip(settings.values()) {
            file.key(setting.name, setting.help, Ok(value.to_string()));
        }
    }
}
