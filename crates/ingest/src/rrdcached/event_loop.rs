//! The thread that owns the sockets. Events are level-triggered: the kernel repeats an event until it is handled.

use std::io;
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kymo_base::limits::{CONNECTIONS_MAX, HELD_MAX, STALL_SECONDS};
use kymo_store::{Store, Writer};
use kymo_sys::listen::{self, Peer};
use kymo_sys::tcp_owner::{self, TcpOwners};
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;

use super::connection::{Came, Connection, READ_SIZE};
use super::held::Held;
use super::names::Names;
use super::quick::{Stop, serve_batch};
use super::shares::{self, Share};
use super::syncer::{Group, Syncer};
use super::wake::{News, Synced, Wake};
use super::workers::Workers;
use super::{ListeningSocket, Rrdcached, SAY_EVERY, Severity, Shared, Writers};
use crate::listener;

/// Writer name of all clients if they share series.
const PROTOCOL: &str = "rrdcached";

/// Sources of events: the end, the other threads, then listeners, then connections.
const STOP: u64 = 0;
const WAKE: u64 = 1;
const LISTENERS: u64 = 2;
const CONNECTIONS: u64 = 1 << 32;
/// Most events of one wait, and so most connections of one batch.
const EVENTS_MAX: usize = 256;
/// Most clients accepted in a row from one listener: all that can wait.
const ACCEPTS_MAX: usize = 512;
/// Time between two looks at clients that do not read their answers; `LOOKS`: number of looks in a row without
/// progress before the connection is closed.
const LOOK_EVERY: Duration = Duration::from_secs(STALL_SECONDS / LOOKS as u64);
const LOOKS: u32 = 6;
/// Pause in accepting clients when there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// Time at the end for clients to read their answers, and for workers to make them.
const END_WAIT: Duration = Duration::from_secs(2);
const END_WAIT_WORKERS: Duration = Duration::from_secs(15);

/// Serves until `stop`.
pub(super) fn run(
    listener: Rrdcached,
    store: &Store,
    stop: &listener::StopSignal,
) -> io::Result<()> {
    let Rrdcached {
        settings,
        sockets,
        log,
    } = listener;
    let shared = Arc::new(Shared {
        names: Names::new(&settings),
        settings,
        store: store.clone(),
        log,
        updates_received: AtomicU64::new(0),
        flushes_received: AtomicU64::new(0),
        heavy: Mutex::default(),
        reported: Mutex::default(),
    });
    let mut event_loop = EventLoop::new(Arc::clone(&shared), sockets, stop)?;
    shared.log(Severity::Info, "listening for connections");
    event_loop.serve()?;
    event_loop.wind_up()
}

struct EventLoop<'a> {
    shared: Arc<Shared>,
    stop: &'a listener::StopSignal,
    poll: OwnedFd,
    wake: Arc<Wake>,
    workers: Workers,
    /// With `--durable`.
    syncer: Option<Arc<Syncer>>,
    /// Answers that wait for the disk.
    group: Group,
    sockets: Vec<ListeningSocket>,
    /// Finds the user of a TCP connection; `None`: all TCP clients of this machine count as one client.
    owners: Option<TcpOwners>,
    /// End of a pause in accepting clients.
    paused: Option<Instant>,
    reported: Option<Instant>,
    /// Buffer for reading.
    room: Vec<u8>,
    connections: Vec<Option<Box<Connection>>>,
    vacant: Vec<usize>,
    /// Number of connections that workers have.
    away: usize,
    /// Connections with lines for the next batch.
    ready: Vec<usize>,
    held: Held,
    /// Time of the next look at clients that do not read their answers; `None`: all clients do.
    look_at: Option<Instant>,
    /// Connections closed because all held too much, since the last log line about them, and the time of that line.
    shed: u64,
    shedding_reported: Option<Instant>,
    ending: bool,
}

