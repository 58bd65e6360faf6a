//! A round: datagrams in, one write batch out.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;

use kymo_base::name::DisplayName;
use kymo_store::{Refusal, Store};
use kymo_sys::clock::{Clock, RealClock};
use kymo_sys::datagrams::Datagrams;
use kymo_wire::collectd::{
    Admission, Bad, Cdtime, Datagram, Item, Protection, ReplayWindow, Section, Users, Values,
    put_update,
};

use super::accounts::{Accounts, Counts};
use super::define::{self, Budget, Definitions};
use super::index::{Index, Standing};
use super::notifications::Notifications;
use super::{CollectdSettings, UsersInForce};
use crate::log::{Log, Severity};

/// Values of a clock that is further ahead are not taken: one would keep its series from all that follow until then.
const AHEAD_MAX_S: u64 = 300;

/// How long a series that could not be made stays so: then the next value tries again.
const RETRY_MS: u64 = 60_000;

/// What the sockets of a listener share.
pub(super) struct Registry {
    settings: CollectdSettings,
    index: Index,
    definitions: Definitions,
    budget: Budget,
    replays: ReplayWindow,
}

impl Registry {
    /// Without any series.
    pub(super) fn new(settings: CollectdSettings) -> Registry {
        Registry {
            settings,
            index: Index::default(),
            definitions: Definitions::default(),
            budget: Budget::default(),
            replays: ReplayWindow::default(),
        }
    }
}

/// What comes by one socket.
pub(super) struct Intake {
    name: String,
    accounts: Accounts,
    notifications: Notifications,
    /// The kernel's count of dropped datagrams so far.
    dropped: u32,
    texts: Vec<u8>,
    updates: Vec<Update>,
}

/// Values for a series.
struct Update {
    series: u32,
    /// In `texts`.
    text: Range<usize>,
    count: u64,
    sender: IpAddr,
}

impl Intake {
    /// Of the socket of that name, of which `dropped` was reported before.
    pub(super) fn new(name: String, dropped: u32) -> Intake {
        Intake {
            name,
            accounts: Accounts::default(),
            notifications: Notifications::default(),
            dropped,
            texts: Vec::new(),
            updates: Vec::new(),
        }
    }

    /// What the kernel has dropped so far, modulo 2^32, as far as is known.
    pub(super) fn dropped(&self) -> u32 {
        self.dropped
    }

    /// Whether there is something to tell of.
    pub(super) fn has_trouble(&self) -> bool {
        self.accounts.has_trouble()
    }

    /// Tells what was lost, damaged or refused since the last time.
    pub(super) fn tell(&mut self, log: &Log) {
        if let Some(news) = self.accounts.take_news() {
            let line = format!("collectd on {}: {news}", self.name);
            log(Severity::Warning, &line);
        }
    }

    /// Whether notifications came that no line speaks of.
    pub(super) fn has_notifications(&self) -> bool {
        !self.notifications.is_empty()
    }

    /// Passes on the last notification, and how many came.
    pub(super) fn notify(&mut self, log: &Log) {
        if let Some(news) = self.notifications.take() {
            let line = format!("collectd on {}: {news}", self.name);
            log(Severity::Notice, &line);
        }
    }

