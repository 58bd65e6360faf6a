//! A round: datagrams in, one write batch out.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;

use kymo_base::errno::strerror;
use kymo_base::name::DisplayName;
use kymo_base::pattern;
use kymo_rrd::Header;
use kymo_store::{Definition, FileError, Refusal, SeriesName, Store, Writer};
use kymo_sys::clock::{Clock, RealClock};
use kymo_sys::datagrams::{self, Datagrams};
use kymo_wire::collectd::{
    Admission, Bad, Cdtime, Datagram, Item, Notification, Protection, ReplayWindow, Section,
    TypesDb, Users, Value, Values, escape, put_update,
};
use kymo_wire::keeper::Count;

use super::accounts::Accounts;
use super::budgets::{Payer, Trusted};
use super::define::{Definitions, starting_at};
use super::hosts::{HostId, Hosts, SECOND_NS};
use super::index::{Entry, Index, Standing};
use super::kept_events::EventKeeper;
use super::new_names::NewNames;
use super::notifications::{Notifications, event};
use super::odd_types::OddTypes;
use super::redefine::{Change, Requests, Why};
use super::senders::{Senders, put};
use super::streaks::Streaks;
use super::value_cache::{Arrived, ValueCache};
use super::{CollectdSettings, InForce};
use crate::log::{Log, Severity};
use crate::sender_group::SenderGroup;

/// A value further ahead of the clock is refused: its series could store no true value until that time.
const AHEAD_MAX_S: u64 = 300;
/// Most intervals of its series that a value of an unsigned, untrusted sender may be ahead of the clock.
const AHEAD_MAX_INTERVALS: u64 = 2;

/// Time after which a series that could not be made is tried again.
const RETRY_MS: u64 = 60_000;

/// Most new series that are defined together: their headers stay in memory until then.
const NEW_AT_ONCE: usize = 256;

/// State that the sockets of the listener share.
pub(super) struct Registry {
    pub(super) settings: CollectdSettings,
    /// Types that the settings had at the last round.
    pub(super) types: Arc<TypesDb>,
    pub(super) index: Index,
    pub(super) definitions: Definitions,
    pub(super) newcomers: NewNames,
    replays: ReplayWindow,
    intervals: Streaks<Cdtime>,
    pub(super) kinds: Streaks<Vec<u8>>,
    pub(super) odd: OddTypes,
    /// The newest values of each series; `None`: there are no commands.
    pub(super) newest: Option<ValueCache>,
    pub(super) requests: Requests,
    pub(super) hosts: Hosts,
    /// Changed accounts are copied here.
    senders: Senders,
    events: EventKeeper,
}

impl Registry {
    /// A registry without series. The receiver of `requests` changes definitions.
    pub(super) fn new(
        settings: CollectdSettings,
        requests: Requests,
        senders: Senders,
        events: EventKeeper,
    ) -> Registry {
        Registry {
            types: settings.types.get(),
            settings,
            hosts: Hosts::default(),
            senders,
            events,
            index: Index::default(),
            definitions: Definitions::default(),
            newcomers: NewNames::default(),
            replays: ReplayWindow::default(),
            intervals: Streaks::default(),
            kinds: Streaks::default(),
            odd: OddTypes::default(),
            newest: None,
            requests,
        }
    }

    /// Looks at the interval of a stored value. If three values in a row have another interval than the definition is
    /// for, asks for a new definition.
    fn look_at_interval(&mut self, update: &Update, now_ms: u64, store: &Store) {
        let series = update.series;
        let Some(entry) = self.index.get_mut(series) else {
            return;
        };
        let value = (update.interval, update.stamp_s);
        let value = (&value.0, value.1);
        let since_s = self.intervals.take(series, &entry.interval, value, now_ms);
        let Some(since_s) = since_s.filter(|_| self.requests.has_room()) else {
            return;
        };
        let of = (entry.type_name(), &*entry.codes);
        let Registry {
            definitions,
            settings,
            types,
            ..
        } = self;
        let step = store.step(&entry.path);
        let before = match entry.interval {
            Cdtime::ZERO => Cdtime::from_seconds(step.unwrap_or(0)),
            known => known,
        };
        let mut header = |interval| definitions.header(of, interval, (types, settings)).cloned();
        // A stored definition whose step is not that of ours was made by others, and stays.
        let has_step = |header: &Header| Some(header.pdp_step) == step;
        let to = header(update.interval).filter(|to| !has_step(to));
        let change = to.and_then(|to| Some((header(before).filter(has_step)?, to)));
        let Some((from, to)) = change else {
            entry.interval = update.interval;
            return self.intervals.settle(series);
        };
        let change = Change {
            series,
            path: entry.path.clone(),
            from,
            to,
            since_s,
            why: Why::Interval,
        };
        self.requests.ask(change);
        entry.interval = update.interval;
        self.intervals.begin(series, now_ms);
    }