impl<'a> EventLoop<'a> {
    fn new(
        shared: Arc<Shared>,
        sockets: Vec<ListeningSocket>,
        stop: &'a listener::StopSignal,
    ) -> io::Result<EventLoop<'a>> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = Arc::new(Wake::new()?);
        let syncer = match shared.settings.durable {
            true => Some(Syncer::start(Arc::clone(&shared), Arc::clone(&wake))?),
            false => None,
        };
        let watch = |file: &dyn AsFd, number| {
            let file = file.as_fd();
            epoll::add(&poll, file, EventData::new_u64(number), EventFlags::IN)
        };
        watch(stop, STOP)?;
        watch(&wake.file, WAKE)?;
        for (i, listener) in sockets.iter().enumerate() {
            watch(&listener.socket, LISTENERS + i as u64)?;
        }
        Ok(EventLoop {
            workers: Workers::new(Arc::clone(&shared), Arc::clone(&wake)),
            owners: TcpOwners::open().ok(),
            shared,
            stop,
            poll,
            wake,
            syncer,
            group: Group::default(),
            sockets,
            paused: None,
            reported: None,
            room: Vec::with_capacity(READ_SIZE),
            connections: Vec::new(),
            vacant: Vec::new(),
            away: 0,
            ready: Vec::new(),
            held: Held::default(),
            look_at: None,
            shed: 0,
            shedding_reported: None,
            ending: false,
        })
    }

    /// Serves until `stop`.
    fn serve(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            let next = self.paused.into_iter().chain(self.look_at).min();
            let timeout = next.map(|until| until.saturating_duration_since(Instant::now()));
            self.wait(&mut events, timeout)?;
            self.accept_again();
            self.look_for_progress();
            if events.iter().any(|event| event.data.u64() == STOP) {
                return Ok(());
            }
            self.handle(&events);
            self.serve_batch();
            self.make_room();
        }
    }

    fn wait(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        events.clear();
        let timeout = self.sync_in(timeout);
        // Rounded up: a wait of nothing would spin.
        let rounded = |timeout: Duration| Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: i64::from(timeout.subsec_nanos().max(1000)),
        };
        let timeout = match self.ready.is_empty() {
            true => timeout.map(rounded),
            false => Some(Timespec::default()),
        };
        let room = rustix::buffer::spare_capacity(events);
        match epoll::wait(&self.poll, room, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Begins a sync if it is due; otherwise shortens the timeout to the begin of the sync.
    fn sync_in(&mut self, timeout: Option<Duration>) -> Option<Duration> {
        let Some(syncer) = &self.syncer else {
            return timeout;
        };
        match self.group.begin(Instant::now) {
            None => timeout,
            Some(Ok(position)) => {
                syncer.want(position);
                timeout
            }
            Some(Err(left)) => Some(timeout.map_or(left, |timeout| timeout.min(left))),
        }
    }

    fn handle(&mut self, events: &[Event]) {
        for event in events {
            // Copied out: the struct is packed.
            let (number, flags) = (event.data.u64(), event.flags);
            match number {
                STOP => {}
                WAKE => self.news(),
                number if number >= CONNECTIONS => {
                    self.connection((number - CONNECTIONS) as usize, flags);
                }
                number => self.accept((number - LISTENERS) as usize),
            }
        }
    }

    fn news(&mut self) {
        let News { returned, synced } = self.wake.take();
        for (connection, stop) in returned {
            self.away -= 1;
            self.held.take_back(&connection);
            if let Some(position) = connection.waits_for() {
                self.group.add(position);
            }
            let place = self.place(connection);
            self.watch_new(place);
            self.settle(place, stop);
        }
        for synced in synced {
            self.synced(synced);
        }
    }

    /// Sends the answers that waited for the disk.
    fn synced(&mut self, synced: Synced) {
        let (mut released, mut waiting) = (0, 0);
        for place in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[place] else {
                continue;
            };
            match synced {
                _ if connection.waits_for().is_none() => {}
                Synced::To(position) => {
                    connection.release(position);
                    match connection.waits_for() {
                        None => released += 1,
                        Some(_) => waiting += 1,
                    }
                    self.after_sending(place);
                }
                // The update may be stored or not, so the client may get neither yes nor no.
                Synced::Failed(_) => self.close(place),
            }
        }
        self.group.done(Instant::now(), released, waiting);
    }

    // New clients.

    fn accept(&mut self, listener: usize) {
        for _ in 0..ACCEPTS_MAX {
            if self.is_full() && !self.make_place() {
                let text = format!("there are {CONNECTIONS_MAX}, and no more may be");
                return self.pause_accepting(&io::Error::other(text));
            }
            let Some(ListeningSocket {
                socket,
                permissions,
                ..
            }) = self.sockets.get(listener)
            else {
                return;
            };
            match listen::accept(socket) {
                Ok(None) => return,
                Ok(Some(client)) => {
                    listen::send_at_once(&client);
                    let writer = writer(&client, self.shared.settings.writers);
                    // The client is gone already.
                    let Some(writer) = writer else { continue };
                    let peer = tcp_owner::share(&client, self.owners.as_ref());
                    let connection = Connection::new(client, *permissions, peer, writer);
                    let place = self.place(Box::new(connection));
                    self.watch_new(place);
                }
                Err(error) => {
                    // There are no file descriptors left, for example.
                    self.make_place();
                    return self.pause_accepting(&error);
                }
            }
        }
    }

    fn is_full(&self) -> bool {
        self.connections.len() - self.vacant.len() + self.away >= CONNECTIONS_MAX
    }

    /// Closes some connections of the client with more than half of all. True if there was one.
    fn make_place(&mut self) -> bool {
        let go = shares::make_place(self.shares());
        go.iter().for_each(|&place| self.close(place));
        if !go.is_empty() {
            let text = "closed connections of the client with most of them, to make room";
            self.say(text);
        }
        !go.is_empty()
    }

    fn shares(&self) -> Vec<Share> {
        let there = self.connections.iter().enumerate();
        let share = |(place, connection): (usize, &Option<Box<Connection>>)| {
            connection.as_ref().map(|connection| Share {
                place,
                peer: connection.peer,
                bytes: connection.counted,
            })
        };
        there.filter_map(share).collect()
    }

    /// Accepts no clients for a moment: there are no file descriptors or no memory for them, and more attempts would
    /// only use CPU time that connected clients need.
    fn pause_accepting(&mut self, error: &io::Error) {
        let now = self.say(&format!("cannot accept a connection: {error}"));
        self.paused = Some(now + ACCEPT_PAUSE);
        self.listen_for(EventFlags::empty());
    }

    /// Logs why clients cannot be accepted, but not each time. Returns the current time.
    fn say(&mut self, text: &str) -> Instant {
        let now = Instant::now();
        if self
            .reported
            .is_none_or(|reported| now - reported > SAY_EVERY)
        {
            self.reported = Some(now);
            self.shared.log(Severity::Error, text);
        }
        now
    }

    fn accept_again(&mut self) {
        if self.paused.is_some_and(|until| until <= Instant::now()) {
            self.paused = None;
            self.listen_for(EventFlags::IN);
        }
    }

    fn listen_for(&mut self, flags: EventFlags) {
        for (i, listener) in self.sockets.iter().enumerate() {
            let number = EventData::new_u64(LISTENERS + i as u64);
            // Cannot fail: the socket was added when the loop began.
            let _ = epoll::modify(&self.poll, &listener.socket, number, flags);
        }
    }

    // Connected clients.

    fn place(&mut self, connection: Box<Connection>) -> usize {
        match self.vacant.pop() {
            Some(place) => {
                self.connections[place] = Some(connection);
                place
            }
            None => {
                self.connections.push(Some(connection));
                self.connections.len() - 1
            }
        }
    }

    fn remove(&mut self, place: usize) -> Option<Box<Connection>> {
        let connection = self.connections.get_mut(place)?.take()?;
        self.vacant.push(place);
        Some(connection)
    }

    /// Ends a connection; its socket is closed with it.
    fn close(&mut self, place: usize) {
        if let Some(connection) = self.remove(place) {
            self.held.forget(&connection);
        }
    }

    /// Closes connections of the clients that hold most, while all together hold too much.
    fn make_room(&mut self) {
        if !self.held.is_too_much() {
            return;
        }
        for place in shares::make_memory(self.shares()) {
            if self.held.is_enough() {
                break;
            }
            self.close(place);
            self.shed += 1;
        }
        self.tell_of_shed();
    }

    /// Logs the number of closed connections, but not each time.
    fn tell_of_shed(&mut self) {
        let now = Instant::now();
        if self.shed == 0
            || self
                .shedding_reported
                .is_some_and(|shedding_reported| now - shedding_reported < SAY_EVERY)
        {
            return self.look_soon();
        }
        let (shed, most) = (mem::take(&mut self.shed), HELD_MAX >> 20);
        self.shedding_reported = Some(now);
        self.shared.log(
            Severity::Error,
            &format!(
                "closed {shed} connections: clients had more than {most} MiB of lines not ended and answers not taken"
            ),
        );
    }

    fn look_soon(&mut self) {
        self.look_at
            .get_or_insert_with(|| Instant::now() + LOOK_EVERY);
    }

    /// Closes connections whose clients do not read their answers.
    fn look_for_progress(&mut self) {
        if self.look_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        self.look_at = None;
        let mut stalled = 0;
        for place in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[place] else {
                continue;
            };
            if connection.look_for_progress() > LOOKS {
                stalled += 1;
                self.close(place);
            } else if connection.may_send() {
                self.look_soon();
            }
        }
        if stalled > 0 {
            let text = format!(
                "closed {stalled} connections: clients took nothing of their answers for {STALL_SECONDS} s"
            );
            self.shared.log(Severity::Info, &text);
        }
        if self.shed > 0 {
            self.tell_of_shed();
        }
    }

    fn watch_new(&mut self, place: usize) {
        let Some(Some(connection)) = self.connections.get_mut(place) else {
            return;
        };
        connection.interest = EventFlags::IN;
        let number = EventData::new_u64(CONNECTIONS + place as u64);
        let added = epoll::add(&self.poll, &connection.socket, number, EventFlags::IN);
        if let Err(error) = added {
            self.shared.log(
                Severity::Error,
                &format!("cannot watch a connection: {error}"),
            );
            self.close(place);
        }
    }

    /// Handles an event of a connection.
    fn connection(&mut self, place: usize, flags: EventFlags) {
        let Some(Some(connection)) = self.connections.get_mut(place) else {
            return;
        };
        let gone = flags.intersects(EventFlags::HUP | EventFlags::ERR);
        if connection.interest.contains(EventFlags::IN) {
            if flags.contains(EventFlags::IN) || gone {
                self.read(place);
            }
        } else if gone {
            // The client is gone and will not read the answers.
            return self.close(place);
        }
        if flags.contains(EventFlags::OUT) {
            self.after_sending(place);
        }
    }

    fn read(&mut self, place: usize) {
        let Some(Some(connection)) = self.connections.get_mut(place) else {
            return;
        };
        match connection.read(&mut self.room) {
            Err(_) => self.close(place),
            Ok(came) => {
                connection.ended |= came == Came::End;
                self.ready.push(place);
            }
        }
    }

    /// Sends answers, then serves lines that had to wait for that.
    fn after_sending(&mut self, place: usize) {
        let Some(Some(connection)) = self.connections.get_mut(place) else {
            return;
        };
        if connection.send().is_err() {
            return self.close(place);
        }
        if mem::take(&mut connection.stalled) {
            match connection.has_answers() {
                true => connection.stalled = true,
                false => self.ready.push(place),
            }
        }
        self.look_after(place);
    }

    /// Serves all ready connections with one write batch of the store.
    fn serve_batch(&mut self) {
        let mut taken: Vec<(usize, Box<Connection>)> = Vec::with_capacity(self.ready.len());
        for place in self.ready.drain(..) {
            // A place may be listed twice.
            if let Some(connection) = self.connections.get_mut(place).and_then(Option::take) {
                taken.push((place, connection));
            }
        }
        if taken.is_empty() {
            return;
        }
        let mut all: Vec<&mut Connection> = taken.iter_mut().map(|(_, c)| &mut **c).collect();
        let (stops, position) = serve_batch(&self.shared, &mut all);
        for ((place, mut connection), stop) in taken.into_iter().zip(stops) {
            if self.syncer.is_some() && connection.hold(position) {
                self.group.add(position);
            }
            self.connections[place] = Some(connection);
            self.settle(place, stop);
        }
    }

    /// After lines were served: sends, hands over to a worker, closes, or waits for more.
    fn settle(&mut self, place: usize, stop: Stop) {
        let Some(Some(connection)) = self.connections.get_mut(place) else {
            return;
        };
        if connection.send().is_err() {
            return self.close(place);
        }
        match stop {
            Stop::Slow | Stop::Long => return self.hand_over(place),
            Stop::Close => connection.closing = true,
            Stop::Full => connection.stalled = true,
            Stop::Drained if connection.is_endless() => return self.close(place),
            Stop::Drained => connection.closing |= connection.ended || self.ending,
        }
        connection.rest();
        if connection.stalled && !connection.has_answers() {
            connection.stalled = false;
            self.ready.push(place);
        }
        self.look_after(place);
    }

    fn hand_over(&mut self, place: usize) {
        if let Some(mut connection) = self.remove(place) {
            // Cannot fail: the loop watches this connection.
            let _ = epoll::delete(&self.poll, &connection.socket);
            if !self.held.lend(&mut connection) {
                self.held.forget(&connection);
                self.shed += 1;
                return self.tell_of_shed();
            }
            self.away += 1;
            self.workers.submit(connection);
        }
    }

    /// Closes a finished connection, or sets the events to wait for.
    fn look_after(&mut self, place: usize) {
        let Some(Some(connection)) = self.connections.get_mut(place) else {
            return;
        };
        if connection.closing && !connection.has_answers() {
            return self.close(place);
        }
        let reads = !connection.closing && !connection.ended && !connection.stalled;
        let mut interest = EventFlags::empty();
        interest.set(EventFlags::IN, reads);
        interest.set(EventFlags::OUT, connection.may_send());
        self.held.count(connection);
        if interest == connection.interest {
            return;
        }
        connection.interest = interest;
        let number = EventData::new_u64(CONNECTIONS + place as u64);
        if epoll::modify(&self.poll, &connection.socket, number, interest).is_err() {
            self.close(place);
        } else if interest.contains(EventFlags::OUT) {
            self.look_soon();
        }
    }

    /// The end: accepts no new clients, answers received lines, waits for workers, and sends the answers.
    fn wind_up(&mut self) -> io::Result<()> {
        // The file stays readable and would end each wait at once.
        epoll::delete(&self.poll, self.stop)?;
        // A client that has connected believes that it was accepted, so it is.
        for listener in 0..self.sockets.len() {
            self.accept(listener);
        }
        for socket in mem::take(&mut self.sockets) {
            if let Some(name) = &socket.name {
                // Somebody may have removed the name already.
                let _ = name.remove();
            }
        }
        self.shedding_reported = None;
        self.tell_of_shed();
        self.ending = true;
        self.workers.end();
        for place in 0..self.connections.len() {
            self.read(place);
        }
        self.serve_batch();
        let begun = Instant::now();
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            let limit = match self.away {
                0 => END_WAIT,
                _ => END_WAIT_WORKERS,
            };
            let left = limit.saturating_sub(begun.elapsed());
            let there = self.connections.iter().flatten().next().is_some();
            if left.is_zero() || (self.away == 0 && !there) {
                break;
            }
            self.wait(&mut events, Some(left.min(Duration::from_millis(100))))?;
            self.handle(&events);
            self.serve_batch();
        }
        self.connections.clear();
        if let Some(syncer) = &self.syncer {
            syncer.end();
        }
        Ok(())
    }
}

/// The writer that a client counts as; `None`: the client is gone.
fn writer(client: &OwnedFd, writers: Writers) -> Option<Writer> {
    let peer = match writers {
        Writers::Anybody => return Some(Writer::ANYBODY),
        Writers::Shared | Writers::One => listen::peer(client)?,
    };
    Some(match (peer, writers) {
        (Peer::User(uid), Writers::One) => Writer::uid(uid),
        (Peer::Address(address), Writers::One) => Writer::address(address),
        (Peer::User(_), Writers::Anybody | Writers::Shared) => Writer::local_clients(PROTOCOL),
        (Peer::Address(_), Writers::Anybody | Writers::Shared) => Writer::remote_clients(PROTOCOL),
    })
}
