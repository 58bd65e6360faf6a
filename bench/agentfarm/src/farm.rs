//! The farm: one socket for the addresses of all devices, and a thread that answers for them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kymo_sys::datagrams::{Datagrams, Outbox, UdpSocket, bind_udp_loopback};
use kymo_wire::snmp::{ErrorStatus, Message, PduKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::answer::{Scratch, put_answer};
use crate::behaviour::{Behaviour, Percent};
use crate::counts::Counts;
use crate::delayed::{Delayed, Letter};
use crate::lie::Lie;
use crate::traffic::scatter;
use crate::users;
use crate::view::{Device, View};

/// Datagrams received by one call.
const BATCH: usize = 64;
/// The queue of the socket, in bytes.
const QUEUE_BYTES: usize = 64 << 20;
/// Longest time until a farm notices that it has to stop.
const STOP_AFTER: Duration = Duration::from_millis(50);

/// Settings of a new farm.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The first device's address, in 127.0.0.0/8; the others follow one by one.
    pub first: Ipv4Addr,
    /// Port of all devices; 0: any free one.
    pub port: u16,
    /// Number of devices.
    pub devices: u32,
    /// Number of interfaces of all devices together, distributed as evenly as possible.
    pub interfaces: u32,
    /// The community of accepted requests.
    pub community: Vec<u8>,
}

/// A farm that runs until drop.
pub struct Farm {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    settings: Settings,
}

struct Shared {
    devices: Mutex<Vec<(Behaviour, Counts)>>,
    stop: AtomicBool,
}

impl Shared {
    fn devices(&self) -> MutexGuard<'_, Vec<(Behaviour, Counts)>> {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nanoseconds since 1970.
pub(crate) fn now_ns() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl Farm {
    /// Binds the socket, so that requests wait from now on, and starts the thread.
    pub fn start(mut settings: Settings) -> io::Result<Farm> {
        let socket = bind_udp_loopback(settings.port, QUEUE_BYTES)?;
        let bound = SocketAddr::try_from(rustix::net::getsockname(&socket.socket)?)?;
        settings.port = bound.port();
        let now_ns = now_ns();
        let devices = (0..settings.devices).map(|device| {
            let days = 1 + scatter(device.into()) % 400;
            let started_ns = now_ns.saturating_sub(days * 86_400_000_000_000);
            (Behaviour::good(started_ns), Counts::default())
        });
        let shared = Arc::new(Shared {
            devices: Mutex::new(devices.collect()),
            stop: AtomicBool::new(false),
        });
        let mut agents = Agents::new(socket, settings.clone(), shared.clone());
        let thread = std::thread::Builder::new()
            .name("agents".into())
            .spawn(move || agents.run())?;
        Ok(Farm {
            shared,
            thread: Some(thread),
            settings,
        })
    }

    /// The settings of the start, with the port that was found.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Address of a device, counted from 0.
    pub fn address(&self, device: u32) -> Ipv4Addr {
        address(&self.settings, device)
    }

    /// Number of a device's interfaces.
    pub fn interfaces(&self, device: u32) -> u32 {
        shape(&self.settings, device).interfaces
    }

    /// Changes a device's behaviour from the next request on.
    /// The closure gets the time in nanoseconds since 1970.
    pub fn change(&self, device: u32, change: impl FnOnce(&mut Behaviour, u64)) {
        if let Some((behaviour, _)) = self.shared.devices().get_mut(device as usize) {
            change(behaviour, now_ns());
        }
    }

    /// Counts of one device since the start.
    pub fn counts_of(&self, device: u32) -> Counts {
        let devices = self.shared.devices();
        devices
            .get(device as usize)
            .map(|&(_, counts)| counts)
            .unwrap_or_default()
    }

    /// Counts of all devices.
    pub fn counts(&self) -> Counts {
        let mut all = Counts::default();
        self.shared
            .devices()
            .iter()
            .for_each(|&(_, counts)| all += counts);
        all
    }

    /// Sets all counts to 0.
    pub fn forget_counts(&self) {
        for (_, counts) in self.shared.devices().iter_mut() {
            *counts = Counts::default();
        }
    }
}

impl Drop for Farm {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn address(settings: &Settings, device: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(settings.first).wrapping_add(device))
}

fn shape(settings: &Settings, device: u32) -> Device {
    let (each, more) = (
        settings.interfaces / settings.devices.max(1),
        settings.interfaces % settings.devices.max(1),
    );
    Device {
        number: device,
        interfaces: each + u32::from(device < more),
        interfaces_before: each * device + more.min(device),
    }
}

/// State of the thread.
struct Agents {
    socket: UdpSocket,
    settings: Settings,
    shared: Arc<Shared>,
    sending: Sending,
    scratch: Scratch,
}

/// Replies to be sent, and a source of random numbers.
struct Sending {
    outbox: Outbox,
    delayed: Delayed,
    random: u64,
}

impl Sending {
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(1);
        scatter(self.random)
    }

