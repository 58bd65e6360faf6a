//! Sessions of database servers, which the child of `kymo serve` gets from them by SQL, merged with the slots that the same
//! sessions publish. A session and a slot are the same if their process and its start are.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use kymo_shm::{Activity, Header, State};
use kymo_wire::keeper::{ActiveSlot, Blockers, Life, Publisher, ServerActivity, ServerSession};

use super::answer_bytes::{PUBLISHER_BYTES, labels_bytes, slot_bytes};
use super::publisher::{Moment, is_at_work, number};

/// Most servers in memory.
const SERVERS_MAX: usize = 64;
/// Age after which sessions no longer count.
const ACTIVE_NS: u64 = 3_000_000_000;
/// Age limit for a server without a working session, because such a server is asked less often.
const IDLE_NS: u64 = 15_000_000_000;
/// Name of the publisher for sessions of a server without the library.
const PUBLISHER: &[u8] = b"postgresql";
const SQL: u8 = 1;

/// Key of a session: the user of its server, its process or the number of its prepared transaction, and its start. A
/// publisher of another user may claim to be that process; kymo does not believe it.
type Identity = (u32, u32, u32, u64);

/// Newest sessions of each server, and the time at which they came.
#[derive(Default)]
pub(super) struct Servers(BTreeMap<Vec<u8>, (u64, ServerActivity)>);

impl Servers {
    /// Replaces the sessions of a server.
    pub(super) fn take(&mut self, activity: ServerActivity, now: Moment) {
        self.0
            .retain(|_, (at_ns, _)| now.mono_ns.saturating_sub(*at_ns) <= IDLE_NS);
        if self.0.len() < SERVERS_MAX || self.0.contains_key(&activity.server) {
            let server = activity.server.clone();
            self.0.insert(server, (now.mono_ns, activity));
        }
    }

    /// True if there is no server.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sessions that are new enough.
    pub(super) fn current(&self, now: Moment) -> Sessions<'_> {
        let is_current = |(at_ns, activity): &&(u64, ServerActivity)| {
            let works = activity.sessions.iter().any(ServerSession::is_active);
            let most = if works { ACTIVE_NS } else { IDLE_NS };
            now.mono_ns.saturating_sub(*at_ns) <= most
        };
        let servers = self.0.values().filter(is_current);
        let servers: Vec<&ServerActivity> = servers.map(|(_, activity)| activity).collect();
        let mut known = HashMap::new();
        for (place, server) in servers.iter().enumerate() {
            for session in &server.sessions {
                known.insert(session.identity(server.uid), (place, session));
            }
        }
        Sessions {
            servers,
            known,
            published: HashSet::new(),
            shown: HashSet::new(),
        }
    }
}

/// Sessions of all servers, while an answer is made.
pub(super) struct Sessions<'a> {
    servers: Vec<&'a ServerActivity>,
    known: HashMap<Identity, (usize, &'a ServerSession)>,
    /// Servers that publish themselves, by index.
    published: HashSet<usize>,
    /// Sessions that are in the answer.
    shown: HashSet<Identity>,
}

impl<'a> Sessions<'a> {
    /// Adds the server's view of the same session to a slot. Returns the index of the server, if it knows the session.
    pub(super) fn complete(
        &mut self,
        slot: &mut ActiveSlot,
        uid: u32,
        header: &Header,
        activity: &Activity,
        texts: bool,
    ) -> Option<usize> {
        let stamp = activity.identity.as_ref()?.stamp;
        // The clocks of database servers do not depend on the time of the machine's start.
        let started_ns = header.stamp_clock.unix_ns(stamp, 0)?;
        let stamp = activity.command.as_ref().map_or(0, |command| command.stamp);
        let command_ns = header.stamp_clock.unix_ns(stamp, 0).unwrap_or(0);
        let identity = (uid, slot.pid, 0, started_ns);
        self.add(slot, identity, activity.state, command_ns, texts)
    }