    /// Notes finished changes of definitions. A change that failed is asked for again later.
    fn look_at_changes(&mut self, now_ms: u64) {
        while let Some((series, failed)) = self.requests.next_ended() {
            let Some(entry) = self.index.get_mut(series) else {
                continue;
            };
            if entry.standing == Standing::Changing {
                // The store's current definition decides which kinds are accepted.
                entry.standing = Standing::Undefined;
                if failed {
                    self.kinds.fail(series, now_ms);
                }
            } else if failed {
                entry.interval = Cdtime::ZERO;
                self.intervals.fail(series, now_ms);
            }
        }
    }

    /// Logs types that types.db lacks, each once.
    pub(super) fn report(&mut self, log: &Log) {
        for line in self.odd.take_news() {
            log(Severity::Notice, &line);
        }
    }

    /// Interval of these values: their own or the default.
    pub(super) fn interval_of(&self, values: &Values) -> Cdtime {
        self.settings.interval_of(values)
    }

    /// True if names wait to be repeated.
    pub(super) fn has_newcomers(&self) -> bool {
        !self.newcomers.probation.is_empty()
    }

    /// Removes names that were not repeated in time.
    pub(super) fn sweep(&mut self, mono_ns: u64) {
        self.newcomers.probation.sweep(mono_ns / SECOND_NS);
    }

    /// True if there are events that are not saved.
    pub(super) fn has_events(&self) -> bool {
        self.events.has_new()
    }

    /// Saves events.
    pub(super) fn save_events(&mut self, log: &Log) {
        self.events.save(RealClock.mono_ns(), log);
    }
}

/// The state of one socket.
pub(super) struct Intake {
    name: String,
    /// Index of the socket.
    pub(super) at: usize,
    pub(super) accounts: Accounts,
    notifications: Notifications,
    /// The kernel's count of dropped datagrams so far.
    dropped: u32,
    pub(super) texts: Vec<u8>,
    updates: Vec<Update>,
    new: Vec<New>,
    /// Values of `updates`, if somebody asks for them.
    raw: Vec<Value>,
}

/// A series that waits for its definition.
struct New {
    series: u32,
    header: Header,
    interval: Cdtime,
    sender: u16,
}

/// Values for a series.
#[derive(Clone)]
struct Update {
    series: u32,
    /// Range of the text in `texts`.
    text: Range<usize>,
    /// Range of the values in `raw`; empty: they are not noted.
    raw: Range<usize>,
    count: u64,
    host: HostId,
    time: Cdtime,
    from: Source,
    /// Time of the values in whole seconds.
    stamp_s: u64,
    interval: Cdtime,
}

/// The sender of values.
#[derive(Clone, Copy)]
pub(super) struct Source {
    pub(super) address: IpAddr,
    /// Number of the sender's account.
    pub(super) sender: u16,
    pub(super) writer: Writer,
    pub(super) trusted: Option<Trusted>,
}

impl Source {
    /// The budget that pays for new series of this source.
    pub(super) fn payer(self, user: Option<&[u8]>) -> Payer<'_> {
        match (user, self.trusted) {
            (Some(user), _) => Payer::User(user),
            (None, Some(trusted)) => Payer::Trusted(trusted),
            (None, None) => Payer::Group(SenderGroup::of(self.address)),
        }
    }

    fn is_trusted(self, user: Option<&[u8]>) -> bool {
        !matches!(self.payer(user), Payer::Group(_))
    }
}

