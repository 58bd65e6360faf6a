//! One device: table after table, one request at a time. The owner of the socket sends each packet, and gives what came
//! back; [`DeviceAsker::packet`] makes another packet of the same request if nothing came.

use kymo_sys::clock::Stamp;
use kymo_wire::mrtg_cfg::{Access, Host, Keyring, Secret, Session, User};
use kymo_wire::snmp::RequestMessage;
use kymo_wire::snmp::usm::UsmReport;

use super::interface_filter::{FoundInterface, InterfaceChoice, InterfaceFilter};
use super::layout::TableLayout;
use super::lldp::put_neighbours;
use super::profile::Profile;
use super::scrape_text::{put_label, put_table};
use super::table_walk::{RowCount, Rows, TableWalk};
use crate::engine::{Envelope, Ids, Opened, Random, Security};

/// Requests that are sent again at once, because the device named their fault.
const AGAIN_MAX: u32 = 4;
/// Bytes of a scrape's text, as of one over HTTP.
const TEXT_MAX: usize = 10 << 20;
/// Time for which samples of an hourly profile are kept.
const KEPT_NS: u64 = 3600 * 1_000_000_000;

/// A way into a device.
#[derive(Clone, Debug)]
pub enum DeviceAccess {
    /// SNMPv1 with a community.
    V1(Secret),
    /// SNMPv2c with a community.
    V2c(Secret),
    /// SNMPv3 as a user.
    V3(User),
}

/// Settings of a device.
#[derive(Clone, Debug)]
pub struct DeviceSetup {
    /// The way in.
    pub access: DeviceAccess,
    /// The profiles, in their order.
    pub profiles: Vec<Profile>,
    /// The interfaces.
    pub interfaces: InterfaceFilter,
    /// Source of request ids.
    pub random: Random,
}

/// Meaning of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerTaken {
    /// Nothing that the device was asked for.
    Stray,
    /// The answer, or what a request lacked: the next packet is due.
    Next,
}

/// A profile that is asked.
struct AskedProfile {
    name: String,
    tables: Vec<TableLayout>,
    counts: AskedCounts,
    /// True if it is asked once an hour, and its tables are those of LLDP.
    is_hourly: bool,
    is_lldp: bool,
    /// Text of an hourly profile in this poll.
    text: String,
    /// Rows of tables of LLDP, which become a metric together.
    rows: Vec<Rows>,
    /// Moment at which an hourly profile was complete, and the text and number of its samples.
    kept: Option<(u64, String, usize)>,
}

impl AskedProfile {
    /// True if the last result still counts.
    fn is_kept(&self, now_ns: u64) -> bool {
        let kept = self.kept.as_ref();
        kept.is_some_and(|(at_ns, ..)| now_ns.saturating_sub(*at_ns) < KEPT_NS)
    }

    /// Ends the profile after its last table.
    fn end(&mut self, now_ns: u64) {
        if self.is_lldp {
            let tables = self.tables.iter().zip(std::mem::take(&mut self.rows));
            self.counts.samples = put_neighbours(&mut self.text, tables);
        }
        if self.is_hourly {
            let text = std::mem::take(&mut self.text);
            self.kept = Some((now_ns, text, self.counts.samples));
        }
    }
}

/// Counts of a poll, by profile.
#[derive(Clone, Copy, Default)]
struct AskedCounts {
    begun_ns: Option<u64>,
    ended_ns: u64,
    sent: u64,
    again: u64,
    varbinds: u64,
    broken: u64,
    samples: usize,
}

/// A request, and the ids under which it was sent.
struct PendingRequest {
    message: RequestMessage,
    ids: Vec<i32>,
    again: u32,
}

/// A device that is asked.
pub struct DeviceAsker {
    session: Session,
    security: Security,
    keyring: Keyring,
    ids: Ids,
    profiles: Vec<AskedProfile>,
    choice: InterfaceChoice,
    /// Numbers of the profile and of the table that are walked.
    at: (usize, usize),
    walk: Option<TableWalk>,
    pending: Option<PendingRequest>,
    text: String,
    packet: Vec<u8>,
    plain: Vec<u8>,
    has_answered: bool,
    refusal: Option<UsmReport>,
    found: Vec<FoundInterface>,
}