    /// `command_ns`: start of the last command that the slot has seen.
    fn add(
        &mut self,
        slot: &mut ActiveSlot,
        identity: Identity,
        state: State,
        command_ns: u64,
        texts: bool,
    ) -> Option<usize> {
        let &(place, session) = self.known.get(&identity)?;
        self.published.insert(place);
        self.shown.insert(identity);
        match state {
            State::Active if session.command_ns == command_ns => session.add_wait(slot),
            // The library is configured to publish nothing.
            State::None => {
                session.overwrite(slot, texts);
                session.add_wait(slot);
            }
            // The session waits in a command that the library has not seen yet. About a command that it has seen, the library
            // knows more, and sooner.
            State::Idle | State::IdleInTransaction | State::IdleInAbortedTransaction
                if session.is_active() && session.command_ns > command_ns =>
            {
                session.overwrite(slot, texts);
                session.add_wait(slot);
            }
            _ => {}
        }
        Some(place)
    }

    /// Adds the server's name in the configuration, and its port, to the labels of a publisher.
    pub(super) fn name(&self, labels: &mut Vec<(Vec<u8>, Vec<u8>)>, places: &HashSet<usize>) {
        if let Some(server) = places.iter().min().and_then(|&at| self.servers.get(at)) {
            let own = labels_of(server);
            labels.retain(|(name, _)| own.iter().all(|(label, _)| label != name));
            labels.extend(own);
        }
    }

    /// Sessions of these servers without a slot that work, have an open transaction or hold others up; and prepared transactions.
    pub(super) fn others(
        &mut self,
        places: &HashSet<usize>,
        first: u32,
        texts: bool,
    ) -> Vec<ActiveSlot> {
        let mut places: Vec<usize> = places.iter().copied().collect();
        places.sort_unstable();
        let mut slots = Vec::new();
        for server in places.into_iter().filter_map(|at| self.servers.get(at)) {
            let mut blockers = Blockers::default();
            for session in &server.sessions {
                blockers.add(&session.blocked_by, &session.blocked_by_xids);
            }
            for session in &server.sessions {
                let is_wanted =
                    is_at_work(session.state) || blockers.have(session.pid, session.xid);
                if is_wanted && self.shown.insert(session.identity(server.uid)) {
                    let place = first.saturating_add(number(slots.len()));
                    slots.push(session.slot(place, texts));
                }
            }
        }
        slots
    }

    /// Most bytes of an answer for sessions of servers, by the servers' users.
    pub(super) fn bytes(&self, texts: bool) -> impl Iterator<Item = (u32, usize)> {
        self.servers.iter().map(move |server| {
            let sessions = server.sessions.iter();
            let sessions = sessions.map(|session| slot_bytes(&session.slot(0, texts)));
            let labels = labels_bytes(&labels_of(server));
            (
                server.uid,
                PUBLISHER_BYTES + labels + sessions.sum::<usize>(),
            )
        })
    }

    /// Servers that do not publish, as publishers without metrics, each with an id in place of a file's epoch.
    pub(super) fn publishers(
        &self,
        texts: bool,
        user: impl Fn(u32) -> Vec<u8>,
    ) -> Vec<([u8; 16], Publisher)> {
        let servers = self.servers.iter().enumerate();
        let silent = servers.filter(|(place, _)| !self.published.contains(place));
        silent
            .map(|(_, server)| (epoch(server), publisher(server, user(server.uid), texts)))
            .collect()
    }
}

/// Id in place of a file's epoch; a restart of the server changes it.
fn epoch(server: &ServerActivity) -> [u8; 16] {
    let mut hasher = DefaultHasher::new();
    server.server.hash(&mut hasher);
    let mut epoch = [0; 16];
    epoch[..8].copy_from_slice(&server.started_ns.to_be_bytes());
    epoch[8..].copy_from_slice(&hasher.finish().to_be_bytes());
    epoch
}

fn publisher(server: &ServerActivity, user: Vec<u8>, texts: bool) -> Publisher {
    let slots = server.sessions.iter().enumerate();
    let slots: Vec<ActiveSlot> = slots
        .map(|(place, session)| session.slot(number(place), texts))
        .collect();
    Publisher {
        name: PUBLISHER.to_vec(),
        labels: labels_of(server),
        user,
        uid: server.uid,
        started_ns: server.started_ns,
        life: Life::Alive,
        slots_used: number(slots.len()),
        slots,
        slots_left_out: server.left_out,
        ..Publisher::default()
    }
}

