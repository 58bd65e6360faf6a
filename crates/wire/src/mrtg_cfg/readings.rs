//! Makes readings of the parts of targets' texts. Equal texts, devices and OIDs are kept once.

use super::files::Files;
use super::lines::is_space;
use super::numbered::Numbered;
use super::oids::Oids;
use super::perl::{number, whole};
use super::reading::{
    Index, Magic, ObjectRequest, OidRange, Reading, ReferenceKind, SnmpReading, Source,
};
use super::secret::Secret;
use super::session::{Access, Host, Session};
use super::snmp_options::SnmpOptions;
use super::target_text::{Device, Ref, Spec, TargetMatch, Turned};
use super::text::{Text, Texts, narrow, wide};

/// Parameters of a target's new readings. As in MRTG, those of the first target with a text count.
pub(super) struct Manner<'m> {
    pub(super) ipv4_only: bool,
    pub(super) no_hc: bool,
    pub(super) has_v3: bool,
    pub(super) snmp_options: &'m SnmpOptions,
    /// Number of the options; equal options have equal numbers.
    pub(super) options_number: u32,
}

impl Manner<'_> {
    /// Names of the default counters of an interface.
    pub(super) fn octets(&self, device_options: &[u8]) -> [&'static [u8]; 2] {
        match speaks_v2(device_options) && !self.no_hc {
            true => [b"ifHCInOctets", b"ifHCOutOctets"],
            false => [b"ifInOctets", b"ifOutOctets"],
        }
    }
}

/// A configuration's readings.
pub(super) struct Readings {
    pub(super) all: Vec<Reading>,
    pub(super) sessions: Vec<Session>,
    pub(super) oids: Oids,
    numbered: Numbered,
    sessions_numbered: Numbered,
    /// [`Manner::options_number`] of each session.
    options_of: Vec<u32>,
    key: Vec<u8>,
}

/// Number of a reading, which is new or has the text of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Seen {
    Before(u32),
    New(u32),
}

impl Seen {
    pub(super) fn number(self) -> u32 {
        let (Seen::Before(number) | Seen::New(number)) = self;
        number
    }
}

impl Readings {
    pub(super) fn new(oids: Oids) -> Readings {
        Readings {
            all: Vec::new(),
            sessions: Vec::new(),
            oids,
            numbered: Numbered::default(),
            sessions_numbered: Numbered::default(),
            options_of: Vec::new(),
            key: Vec::new(),
        }
    }

    /// The reading of a text. `keep` stores the text if the reading is new. The error is a message without secrets.
    pub(super) fn reading(
        &mut self,
        text: &[u8],
        what: &TargetMatch,
        manner: &Manner,
        texts: &mut Texts,
        files: &mut dyn Files,
        keep: impl FnOnce(&mut Texts) -> Text,
    ) -> Result<Seen, String> {
        let is_it = |number: u32| *texts.get(self.all[wide(number)].text) == *text;
        let slot = match self.numbered.find(text, is_it) {
            Ok(number) => return Ok(Seen::Before(number)),
            Err(slot) => slot,
        };
        let source = match what {
            TargetMatch::Command(command) => Source::Command(texts.make(&unescaped(command, b"`"))),
            TargetMatch::Pair(specs, device) => {
                let objects = [
                    self.object_request(&specs[0], texts, files)?,
                    self.object_request(&specs[1], texts, files)?,
                ];
                self.snmp(objects, false, device, manner)?
            }
            TargetMatch::Interface(turned, of, device) => {
                let mut oids = manner.octets(device.options);
                if *turned == Turned::Yes {
                    oids.reverse();
                }
                let index = index(Some(*of), texts)?;
                let mut objects = [no_oid(index); 2];
                for (object, oid) in objects.iter_mut().zip(oids) {
                    object.oid = self.oids.resolve(oid, files)?.oid;
                }
                self.snmp(objects, true, device, manner)?
            }
            TargetMatch::Neither => unreachable!("BUG: nothing to read"),
        };
        let number = narrow(self.all.len());
        self.numbered.insert(slot, number);
        let text = keep(texts);
        self.all.push(Reading { text, source });
        Ok(Seen::New(number))
    }

    /// Removes the readings from `from` on, which a refused target has made.
    pub(super) fn truncate(&mut self, from: usize) {
        if from < self.all.len() {
            self.all.truncate(from);
            self.numbered.truncate(narrow(from));
        }
    }