impl DeviceAsker {
    /// A device. The error is about a profile or a pattern.
    pub fn new(setup: &DeviceSetup) -> Result<DeviceAsker, String> {
        let session = session(&setup.access);
        let asked = |profile: &Profile| {
            let tables = profile.table.iter().map(TableLayout::new);
            Ok(AskedProfile {
                name: profile.name.clone(),
                tables: tables.collect::<Result<_, String>>()?,
                counts: AskedCounts::default(),
                is_hourly: profile.hourly || profile.lldp,
                is_lldp: profile.lldp,
                text: String::new(),
                rows: Vec::new(),
                kept: None,
            })
        };
        let profiles = setup.profiles.iter().map(asked);
        Ok(DeviceAsker {
            security: Security::new(&session),
            session,
            keyring: Keyring::default(),
            ids: Ids::new(setup.random),
            profiles: profiles.collect::<Result<_, String>>()?,
            choice: InterfaceChoice::new(&setup.interfaces)?,
            at: (0, 0),
            walk: None,
            pending: None,
            text: String::new(),
            packet: Vec::new(),
            plain: Vec::new(),
            has_answered: false,
            refusal: None,
            found: Vec::new(),
        })
    }

    /// Begins a poll.
    pub fn begin(&mut self) {
        self.at = (0, 0);
        self.walk = None;
        self.pending = None;
        self.text.clear();
        self.has_answered = false;
        self.refusal = None;
        self.found.clear();
        for profile in &mut self.profiles {
            profile.counts = AskedCounts::default();
            profile.text.clear();
            profile.rows.clear();
        }
    }

    /// The packet to send now; `None`: the poll is complete. Each call makes a packet with an id of its own; answers to
    /// all packets of the present request count.
    pub fn packet(&mut self, now: Stamp) -> Option<&[u8]> {
        if self.pending.is_none() {
            self.pending = Some(self.next_request(now.mono_ns)?);
        }
        let random = self.ids.number();
        let pending = self.pending.as_mut()?;
        let counts = &mut self.profiles.get_mut(self.at.0)?.counts;
        counts.begun_ns.get_or_insert(now.mono_ns);
        counts.sent += 1;
        counts.again += u64::from(!pending.ids.is_empty());
        let sealed = self
            .security
            .seal(&mut pending.message, random, &mut self.ids, now);
        pending.ids.push(sealed.id);
        self.packet.clear();
        self.packet.extend_from_slice(sealed.bytes);
        Some(&self.packet)
    }

    /// The next request, of the table at hand or of the next one that has any.
    fn next_request(&mut self, now_ns: u64) -> Option<PendingRequest> {
        loop {
            let profile = self.profiles.get_mut(self.at.0)?;
            let is_kept = self.at.1 == 0 && self.walk.is_none() && profile.is_kept(now_ns);
            let layout = profile.tables.get(self.at.1).filter(|_| !is_kept);
            let Some(layout) = layout else {
                if !is_kept {
                    profile.end(now_ns);
                }
                self.at = (self.at.0 + 1, 0);
                continue;
            };
            let has_bulk = self.security.has_bulk(&self.session);
            let count = match layout.index.is_empty() {
                true => RowCount::One,
                false => RowCount::Many,
            };
            let new = || TableWalk::new(&layout.columns, count, has_bulk);
            let walk = self.walk.get_or_insert_with(new);
            if let Some((ask, names)) = walk.request() {
                return Some(PendingRequest {
                    message: self.security.prepare(&self.session, ask, &names),
                    ids: Vec::new(),
                    again: 0,
                });
            }
            self.end_table();
        }
    }

    /// Writes the table that is complete, and goes on to the next one.
    fn end_table(&mut self) {
        let (number, table) = self.at;
        self.at.1 += 1;
        let (Some(walk), Some(profile)) = (self.walk.take(), self.profiles.get_mut(number)) else {
            return;
        };
        profile.counts.broken += u64::from(walk.broken);
        if profile.is_lldp {
            return profile.rows.push(walk.rows);
        }
        let out = match profile.is_hourly {
            true => &mut profile.text,
            false => &mut self.text,
        };
        let before = out.len();
        let samples = put_table(
            out,
            &profile.tables[table],
            &walk.rows,
            &mut self.choice,
            &mut self.found,
        );
        match out.len() > TEXT_MAX {
            true => {
                out.truncate(before);
                profile.counts.broken += 1;
            }
            false => profile.counts.samples += samples,
        }
    }

    /// Takes a packet that came from the device's address.
    pub fn take(&mut self, packet: &[u8], came: Stamp) -> AnswerTaken {
        let Ok(envelope) = Envelope::decode(packet) else {
            return AnswerTaken::Stray;
        };
        let Some(pending) = &mut self.pending else {
            return AnswerTaken::Stray;
        };
        if !pending.ids.contains(&envelope.id()) {
            return AnswerTaken::Stray;
        }
        let opened = self.security.open(
            &self.session,
            &envelope,
            &mut self.plain,
            &mut self.keyring,
            came,
        );
        match opened {
            Opened::Refused => AnswerTaken::Stray,
            Opened::Again(_) if pending.again < AGAIN_MAX => {
                pending.again += 1;
                AnswerTaken::Next
            }
            Opened::Report(report) | Opened::Again(report) => {
                // Anybody may have made it: the answer may still come.
                self.refusal = Some(report);
                AnswerTaken::Stray
            }
            Opened::Response(response) => {
                self.pending = None;
                self.has_answered = true;
                if let (Some(walk), Some(profile)) =
                    (&mut self.walk, self.profiles.get_mut(self.at.0))
                {
                    let varbinds = u64::try_from(response.varbinds.count()).unwrap_or(0);
                    profile.counts.varbinds += varbinds;
                    profile.counts.ended_ns = came.mono_ns;
                    walk.take(&response);
                }
                AnswerTaken::Next
            }
        }
    }