fn labels_of(server: &ServerActivity) -> Vec<(Vec<u8>, Vec<u8>)> {
    let port = server.port.to_string().into_bytes();
    vec![
        (b"server".to_vec(), server.server.clone()),
        (b"port".to_vec(), port),
    ]
}

/// A session as a slot of an answer.
trait Shown {
    fn identity(&self, uid: u32) -> Identity;
    fn is_active(&self) -> bool;
    fn add_wait(&self, slot: &mut ActiveSlot);
    fn overwrite(&self, slot: &mut ActiveSlot, texts: bool);
    fn slot(&self, number: u32, texts: bool) -> ActiveSlot;
}

impl Shown for ServerSession {
    fn identity(&self, uid: u32) -> Identity {
        (uid, self.pid, self.xid, self.started_ns)
    }

    fn is_active(&self) -> bool {
        self.state == State::Active.byte()
    }

    fn add_wait(&self, slot: &mut ActiveSlot) {
        if self.is_active() {
            slot.wait.clone_from(&self.wait);
            slot.blocked_by.clone_from(&self.blocked_by);
            slot.blocked_by_xids.clone_from(&self.blocked_by_xids);
        }
    }

    fn overwrite(&self, slot: &mut ActiveSlot, texts: bool) {
        slot.state = self.state;
        slot.kind = if self.command_ns > 0 { SQL } else { 0 };
        slot.since_ns = match self.is_active() {
            true => self.command_ns,
            false => self.since_ns,
        };
        slot.text.clear();
        slot.is_cut = false;
        if texts {
            slot.text.clone_from(&self.text);
            slot.is_cut = self.is_cut;
        }
    }