    fn object_request(
        &mut self,
        spec: &Spec,
        texts: &mut Texts,
        files: &mut dyn Files,
    ) -> Result<ObjectRequest, String> {
        let resolved = self.oids.resolve(spec.oid, files)?;
        let index = index(spec.of, texts)?;
        let is_pseudo = matches!(resolved.magic, Magic::PseudoZero | Magic::PseudoOne);
        match (&index, resolved.index_position) {
            (Index::None, Some(_)) => return Err("IndexPOS needs an interface".into()),
            (Index::None, _) => {}
            _ if is_pseudo => return Err("PseudoZero and PseudoOne have no index".into()),
            _ => {}
        }
        Ok(ObjectRequest {
            magic: resolved.magic,
            oid: resolved.oid,
            index,
            index_position: resolved.index_position,
        })
    }

    fn snmp(
        &mut self,
        objects: [ObjectRequest; 2],
        is_interface: bool,
        device: &Device,
        manner: &Manner,
    ) -> Result<Source, String> {
        if device.conversion.is_some() {
            return Err("its conversion is Perl, which is not run here".into());
        }
        let session = self.session(device, manner)?;
        Ok(Source::Snmp(SnmpReading {
            session,
            objects,
            is_interface,
        }))
    }

    /// The session of a device, which is new or an earlier one.
    pub(super) fn session(&mut self, device: &Device, manner: &Manner) -> Result<u32, String> {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        key.extend(unescaped(device.community, b"@ "));
        key.push(b'@');
        key.extend_from_slice(device.host);
        key.extend_from_slice(device.options);
        let is_it = |number: u32| {
            let known = &self.sessions[wide(number)];
            known.mrtg_key.reveal() == key
                && known.ipv4_only == manner.ipv4_only
                && self.options_of[wide(number)] == manner.options_number
        };
        let number = match self.sessions_numbered.find(&key, is_it) {
            Ok(number) => number,
            Err(slot) => {
                let number = narrow(self.sessions.len());
                self.sessions
                    .push(session(device, manner, Secret::new(&key))?);
                self.options_of.push(manner.options_number);
                self.sessions_numbered.insert(slot, number);
                number
            }
        };
        self.key = key;
        Ok(number)
    }
}

fn no_oid(index: Index) -> ObjectRequest {
    ObjectRequest {
        magic: Magic::Get,
        oid: OidRange { start: 0, len: 0 },
        index,
        index_position: None,
    }
}

/// Removes backslashes before `escapable` bytes.
pub(super) fn unescaped(text: &[u8], escapable: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match after.first() {
            Some(next) if *first == b'\\' && escapable.contains(next) => {
                out.push(*next);
                rest = &after[1..];
            }
            _ => out.push(*first),
        }
    }
    out
}

/// Matches `(?::[^:]*){4}:[32][Cc]?` anywhere: the fifth field or a later one begins with 2 or 3.
fn speaks_v2(options: &[u8]) -> bool {
    let fields = options.split(|byte| *byte == b':').skip(5);
    fields
        .into_iter()
        .any(|field| matches!(field.first(), Some(b'2' | b'3')))
}

fn index(of: Option<Ref>, texts: &mut Texts) -> Result<Index, String> {
    let kind = match of {
        None => return Ok(Index::None),
        Some(Ref::Number(digits)) => {
            let digits = String::from_utf8_lossy(digits);
            let number = digits.parse();
            let number = number.map_err(|_| "no interface has such a number")?;
            return Ok(Index::Number(number));
        }
        Some(Ref::Ip(_)) => ReferenceKind::Ip,
        Some(Ref::Descr(_)) => ReferenceKind::Descr,
        Some(Ref::Name(_)) => ReferenceKind::Name,
        Some(Ref::Eth(_)) => ReferenceKind::Eth,
        Some(Ref::Type(_)) => ReferenceKind::Type,
    };
    let key = of.map_or(Vec::new(), key);
    Ok(Index::Reference(kind, texts.make(&key)))
}

/// The key of an interface as MRTG compares it.
pub(super) fn key(of: Ref) -> Vec<u8> {
    let mut key = match of {
        Ref::Number(text) | Ref::Ip(text) | Ref::Type(text) => text.to_vec(),
        Ref::Descr(text) | Ref::Name(text) => unescaped(text, b" \t\n\r\x0b\x0c:&@"),
        Ref::Eth(text) => mac(text),
    };
    // Blanks and control characters at the end are removed.
    let end = key.iter().rposition(|byte| *byte > b' ');
    key.truncate(end.map_or(0, |end| end + 1));
    key
}

