//! Sends a fleet's packets at a rate, each host from its own address, and never catches up by more than a few
//! milliseconds: a burst would overflow a receiver's queue. collectd's queue is short, so the sender pauses while much
//! waits in it.

use super::contender::Hub;
use super::fleet::{Fleet, STEP_S};
use crate::fault::{Cannot, Result};
use crate::procfs;
use crate::progress::Progress;
use std::net::{Ipv4Addr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Shortest sleep: packets due within it are sent at once.
const NAP: Duration = Duration::from_millis(1);
/// A host's packets are sent while no more than this waits: a quarter of Linux's `net.core.rmem_default`.
const WAITING_MAX: u64 = 53_248;
/// Hosts of one /24 network.
const HOSTS_A_NET: usize = 250;

/// A sender with a socket for each host.
pub(crate) struct Sender {
    sockets: Vec<UdpSocket>,
    rate: f64,
    behind_max: Duration,
    /// Port whose queue is checked.
    gate: Option<u16>,
    /// Due time of the next packet.
    due: Instant,
}

impl Sender {
    /// A sender to a hub, at the rate that the hub receives without a loss.
    pub(super) fn to(hub: &Hub, fleet: &Fleet) -> Result<Sender> {
        let sender = Sender::new(fleet, hub.port, hub.who.rate(), hub.who.behind_max())?;
        let gate = (!hub.who.is_ours()).then_some(hub.port);
        Ok(Sender { gate, ..sender })
    }

    /// A sender to a port of loopback, at a rate in values a second.
    pub(crate) fn new(fleet: &Fleet, port: u16, rate: f64, behind_max: Duration) -> Result<Sender> {
        let connected = |host: usize| -> Result<UdpSocket> {
            let (net, number) = (1 + host / HOSTS_A_NET, 1 + host % HOSTS_A_NET);
            let from = Ipv4Addr::new(127, 1, net as u8, number as u8);
            let socket = UdpSocket::bind((from, 0)).cannot("make a socket")?;
            let to = (Ipv4Addr::LOCALHOST, port);
            socket.connect(to).cannot("connect a socket")?;
            Ok(socket)
        };
        Ok(Sender {
            sockets: (0..fleet.hosts()).map(connected).collect::<Result<_>>()?,
            rate,
            behind_max,
            gate: None,
            due: Instant::now(),
        })
    }

    /// Sends a value of each series.
    pub(super) fn step(&mut self, fleet: &mut Fleet, step: u64) -> Result<()> {
        for host in 0..fleet.hosts() {
            self.host(fleet, host, step)?;
        }
        Ok(())
    }

    /// Sends many steps without pauses between them.
    pub(super) fn steps(&mut self, fleet: &mut Fleet, steps: std::ops::Range<u64>) -> Result<()> {
        let (first, end) = (steps.start, steps.end);
        let mut progress = Progress::of("steps");
        for step in steps {
            self.step(fleet, step)?;
            progress.at(step - first, end - first);
        }
        Ok(())
    }

    /// Sends the values of one host.
    fn host(&mut self, fleet: &mut Fleet, host: usize, step: u64) -> Result<()> {
        let Sender {
            sockets,
            rate,
            behind_max,
            gate,
            due,
        } = self;
        if let Some(port) = *gate {
            while procfs::udp_queue(port)?.is_some_and(|queue| queue.waiting_bytes > WAITING_MAX) {
                sleep(NAP);
            }
        }
        fleet.next(host, step, |packet, count| {
            let mut now = Instant::now();
            if *due > now + NAP {
                sleep(*due - now);
                now = Instant::now();
            }
            *due = (*due).max(now.checked_sub(*behind_max).unwrap_or(now));
            *due += Duration::from_secs_f64(count as f64 / *rate);
            let sent = sockets[host].send(packet);
            sent.cannot("send a packet").map(drop)
        })
    }

    /// Sends steps in real time, each host at its moment.
    pub(crate) fn in_real_time(&mut self, fleet: &mut Fleet, first: u64, steps: u64) -> Result<()> {
        let begun = Instant::now();
        fleet.go_on_from_now();
        let mut progress = Progress::of(format!("steps of {STEP_S} s"));
        for step in 0..steps {
            for host in 0..fleet.hosts() {
                let moment = Duration::from_nanos(fleet.phase_ns(host));
                let due = Duration::from_secs(step * STEP_S) + moment;
                sleep(due.saturating_sub(begun.elapsed()));
                self.host(fleet, host, first + step)?;
            }
            progress.at(step, steps);
        }
        let whole = Duration::from_secs(steps * STEP_S);
        sleep(whole.saturating_sub(begun.elapsed()));
        Ok(())
    }
}