    fn slot(&self, number: u32, texts: bool) -> ActiveSlot {
        let mut slot = ActiveSlot {
            number,
            pid: self.pid,
            xid: self.xid,
            leader: self.leader,
            labels: match texts {
                true => self.labels.clone(),
                false => Vec::new(),
            },
            ..ActiveSlot::default()
        };
        self.overwrite(&mut slot, texts);
        self.add_wait(&mut slot);
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_wire::keeper::PREPARED;

    const SECOND_NS: u64 = 1_000_000_000;

    fn at(mono_ns: u64) -> Moment {
        Moment {
            mono_ns,
            real_ns: 0,
        }
    }

    fn session(state: State, command_ns: u64) -> ServerSession {
        ServerSession {
            pid: 7,
            started_ns: 5,
            state: state.byte(),
            command_ns,
            wait: b"Lock:relation".to_vec(),
            blocked_by: vec![3],
            text: b"SELECT ?".to_vec(),
            labels: vec![(b"user".to_vec(), b"ada".to_vec())],
            ..ServerSession::default()
        }
    }

    fn activity(server: &str, session: ServerSession) -> ServerActivity {
        ServerActivity {
            server: server.into(),
            sessions: vec![session],
            ..ServerActivity::default()
        }
    }

    fn slot(state: State) -> ActiveSlot {
        ActiveSlot {
            state: state.byte(),
            ..session(State::None, 0).slot(0, false)
        }
    }

    /// A slot whose last command began at `command_ns`, completed with the server's view.
    fn completed(
        state: State,
        command_ns: u64,
        session: &ServerSession,
        (uid, started_ns): (u32, u64),
    ) -> ActiveSlot {
        let mut servers = Servers::default();
        servers.take(activity("main", session.clone()), at(0));
        let mut sessions = servers.current(at(SECOND_NS));
        let mut slot = slot(state);
        let identity = (uid, slot.pid, 0, started_ns);
        sessions.add(&mut slot, identity, state, command_ns, true);
        slot
    }

    #[test]
    fn who_knows_the_newer_command_is_believed() {
        use State::{Active, Idle, IdleInAbortedTransaction, IdleInTransaction};
        // State and command start of the slot; state and command start at the server; true if the server's text is shown; true if
        // its wait is.
        for (state, command_ns, state_at_server, began_at_server_ns, text, wait) in [
            (Idle, 10, Active, 20, true, true),
            (IdleInTransaction, 10, Active, 20, true, true),
            // The library has seen this command and its end.
            (Idle, 20, Active, 20, false, false),
            (Idle, 30, Active, 20, false, false),
            (Idle, 10, Idle, 20, false, false),
            (Active, 20, Active, 20, false, true),
            (Active, 30, Active, 20, false, false),
            (Active, 20, Idle, 20, false, false),
            (IdleInAbortedTransaction, 10, Active, 20, true, true),
            // The library is configured to publish nothing.
            (State::None, 30, Active, 20, true, true),
        ] {
            let slot = completed(
                state,
                command_ns,
                &session(state_at_server, began_at_server_ns),
                (0, 5),
            );
            let what = format!("{state:?} {command_ns}, {state_at_server:?} {began_at_server_ns}");
            assert_eq!(slot.text == b"SELECT ?", text, "{what}");
            assert_eq!(!slot.wait.is_empty(), wait, "{what}");
            assert_eq!(!slot.blocked_by.is_empty(), wait, "{what}");
            assert_eq!(slot.state, if text { 2 } else { state.byte() }, "{what}");
        }
        // Neither an earlier session of the same process number nor a publisher of another user matches.
        for identity in [(0, 6), (1, 5)] {
            let slot = completed(Idle, 10, &session(Active, 20), identity);
            assert!(slot.text.is_empty() && slot.wait.is_empty());
        }
    }

    /// Sessions were once chosen by state: an idle one that held others up was missing.
    #[test]
    fn sessions_without_a_slot_are_shown_for_what_they_hold_up() {
        let others = |waiting: ServerSession| {
            let of = |pid, state: u8| ServerSession {
                pid,
                state,
                ..ServerSession::default()
            };
            let prepared = ServerSession {
                xid: 731,
                ..of(0, PREPARED)
            };
            let sessions = vec![of(1, 1), of(2, 0), of(3, 3), prepared, waiting];
            let activity = ServerActivity {
                sessions,
                ..activity("main", ServerSession::default())
            };
            let mut servers = Servers::default();
            servers.take(activity, at(0));
            let mut sessions = servers.current(at(0));
            let slots = sessions.others(&HashSet::from([0]), 0, true);
            let found = slots.iter().map(|slot| (slot.pid, slot.xid));
            found.collect::<Vec<_>>()
        };
        let waiting = |blocked_by: &[u32]| ServerSession {
            blocked_by: blocked_by.to_vec(),
            ..session(State::Active, 1)
        };
        let at_work = [(3, 0), (0, 731), (7, 0)];
        assert_eq!(others(waiting(&[])), at_work);
        for blocker in [1, 2] {
            let mut wanted = vec![(blocker, 0)];
            wanted.extend(at_work);
            assert_eq!(others(waiting(&[blocker])), wanted);
        }
    }

    #[test]
    fn what_is_old_is_not_shown_and_two_servers_are_two() {
        let mut servers = Servers::default();
        servers.take(activity("main", session(State::Active, 1)), at(0));
        servers.take(activity("other", session(State::Idle, 1)), at(0));
        for (seconds, names) in [(3, &["main", "other"][..]), (4, &["other"]), (16, &[])] {
            let sessions = servers.current(at(seconds * SECOND_NS));
            let shown = sessions.publishers(true, |_| Vec::new());
            let found: Vec<_> = shown
                .iter()
                .map(|(_, publisher)| publisher.labels[0].1.clone())
                .collect();
            let names: Vec<_> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
            assert_eq!(found, names, "after {seconds} s");
        }
        let sessions = servers.current(at(0));
        let hidden = sessions.publishers(false, |_| Vec::new());
        let slots = hidden.iter().flat_map(|(_, publisher)| &publisher.slots);
        assert!(
            slots
                .into_iter()
                .all(|slot| slot.text.is_empty() && slot.labels.is_empty())
        );
        servers.take(
            activity("main", session(State::Idle, 2)),
            at(20 * SECOND_NS),
        );
        assert_eq!(servers.0.len(), 1);
    }
}