/// A physical address with at least two digits per byte.
fn mac(text: &[u8]) -> Vec<u8> {
    let parts = text.split(|byte| *byte == b'-').map(|part| {
        let part = part.to_ascii_lowercase();
        let zeros = part.iter().take_while(|digit| **digit == b'0').count();
        let significant = String::from_utf8_lossy(&part[zeros..]).into_owned();
        format!("{significant:0>2}")
    });
    parts.collect::<Vec<_>>().join("-").into_bytes()
}

fn session(device: &Device, manner: &Manner, mrtg_key: Secret) -> Result<Session, String> {
    let mut fields = device.options.split(|byte| *byte == b':').skip(1);
    let mut field = || fields.next().filter(|field| !field.is_empty());
    let (place, timeout, attempts, backoff, version) =
        (field(), field(), field(), field(), field());
    let mut parts = place.unwrap_or_default().splitn(2, |byte| *byte == b'!');
    let port = parts.next().filter(|port| !port.is_empty());
    let local = parts.next().unwrap_or_default();
    let (local_host, local_port) = match local.iter().rposition(|byte| *byte == b'!') {
        Some(mark) => (&local[..mark], &local[mark + 1..]),
        None => (local, &b""[..]),
    };
    let port_of = |text: &[u8]| -> Result<u16, String> {
        let text = String::from_utf8_lossy(text);
        text.parse()
            .map_err(|_| "a port is a number up to 65535".into())
    };
    let options = manner.snmp_options;
    let access = match version {
        Some(b"2") => Access::V2c,
        Some(b"3") if manner.has_v3 => Access::V3(options.user.user()?.into()),
        _ => Access::V1,
    };
    // MRTG uses Net::SNMP if EnableSnmpV3 is set; Net::SNMP has other defaults.
    let (timeout_default, attempts_default) = match manner.has_v3 {
        true => (5.0, 2.0),
        false => (2.0, 5.0),
    };
    let chosen = |own: Option<&[u8]>, option: Option<f64>, default: f64| {
        own.map(number).or(option).unwrap_or(default)
    };
    let timeout_s = chosen(timeout, options.timeout_s, timeout_default);
    let attempts = chosen(attempts, options.attempts, attempts_default);
    let backoff = chosen(backoff, options.backoff, 1.0);
    check_patience(timeout_s, attempts, backoff)?;
    Ok(Session {
        host: host(device.host),
        port: port.map_or(Ok(161), port_of)?,
        local_host: (!local_host.is_empty()).then(|| String::from_utf8_lossy(local_host).into()),
        local_port: match local_port {
            b"" => None,
            text => Some(port_of(text)?),
        },
        community: Secret::new(&unescaped(device.community, b"@ ")),
        access,
        timeout_s,
        attempts: count(attempts),
        backoff,
        max_repetitions: count(options.max_repetitions.unwrap_or(12.0)),
        use_getbulk: options.use_getbulk.unwrap_or(true),
        use_16bit_ids: options.use_16bit_ids.unwrap_or(false),
        lenient_address: options.lenient_address.unwrap_or(true),
        lenient_port: options.lenient_port.unwrap_or(true),
        oid_by_place: options.oid_by_place.unwrap_or(false),
        ipv4_only: manner.ipv4_only,
        mrtg_key,
    })
}

/// Refuses values at which MRTG's library dies.
fn check_patience(timeout_s: f64, attempts: f64, backoff: f64) -> Result<(), String> {
    if timeout_s.is_nan() || timeout_s <= 0.0 {
        return Err(format!(
            "a timeout of {timeout_s} s: it must be a positive number"
        ));
    }
    if attempts.fract() != 0.0 || attempts < 0.0 {
        return Err(format!("{attempts} retries: it must be a whole number"));
    }
    if backoff.fract() != 0.0 || backoff < 1.0 {
        return Err(format!(
            "a backoff of {backoff}: it must be a whole number, 1 or more"
        ));
    }
    Ok(())
}

fn count(number: f64) -> u32 {
    u32::try_from(whole(number)).unwrap_or(u32::MAX).max(1)
}

fn host(text: &[u8]) -> Host {
    let text = String::from_utf8_lossy(text);
    match text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
    {
        Some(address) => Host::V6(address.parse().ok()),
        None => Host::Name(text.into()),
    }
}

/// Bytes of the longest run without a blank.
pub(super) fn longest_run(text: &[u8]) -> usize {
    let runs = text.split(|byte| is_space(*byte)).map(<[u8]>::len);
    runs.max().unwrap_or(0)
}
