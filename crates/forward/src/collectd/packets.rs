//! Values become packets. UDP has no flow control, so packets go in small bursts at a limited rate; a burst goes again if the
//! network or the other machine refuses it.

use std::net::IpAddr;

use kymo_wire::collectd::{Encoder, PACKET_DEFAULT, Pushed, ValueList};

use super::link::Link;
use crate::delay::Delay;
use crate::ledger::Ledger;

/// Packets that go at once: far fewer than fit into the buffer that a socket has by default.
const BURST: usize = 8;

/// Makes packets, and sends them.
pub(super) struct Packets {
    link: Link,
    encoder: Encoder,
    /// Samples in the encoder's packet.
    samples: u64,
    /// Packets that are full, and the number of their samples.
    burst: Vec<Vec<u8>>,
    burst_samples: u64,
}

impl Packets {
    /// Packets for a receiver.
    pub(super) fn new(link: Link) -> Packets {
        Packets {
            link,
            encoder: Encoder::new(PACKET_DEFAULT),
            samples: 0,
            burst: Vec::new(),
            burst_samples: 0,
        }
    }

    /// Address of the receiver; `None`: it is not known now.
    pub(super) fn peer(&mut self) -> Option<IpAddr> {
        self.link.peer()
    }

    /// Adds values. A full packet ends first.
    pub(super) fn push(&mut self, list: &ValueList, ledger: &mut Ledger) {
        let mut pushed = self.encoder.push(list);
        if pushed == Pushed::Full {
            self.end_packet(ledger);
            pushed = self.encoder.push(list);
        }
        let samples = u64::try_from(list.values.len()).unwrap_or(0);
        match pushed {
            Pushed::Added => self.samples += samples,
            Pushed::Full | Pushed::Refused => {
                ledger.refused(samples, "their name is too long for a packet");
            }
        }
    }

    /// Sends all that was added.
    pub(super) fn flush(&mut self, ledger: &mut Ledger) {
        self.end_packet(ledger);
        self.send(ledger);
    }

    fn end_packet(&mut self, ledger: &mut Ledger) {
        if self.encoder.payload().is_empty() {
            return;
        }
        self.burst.push(self.link.protected(self.encoder.payload()));
        self.burst_samples += std::mem::take(&mut self.samples);
        self.encoder.clear();
        if self.burst.len() >= BURST {
            self.send(ledger);
        }
    }

    /// Sends the burst until it is not refused.
    fn send(&mut self, ledger: &mut Ledger) {
        if self.burst.is_empty() {
            return;
        }
        let mut delay = Delay::default();
        while let Err(why) = self.link.send(&self.burst) {
            ledger.failed(&why, &mut delay, None);
        }
        self.burst.iter().for_each(|_| ledger.request());
        let bytes = self.burst.iter().map(Vec::len).sum();
        ledger.sent(std::mem::take(&mut self.burst_samples), bytes);
        self.burst.clear();
    }
}