    /// Takes what has come and stores it; how many datagrams.
    pub(super) fn round(
        &mut self,
        registry: &mut Registry,
        datagrams: &mut Datagrams,
        socket: &impl AsFd,
        store: &Store,
    ) -> io::Result<usize> {
        let count = datagrams.receive(socket)?;
        if count == 0 {
            return Ok(0);
        }
        if let Some(dropped) = datagrams.dropped() {
            self.accounts.all.lost += u64::from(dropped.wrapping_sub(self.dropped));
            self.dropped = dropped;
        }
        let stamp = RealClock.now();
        let users = registry.settings.users.as_ref();
        let mut round = Round {
            users: users.map(UsersInForce::get),
            registry,
            seconds: u64::try_from(stamp.real_ns / 1_000_000_000).unwrap_or(0),
            mono_ms: stamp.mono_ns / 1_000_000,
            store,
        };
        for datagram in datagrams.iter_mut() {
            let sender = plain(datagram.sender);
            self.accounts.count(sender, |counts| counts.datagrams += 1);
            let allow = &round.registry.settings.allow;
            if !allow.is_empty() && !allow.iter().any(|prefix| prefix.holds(sender)) {
                self.accounts.count(sender, |counts| counts.foreign += 1);
                continue;
            }
            if datagram.truncated {
                self.accounts.count(sender, |counts| counts.bad += 1);
                continue;
            }
            self.datagram(&mut round, datagram.bytes, sender);
        }
        self.store_all(&mut round);
        Ok(count)
    }

    fn datagram(&mut self, round: &mut Round, bytes: &mut [u8], sender: IpAddr) {
        // Kept alive beside the round, which the values of a section change.
        let (level, users) = (round.registry.settings.level, round.users.clone());
        for section in Datagram::new(bytes, level, users.as_deref()) {
            let section = match section {
                Ok(section) => section,
                Err(bad) => return self.count_bad(sender, bad),
            };
            if round.is_replayed(&section) {
                self.accounts.count(sender, |counts| counts.replayed += 1);
                continue;
            }
            let mut parts = section.parts();
            while let Some(item) = parts.next_item() {
                match item {
                    Ok(Item::Values(values)) => {
                        self.values(round, &values, sender);
                    }
                    Ok(Item::Notification(notification)) => {
                        self.notifications.add(&notification);
                        self.accounts
                            .count(sender, |counts| counts.notifications += 1);
                    }
                    Ok(Item::Dropped(_)) => {
                        self.accounts.count(sender, |counts| counts.unfit += 1);
                    }
                    Err(bad) => self.count_bad(sender, bad),
                }
            }
        }
    }

    fn count_bad(&mut self, sender: IpAddr, bad: Bad) {
        self.accounts.last_bad = Some(bad);
        self.accounts.count(sender, |counts| counts.bad += 1);
    }

    fn values(&mut self, round: &mut Round, values: &Values, sender: IpAddr) {
        let count = values.values.len() as u64;
        if values.time.seconds() > round.seconds + AHEAD_MAX_S {
            return self.accounts.count(sender, |counts| counts.future += count);
        }
        let known = round.registry.index.find(values.identifier);
        let series = known.or_else(|| round.add(values, sender));
        let series = series.filter(|&series| self.is_defined(round, series, values, sender));
        let Some(series) = series else {
            let refuse = |counts: &mut Counts| counts.refused += count;
            return self.accounts.count(sender, refuse);
        };
        let entry = round.registry.index.get(series);
        if entry.is_none_or(|entry| *entry.codes != *values.values.codes()) {
            let mismatch = |counts: &mut Counts| counts.mismatched += count;
            return self.accounts.count(sender, mismatch);
        }
        let from = self.texts.len();
        put_update(&mut self.texts, values.time, values.values.iter());
        self.updates.push(Update {
            series,
            text: from..self.texts.len(),
            count,
            sender,
        });
    }

    /// Whether the store has a series; one that it has not is made, or found again on the disk.
    fn is_defined(
        &mut self,
        round: &mut Round,
        series: u32,
        values: &Values,
        sender: IpAddr,
    ) -> bool {
        let Registry {
            settings,
            index,
            definitions,
            ..
        } = &mut *round.registry;
        let Some(entry) = index.get_mut(series) else {
            return false;
        };
        match entry.standing {
            Standing::Defined => return true,
            Standing::Refused { since_ms } if round.mono_ms - since_ms < RETRY_MS => return false,
            Standing::Refused { .. } | Standing::Undefined => {}
        }
        let interval = match values.interval {
            Cdtime::ZERO => settings.interval,
            interval => interval,
        };
        let header = definitions.header(values, interval, &settings.types, &settings.rrd);
        match define::make(round.store, &entry.path, header) {
            Ok(is_new) => {
                entry.standing = Standing::Defined;
                let made = u64::from(is_new);
                self.accounts.count(sender, |counts| counts.new += made);
                true
            }
            Err(error) => {
                entry.standing = Standing::Refused {
                    since_ms: round.mono_ms,
                };
                let path = DisplayName(&entry.path);
                self.accounts.last_refusal = Some(format!("cannot make {path}: {error}"));
                false
            }
        }
    }