    /// The text of a complete poll, and metrics about the poll itself.
    pub fn finish(&mut self) -> Vec<u8> {
        for profile in &mut self.profiles {
            let Some((_, text, samples)) = &profile.kept else {
                continue;
            };
            match self.text.len() + text.len() > TEXT_MAX {
                true => profile.counts.broken += 1,
                false => {
                    self.text.push_str(text);
                    profile.counts.samples = *samples;
                }
            }
        }
        let profiles = &self.profiles;
        let mut put = |name: &str, value: &dyn Fn(&AskedCounts) -> f64| {
            let name = format!("snmp_scrape_{name}");
            self.text
                .push_str(&format!("# TYPE {name} gauge\n{name}{{"));
            for (at, profile) in profiles.iter().enumerate() {
                if at > 0 {
                    self.text.push_str(&format!("{name}{{"));
                }
                put_label(&mut self.text, "module", &profile.name);
                self.text
                    .push_str(&format!("}} {}\n", value(&profile.counts)));
            }
        };
        put("walk_duration_seconds", &|counts| {
            let begun_ns = counts.begun_ns.unwrap_or(counts.ended_ns);
            number(counts.ended_ns.saturating_sub(begun_ns)) / 1e9
        });
        put("packets_sent", &|counts| number(counts.sent));
        put("packets_retried", &|counts| number(counts.again));
        put("pdus_returned", &|counts| number(counts.varbinds));
        put("columns_broken", &|counts| number(counts.broken));
        std::mem::take(&mut self.text).into_bytes()
    }

    /// Why the poll is not complete, after some time without an answer.
    pub fn silence(&self, within_s: f64) -> String {
        match (self.refusal, self.has_answered) {
            (Some(report), _) => format!("the device refuses: {}", refusal(report)),
            (None, false) => format!("no answer within {within_s} s"),
            (None, true) => {
                let at = self.profiles.get(self.at.0);
                let name = at.map_or("", |profile| &profile.name);
                format!("not complete within {within_s} s, while asking for {name}")
            }
        }
    }

    /// The interfaces of the last poll that the filter chose.
    pub fn interfaces(&self) -> &[FoundInterface] {
        &self.found
    }

    /// Names of the profiles of which the last poll has samples.
    pub fn answered(&self) -> impl Iterator<Item = &str> {
        let has_samples = |profile: &&AskedProfile| profile.counts.samples > 0;
        let profiles = self.profiles.iter().filter(has_samples);
        profiles.map(|profile| profile.name.as_str())
    }
}

/// Exact up to 2^53.
fn number(count: u64) -> f64 {
    count as f64
}

fn refusal(report: UsmReport) -> &'static str {
    match report {
        UsmReport::UnsupportedLevel => "it has no such security for the user",
        UsmReport::NotInTimeWindow => "its clock is another one with each answer",
        UsmReport::UnknownUser => "it has no such user",
        UsmReport::UnknownEngine => "it does not say its engine's id",
        UsmReport::WrongDigest => "the user has another password or protocol of authentication",
        UsmReport::DecryptionError => "the user has another password or protocol of privacy",
    }
}

/// The session of a device. Address and times are the caller's.
fn session(access: &DeviceAccess) -> Session {
    let nothing = Secret::new(b"");
    let (access, community) = match access {
        DeviceAccess::V1(community) => (Access::V1, community.clone()),
        DeviceAccess::V2c(community) => (Access::V2c, community.clone()),
        DeviceAccess::V3(user) => (Access::V3(user.clone().into()), nothing.clone()),
    };
    Session {
        host: Host::Name("".into()),
        port: 0,
        local_host: None,
        local_port: None,
        community,
        access,
        timeout_s: 0.0,
        attempts: 0,
        backoff: 1.0,
        max_repetitions: 0,
        use_getbulk: true,
        use_16bit_ids: false,
        lenient_address: false,
        lenient_port: false,
        oid_by_place: false,
        ipv4_only: false,
        mrtg_key: nothing,
    }
}