impl Intake {
    /// An intake for the socket of this name, of which `dropped` datagrams were reported before.
    pub(super) fn new(name: String, at: usize, dropped: u32) -> Intake {
        Intake {
            name,
            at,
            accounts: Accounts::default(),
            notifications: Notifications::default(),
            dropped,
            texts: Vec::new(),
            updates: Vec::new(),
            new: Vec::new(),
            raw: Vec::new(),
        }
    }

    /// Name of the socket.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Datagrams that the kernel has dropped so far, modulo 2^32, as of the last round.
    pub(super) fn dropped(&self) -> u32 {
        self.dropped
    }

    /// True if there is something to report.
    pub(super) fn has_trouble(&self) -> bool {
        self.accounts.has_trouble()
    }

    /// Logs losses, damage and refusals since the last report.
    pub(super) fn report(&mut self, log: &Log) {
        if let Some(news) = self.accounts.take_news() {
            let line = format!("collectd on {}: {news}", self.name);
            log(Severity::Warning, &line);
        }
    }

    /// Logs the last notification and the number of notifications.
    pub(super) fn notify(&mut self, log: &Log) {
        if let Some(news) = self.notifications.take() {
            let line = format!("collectd on {}: {news}", self.name);
            log(Severity::Notice, &line);
        }
    }