    fn happens(&mut self, percent: Percent) -> bool {
        percent.0 > 0.0 && (self.random() % 1_000_000) as f64 / 10_000.0 < percent.0
    }
}

impl Agents {
    fn new(socket: UdpSocket, settings: Settings, shared: Arc<Shared>) -> Agents {
        Agents {
            socket,
            settings,
            shared,
            sending: Sending {
                outbox: Outbox::default(),
                delayed: Delayed::default(),
                random: now_ns(),
            },
            scratch: Scratch::default(),
        }
    }

    fn run(&mut self) {
        let mut datagrams = Datagrams::new(BATCH);
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.wait();
            // A socket error concerns one datagram only.
            while datagrams.receive(&self.socket.socket).unwrap_or(0) > 0 {
                self.answer(&mut datagrams);
                self.send();
            }
            self.send();
        }
    }

    /// Waits for a datagram, or until a reply is due.
    fn wait(&mut self) {
        let due = self.sending.delayed.next();
        let left = due.map_or(STOP_AFTER, |due| {
            due.saturating_duration_since(Instant::now())
        });
        let timeout = Timespec::try_from(left.min(STOP_AFTER)).ok();
        let mut files = [PollFd::new(&self.socket.socket, PollFlags::IN)];
        let _ = poll(&mut files, timeout.as_ref());
    }

    fn send(&mut self) {
        let now = Instant::now();
        while let Some(letter) = self.sending.delayed.take(now) {
            let put = |out: &mut Vec<u8>| out.extend_from_slice(&letter.bytes);
            self.sending.outbox.push_from(letter.from, letter.to, put);
        }
        if !self.sending.outbox.is_empty() {
            // A reply that the kernel refuses counts as lost.
            let _ = self.sending.outbox.send(&self.socket.socket);
        }
    }

    fn answer(&mut self, datagrams: &mut Datagrams) {
        let (now, now_ns) = (Instant::now(), now_ns());
        let mut devices = self.shared.devices();
        for datagram in datagrams.iter_mut() {
            let Some(local) = datagram.local else {
                continue;
            };
            let number = u32::from(local).wrapping_sub(u32::from(self.settings.first));
            let Some((behaviour, counts)) = devices.get_mut(number as usize) else {
                continue;
            };
            counts.requests += 1;
            if counts.first_ns == 0 {
                counts.first_ns = now_ns;
            }
            counts.bytes_in += datagram.bytes.len() as u64;
            let request = Request {
                device: shape(&self.settings, number),
                community: &self.settings.community,
                bytes: datagram.bytes,
                from: datagram.sender,
                to: local,
                now,
                now_ns,
            };
            request.serve(behaviour, counts, &mut self.scratch, &mut self.sending);
        }
    }
}

/// One request, and its arrival.
struct Request<'a> {
    device: Device,
    community: &'a [u8],
    bytes: &'a [u8],
    from: SocketAddr,
    to: Ipv4Addr,
    now: Instant,
    now_ns: u64,
}