    /// One write of the journal for all.
    fn store_all(&mut self, round: &mut Round) {
        let updates = std::mem::take(&mut self.updates);
        let untouched = self.store_some(&updates, round);
        // Their series went: nothing was sent for a long time, or the file was removed.
        let mut again = Vec::new();
        for update in untouched {
            let Some(entry) = round.registry.index.get_mut(update.series) else {
                continue;
            };
            if round.store.touch(&entry.path).is_ok() {
                again.push(update);
                continue;
            }
            // The next value makes it again.
            entry.standing = Standing::Undefined;
            self.accounts
                .count(update.sender, |counts| counts.refused += update.count);
        }
        if !again.is_empty() {
            self.store_some(again, round);
        }
        self.texts.clear();
        self.updates = updates;
        self.updates.clear();
    }

    /// Those whose series the store does not know.
    fn store_some<'u>(
        &mut self,
        updates: impl IntoIterator<Item = &'u Update>,
        round: &Round,
    ) -> Vec<&'u Update> {
        let mut untouched = Vec::new();
        let mut taken = Vec::new();
        let mut batch = round.store.write_batch();
        for update in updates {
            let Some(entry) = round.registry.index.get(update.series) else {
                continue;
            };
            let text = &self.texts[update.text.clone()];
            match batch.update(&entry.path, [text]) {
                Ok(_) => taken.push(update),
                Err(Refusal::Untouched) => untouched.push(update),
                Err(Refusal::Past { .. }) => {
                    self.accounts
                        .count(update.sender, |counts| counts.late += update.count);
                }
                Err(Refusal::NoStamp { .. } | Refusal::NoValues) => {
                    self.accounts
                        .count(update.sender, |counts| counts.unfit += update.count);
                }
            }
        }
        let written = batch.commit();
        for update in taken {
            self.accounts.count(update.sender, |counts| match &written {
                Ok(_) => counts.values += update.count,
                Err(_) => counts.unwritten += update.count,
            });
        }
        if let Err(error) = written {
            self.accounts.last_failure = Some(format!("cannot write journal: {error}"));
        }
        untouched
    }
}

/// What all datagrams of a round are taken with: one look at the clocks is enough.
struct Round<'a> {
    registry: &'a mut Registry,
    /// Who may sign and encrypt; `None`: there is no AuthFile.
    users: Option<Arc<Users>>,
    /// Since 1970.
    seconds: u64,
    mono_ms: u64,
    store: &'a Store,
}

impl Round<'_> {
    /// A series whose name is new, if its sender may have one more.
    fn add(&mut self, values: &Values, sender: IpAddr) -> Option<u32> {
        let Registry { index, budget, .. } = &mut *self.registry;
        let seconds = self.mono_ms as f64 / 1000.0;
        if !budget.takes(sender, index.len(), seconds) {
            return None;
        }
        index.add(values.identifier, values.values.codes()).ok()
    }

    fn is_replayed(&mut self, section: &Section) -> bool {
        match section.protection {
            Protection::Plain => false,
            Protection::Signed(proof) | Protection::Encrypted(proof) => {
                let replays = &mut self.registry.replays;
                let admitted = replays.admit(proof.user, proof.unique, self.mono_ms);
                admitted == Admission::Replayed
            }
        }
    }
}

/// An IPv4 address by way of IPv6 is an IPv4 address.
fn plain(sender: SocketAddr) -> IpAddr {
    sender.ip().to_canonical()
}