    /// Receives datagrams and stores their values. Returns the number of datagrams.
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
            self.accounts.lost += u64::from(dropped.wrapping_sub(self.dropped));
            self.dropped = dropped;
        }
        self.in_round(registry, store, |intake, round| {
            for datagram in datagrams.iter_mut() {
                intake.receive(round, datagram);
            }
        });
        Ok(count)
    }

    /// Does some work in a round, and stores the values that came of it.
    pub(super) fn in_round(
        &mut self,
        registry: &mut Registry,
        store: &Store,
        work: impl FnOnce(&mut Intake, &mut Round<'_>),
    ) {
        let stamp = RealClock.now();
        registry.take_types();
        let users = registry.settings.users.as_ref();
        let mut round = Round {
            users: users.map(InForce::get),
            registry,
            real_ns: u64::try_from(stamp.real_ns).unwrap_or(0),
            mono_ns: stamp.mono_ns,
            store,
        };
        work(self, &mut round);
        self.store_all(&mut round);
        round.registry.look_at_changes(round.mono_ms());
        self.publish(&mut round);
    }

    fn receive(&mut self, round: &mut Round, datagram: datagrams::Datagram) {
        let address = plain(datagram.sender);
        let sender = self.accounts.number(address);
        self.accounts.count(sender, Count::Datagrams, 1);
        let allow = &round.registry.settings.allow;
        if !allow.is_empty() && !allow.iter().any(|prefix| prefix.holds(address)) {
            return self.accounts.count(sender, Count::Foreign, 1);
        }
        if datagram.truncated {
            return self.accounts.count(sender, Count::Bad, 1);
        }
        self.datagram(round, datagram.bytes, (address, sender));
    }

    /// Copies changed accounts to where requests are answered.
    fn publish(&mut self, round: &mut Round) {
        let Round {
            real_ns, mono_ns, ..
        } = *round;
        let Registry {
            hosts,
            senders,
            odd,
            ..
        } = &mut *round.registry;
        let shown = &mut *senders.lock();
        if odd.len() != shown.odd.len() {
            shown.odd = odd.all();
        }
        if let Some(socket) = shown.sockets.get_mut(self.at) {
            socket.lost = self.accounts.lost;
            self.accounts.end_round(real_ns, mono_ns, |number, sender| {
                put(&mut socket.senders, number, sender);
            });
        }
        hosts.end_round(real_ns, mono_ns, |number, host| {
            put(&mut shown.hosts, number, host);
        });
    }

    fn datagram(&mut self, round: &mut Round, bytes: &mut [u8], (address, sender): (IpAddr, u16)) {
        // The users stay alive independently of the round, which the values of a section change.
        let (level, users) = (round.registry.settings.level, round.users.clone());
        let mut trusted = round.registry.settings.trusted.iter();
        let network = trusted.position(|network| network.holds(address));
        for section in Datagram::new(bytes, level, users.as_deref()) {
            let section = match section {
                Ok(section) => section,
                Err(bad) => return self.count_bad(sender, bad),
            };
            if round.is_replayed(&section) {
                self.accounts.count(sender, Count::Replayed, 1);
                continue;
            }
            let user = match section.protection {
                Protection::Plain => None,
                Protection::Signed(proof) | Protection::Encrypted(proof) => Some(proof.user),
            };
            let from = Source {
                address,
                sender,
                trusted: network.map(Trusted::Network),
                writer: user.map_or(Writer::address(address), Writer::signed),
            };
            let mut parts = section.parts();
            while let Some(item) = parts.next_item() {
                match item {
                    Ok(Item::Values(values)) => {
                        self.values(round, &values, from, user);
                    }
                    Ok(Item::Notification(notification)) => {
                        self.notification(round, &notification, from, user);
                    }
                    Ok(Item::Dropped(_)) => {
                        self.accounts.count(sender, Count::Unfit, 1);
                    }
                    Err(bad) => self.count_bad(sender, bad),
                }
            }
        }
    }

    fn count_bad(&mut self, sender: u16, bad: Bad) {
        self.accounts.last_bad = Some(bad);
        self.accounts.count(sender, Count::Bad, 1);
    }

    pub(super) fn notification(
        &mut self,
        round: &mut Round,
        notification: &Notification,
        source: Source,
        user: Option<&[u8]>,
    ) {
        let (sender, time) = (source.sender, notification.time);
        self.accounts.note_time(sender, time);
        if round.is_ahead(time) {
            return self.accounts.count(sender, Count::Future, 1);
        }
        if !round.may_send(user, notification.identifier.host) {
            return self.accounts.count(sender, Count::Others, 1);
        }
        let event = event(notification);
        if event.is_of_device() {
            // Events of devices are accepted from pollers and as traps only.
            return self.accounts.count(sender, Count::Others, 1);
        }
        let group = SenderGroup::of(source.address).to_string();
        let Some(event) = round.registry.events.add(&group, user, event) else {
            return self.accounts.count(sender, Count::Replayed, 1);
        };
        self.accounts.count(sender, Count::Notifications, 1);
        self.notifications.add(&event);
    }

    pub(super) fn values(
        &mut self,
        round: &mut Round,
        values: &Values,
        source: Source,
        user: Option<&[u8]>,
    ) {
        let sender = source.sender;
        let count = values.values.len() as u64;
        self.accounts.note_time(sender, values.time);
        if round.is_ahead(values.time) {
            return self.accounts.count(sender, Count::Future, count);
        }
        if !round.may_send(user, values.identifier.host) {
            return self.accounts.count(sender, Count::Others, count);
        }
        let known = round.registry.index.find(values.identifier);
        let (series, first) = match known {
            Some(series) if !source.is_trusted(user) && round.is_ahead_of(series, values.time) => {
                return self.accounts.count(sender, Count::Future, count);
            }
            Some(series) => (series, None),
            None => match self.arrive(round, values, source, user) {
                Ok(Some(begins)) => begins,
                Ok(None) => return,
                Err(why) => return self.accounts.count(sender, why, count),
            },
        };
        let first_time = first.as_ref().map_or(values.time, |first| first.time);
        if !self.is_there(round, series, values, (sender, first_time)) {
            return self.accounts.count(sender, Count::Refused, count);
        }
        let Registry {
            index,
            hosts,
            kinds,
            ..
        } = &mut *round.registry;
        let fits = |entry: &&mut Entry| {
            *entry.codes == *values.values.codes() && entry.standing != Standing::Changing
        };
        let Some(entry) = index.get_mut(series).filter(fits) else {
            return self.mismatch(round, series, (values, count), source);
        };
        kinds.stay(series, round.mono_ns / 1_000_000);
        if !hosts.is_current(entry.host, round.mono_ns) {
            entry.host = hosts.find(&escape(values.identifier.host), round.mono_ns);
        }
        let mut update = Update {
            series,
            text: 0..0,
            raw: 0..0,
            count,
            host: entry.host,
            time: first_time,
            from: source,
            stamp_s: first_time.seconds(),
            interval: round.registry.settings.interval_of(values),
        };
        if let Some(first) = first {
            update.text = self.put_text(|texts| texts.extend_from_slice(first.text()));
            self.updates.push(update.clone());
        }
        update.text = self.put_text(|texts| {
            put_update(texts, values.time, values.values.iter());
        });
        update.raw = self.keep_raw(round, values);
        (update.time, update.stamp_s) = (values.time, values.time.seconds());
        self.updates.push(update);
    }

    /// Counts values of other kinds than their series' definition is for.
    fn mismatch(
        &mut self,
        round: &mut Round,
        series: u32,
        (values, count): (&Values, u64),
        source: Source,
    ) {
        self.accounts.count(source.sender, Count::Mismatched, count);
        if let Some(entry) = round.registry.index.get(series) {
            let (path, address) = (DisplayName(&entry.path), source.address);
            let last = &mut self.accounts.last_mismatch;
            last.get_or_insert_with(|| format!("{path}, sent by {address}"));
        }
        let (registry, now_ms) = (&mut *round.registry, round.mono_ns / 1_000_000);
        registry.look_at_mismatch(series, values, (source.writer, now_ms), round.store);
    }

    /// Keeps values for GETVAL until they are stored, and returns their range in `raw`.
    fn keep_raw(&mut self, round: &Round, values: &Values) -> Range<usize> {
        let from = self.raw.len();
        if round.registry.newest.is_some() {
            self.raw.extend(values.values.iter());
        }
        from..self.raw.len()
    }

    /// Appends a value's text and returns its range.
    fn put_text(&mut self, put: impl FnOnce(&mut Vec<u8>)) -> Range<usize> {
        let from = self.texts.len();
        put(&mut self.texts);
        from..self.texts.len()
    }

    /// Counts values of names that no sender repeated in time.
    pub(super) fn lose(&mut self, registry: &mut Registry) {
        let gone = registry.newcomers.probation.take_gone(self.at);
        if gone.is_empty() {
            return;
        }
        let shown = &mut *registry.senders.lock();
        for (sender, count) in gone {
            self.accounts.count(sender, Count::Once, count);
            let copies = shown.sockets.get_mut(self.at);
            if let (Some(copies), Some(account)) = (copies, self.accounts.get(sender)) {
                put(&mut copies.senders, sender, account);
            }
        }
    }

    /// True if the store has a series, or will define it in this round.
    fn is_there(
        &mut self,
        round: &mut Round,
        series: u32,
        values: &Values,
        (sender, first): (u16, Cdtime),
    ) -> bool {
        let mono_ms = round.mono_ms();
        match round.registry.index.get(series).map(|entry| entry.standing) {
            Some(Standing::Defined | Standing::Announced | Standing::Changing) => return true,
            Some(Standing::Refused { since_ms }) if mono_ms - since_ms < RETRY_MS => return false,
            Some(Standing::Refused { .. } | Standing::Undefined) => {}
            None => return false,
        }
        let now_s = round.real_ns / SECOND_NS;
        round.registry.look_at_kinds(series, now_s, round.store);
        let Registry {
            settings,
            index,
            definitions,
            types,
            ..
        } = &mut *round.registry;
        let Some(entry) = index.get_mut(series) else {
            return false;
        };
        let interval = settings.interval_of(values);
        let of = (values.identifier.type_name, values.values.codes());
        let header = definitions.header(of, interval, (types, settings));
        let start = first.seconds() as i64 - 1;
        let Some(header) = header.and_then(|header| starting_at(header, start)) else {
            // These values allow no definition, but the series may exist.
            let found = round.store.touch(&entry.path).map(|()| false);
            return self.stands(round, series, sender, found);
        };
        entry.standing = Standing::Announced;
        entry.interval = Cdtime::ZERO;
        self.new.push(New {
            series,
            header,
            interval,
            sender,
        });
        if self.new.len() == NEW_AT_ONCE {
            self.define(round);
        }
        true
    }

    /// Defines new series with one write to the journal.
    fn define(&mut self, round: &mut Round) {
        let (mut senders, mut definitions) = (Vec::new(), Vec::new());
        for New {
            series,
            header,
            interval,
            sender,
        } in self.new.drain(..)
        {
            let Some(entry) = round.registry.index.get(series) else {
                continue;
            };
            senders.push((series, interval, sender));
            definitions.push(Definition {
                name: SeriesName::File(&entry.path),
                header,
            });
        }
        let defined = round.store.define(definitions);
        for ((series, interval, sender), defined) in senders.into_iter().zip(defined) {
            if let (Ok(true), Some(entry)) = (&defined, round.registry.index.get_mut(series)) {
                entry.interval = interval;
            }
            self.stands(round, series, sender, defined);
        }
    }

    /// Notes whether the store has a series, and counts those that are new.
    fn stands(
        &mut self,
        round: &mut Round,
        series: u32,
        sender: u16,
        defined: Result<bool, FileError>,
    ) -> bool {
        let since_ms = round.mono_ms();
        let Some(entry) = round.registry.index.get_mut(series) else {
            return false;
        };
        match defined {
            Ok(is_new) => {
                entry.standing = Standing::Defined;
                self.accounts.count(sender, Count::New, is_new.into());
                if !is_new {
                    let now_s = round.real_ns / SECOND_NS;
                    round.registry.look_at_kinds(series, now_s, round.store);
                }
                true
            }
            Err(error) => {
                entry.standing = Standing::Refused { since_ms };
                let path = DisplayName(&entry.path);
                self.accounts.last_refusal = Some(format!("cannot make {path}: {error}"));
                false
            }
        }
    }

    /// Stores all values with one write to the journal.
    fn store_all(&mut self, round: &mut Round) {
        self.define(round);
        let updates = std::mem::take(&mut self.updates);
        let untouched = self.store_some(&updates, round);
        // These series are gone: no values came for a long time, or the file was removed.
        let mut again = Vec::new();
        for update in untouched {
            let Registry {
                index,
                intervals,
                kinds,
                ..
            } = &mut *round.registry;
            let entry = index.get(update.series);
            if entry.is_some_and(|entry| round.store.touch(&entry.path).is_ok()) {
                again.push(update);
                continue;
            }
            // The identifier counts as a new name from now on.
            index.forget(update.series);
            intervals.settle(update.series);
            kinds.settle(update.series);
            self.accounts
                .count(update.from.sender, Count::Refused, update.count);
        }
        if !again.is_empty() {
            self.store_some(again, round);
        }
        self.texts.clear();
        self.raw.clear();
        self.updates = updates;
        self.updates.clear();
    }

    /// Stores values. Returns the values whose series the store does not know.
    fn store_some<'u>(
        &mut self,
        updates: impl IntoIterator<Item = &'u Update>,
        round: &mut Round,
    ) -> Vec<&'u Update> {
        let mut untouched = Vec::new();
        let (mut taken, mut held) = (Vec::new(), None);
        let mut batch = round.store.write_batch();
        for update in updates {
            let entry = round.registry.index.get(update.series);
            let defined = entry.filter(|entry| entry.standing == Standing::Defined);
            let Some(entry) = defined else {
                self.accounts
                    .count(update.from.sender, Count::Refused, update.count);
                continue;
            };
            if usize::try_from(update.count) != Ok(entry.codes.len()) {
                // The store has looked at the file only now.
                let (sender, count) = (update.from.sender, update.count);
                self.accounts.count(sender, Count::Mismatched, count);
                continue;
            }
            let text = &self.texts[update.text.clone()];
            batch.by(update.from.writer);
            match batch.update(&entry.path, [text]) {
                Ok(_) => taken.push(update),
                Err(Refusal::Untouched) => untouched.push(update),
                Err(refusal) => {
                    let count = match refusal {
                        Refusal::Past { .. } => Count::Late,
                        Refusal::Held => Count::Held,
                        _ => Count::Unfit,
                    };
                    if refusal == Refusal::Held {
                        held = Some(update.series);
                    }
                    self.accounts.count(update.from.sender, count, update.count);
                }
            }
        }
        let written = batch.commit();
        if let Some(entry) = held.and_then(|series| round.registry.index.get(series)) {
            let path = DisplayName(&entry.path);
            self.accounts.last_refusal = Some(format!("{path} is another sender's"));
        }
        let now_ms = round.mono_ms();
        for &update in taken.iter().filter(|_| written.is_ok()) {
            round.registry.look_at_interval(update, now_ms, round.store);
            self.note_newest(update, round);
        }
        let done = match &written {
            Ok(_) => Count::Values,
            Err(_) => Count::Unwritten,
        };
        let hosts = &mut round.registry.hosts;
        for update in taken {
            self.accounts.count(update.from.sender, done, update.count);
            hosts.note(update.host, update.from.address, update.count, update.time);
        }
        if let Err(error) = written {
            self.accounts.last_failure =
                Some(format!("cannot write journal: {}", strerror(&error)));
        }
        untouched
    }
}