impl Request<'_> {
    fn serve(
        &self,
        behaviour: &Behaviour,
        counts: &mut Counts,
        scratch: &mut Scratch,
        sending: &mut Sending,
    ) {
        let Ok(message) = Message::decode(self.bytes) else {
            let answer = users::answer(self.bytes, self.community, self.now_ns, |message| {
                self.answer_user(message, behaviour, scratch)
            });
            return match answer {
                Some(answer) => {
                    counts.replies += 1;
                    counts.last_ns = counts.last_ns.max(self.now_ns);
                    counts.bytes_out += answer.len() as u64;
                    let outbox = &mut sending.outbox;
                    outbox.push_from(self.to, self.from, |out| out.extend_from_slice(&answer));
                }
                None => counts.malformed += 1,
            };
        };
        let varbinds = message.varbinds.count();
        counts.varbinds += varbinds as u64;
        counts.walks += u64::from(message.head.kind != PduKind::Get);
        if message.head.community != self.community {
            counts.strangers += 1;
            return;
        }
        let lost = behaviour.dead || varbinds > behaviour.varbinds_max;
        if lost || sending.happens(behaviour.loss) {
            counts.lost += 1;
            return;
        }
        let delay_us = behaviour.latency_us + behaviour.varbind_us * varbinds as u64;
        let view = View {
            device: self.device,
            behaviour,
            version: message.head.version,
            at_ns: self.now_ns + delay_us * 500,
        };
        self.reply(&message, &view, delay_us, (scratch, sending, counts));
    }

    /// The answer to a request of SNMPv3, which knows no delays and no lies.
    fn answer_user(
        &self,
        message: &Message,
        behaviour: &Behaviour,
        scratch: &mut Scratch,
    ) -> Option<Vec<u8>> {
        let view = View {
            device: self.device,
            behaviour,
            version: message.head.version,
            at_ns: self.now_ns,
        };
        let mut out = Vec::new();
        put_answer(message, &view, scratch, &mut out).ok()?;
        Some(out)
    }

    fn reply(
        &self,
        message: &Message,
        view: &View,
        delay_us: u64,
        (scratch, sending, counts): (&mut Scratch, &mut Sending, &mut Counts),
    ) {
        let behaviour = view.behaviour;
        let late = sending.happens(behaviour.late);
        let copies = 1 + u64::from(sending.happens(behaviour.duplicated));
        let delay_us = delay_us + if late { behaviour.late_us } else { 0 };
        let mut status = Ok(ErrorStatus::NO_ERROR);
        let mut size = 0;
        if delay_us == 0 && copies == 1 && behaviour.lie.is_none() {
            sending.outbox.push_from(self.to, self.from, |out| {
                let start = out.len();
                status = put_answer(message, view, scratch, out);
                size = out.len() - start;
            });
        } else {
            let mut bytes = Vec::new();
            status = put_answer(message, view, scratch, &mut bytes);
            if let Some(lie) = behaviour.lie {
                bytes = lie.spoil(&bytes, sending.random());
            }
            size = bytes.len();
            for _ in 0..copies {
                let letter = Letter {
                    from: self.sender(behaviour.lie),
                    to: self.from,
                    bytes: bytes.clone(),
                };
                let due = self.now + Duration::from_micros(delay_us);
                sending.delayed.add(due, letter);
            }
        }
        match status {
            Ok(status) => {
                counts.replies += copies;
                counts.last_ns = counts.last_ns.max(self.now_ns + delay_us * 1000);
                counts.bytes_out += copies * size as u64;
                counts.too_big += u64::from(status == ErrorStatus::TOO_BIG);
            }
            Err(_) => counts.malformed += 1,
        }
    }

    /// Source address of the reply.
    fn sender(&self, lie: Option<Lie>) -> Ipv4Addr {
        match lie {
            Some(Lie::Address) => Ipv4Addr::from(u32::from(self.to) ^ 0x0000_8000),
            _ => self.to,
        }
    }
}