impl Intake {
    /// Notes stored values, if somebody asks for the newest.
    fn note_newest(&self, update: &Update, round: &mut Round) {
        let mono_ns = round.mono_ns;
        let Registry {
            index,
            newest,
            types,
            ..
        } = &mut *round.registry;
        let values = &self.raw[update.raw.clone()];
        let (Some(newest), Some(entry)) = (newest, index.get(update.series)) else {
            return;
        };
        if values.is_empty() {
            return;
        }
        let arrived = Arrived {
            path: &entry.path,
            time: update.time,
            interval: update.interval,
            values,
            sources: types.sources(entry.type_name()).unwrap_or_default(),
        };
        newest.note(&arrived, mono_ns);
    }
}

/// State of a round, with one look at the clocks for all its datagrams.
pub(super) struct Round<'a> {
    pub(super) registry: &'a mut Registry,
    /// Users who may sign and encrypt; `None`: there is no AuthFile.
    users: Option<Arc<Users>>,
    /// Nanoseconds since 1970.
    real_ns: u64,
    pub(super) mono_ns: u64,
    pub(super) store: &'a Store,
}

impl Round<'_> {
    fn mono_ms(&self) -> u64 {
        self.mono_ns / 1_000_000
    }

    /// Seconds that a time is ahead of the clock.
    fn ahead_s(&self, time: Cdtime) -> u64 {
        time.seconds().saturating_sub(self.real_ns / SECOND_NS)
    }

    /// True if a time is too far in the future for any sender.
    fn is_ahead(&self, time: Cdtime) -> bool {
        self.ahead_s(time) > AHEAD_MAX_S
    }

    /// True if a time is so far ahead that true values of this series would be late until then.
    fn is_ahead_of(&self, series: u32, time: Cdtime) -> bool {
        // Only a clock that is ahead at all costs a look into the store.
        let entry = self.registry.index.get(series);
        let entry = entry.filter(|_| self.ahead_s(time) > AHEAD_MAX_INTERVALS);
        entry.is_some_and(|entry| {
            let step_s = self.store.step(&entry.path);
            // Values may come more often than rows are made.
            let known = (entry.interval != Cdtime::ZERO).then(|| whole_seconds(entry.interval));
            let interval_s = step_s.into_iter().chain(known).min();
            interval_s.is_some_and(|interval_s| self.is_ahead_by(time, interval_s))
        })
    }

    /// True if a time is too far in the future for a series with this interval.
    pub(super) fn is_ahead_by(&self, time: Cdtime, interval_s: u64) -> bool {
        self.ahead_s(time) > AHEAD_MAX_INTERVALS.saturating_mul(interval_s)
    }

    /// True if a user, who signed, may send values of a host.
    fn may_send(&self, user: Option<&[u8]>, host: &[u8]) -> bool {
        let hosts = &self.registry.settings.hosts;
        let patterns = user.and_then(|user| hosts.get(user));
        let fits = |pattern: &Vec<u8>| pattern::fits(pattern, host);
        patterns.is_none_or(|patterns| patterns.iter().any(fits))
    }

    fn is_replayed(&mut self, section: &Section) -> bool {
        match section.protection {
            Protection::Plain => false,
            Protection::Signed(proof) | Protection::Encrypted(proof) => {
                let mono_ms = self.mono_ms();
                let replays = &mut self.registry.replays;
                let admitted = replays.admit(proof.user, proof.unique, mono_ms);
                admitted == Admission::Replayed
            }
        }
    }
}

/// Seconds of an interval, rounded up.
pub(super) fn whole_seconds(interval: Cdtime) -> u64 {
    interval.nanoseconds().div_ceil(SECOND_NS)
}

/// The address of a sender; an IPv4 address mapped into IPv6 becomes an IPv4 address.
fn plain(sender: SocketAddr) -> IpAddr {
    sender.ip().to_canonical()
}
