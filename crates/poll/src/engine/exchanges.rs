//! Pending requests. Each may be sent several times; an answer to any of its attempts ends it.

use kymo_wire::snmp::RequestMessage;

/// An engine of SNMPv3 may say once that it is another one, then which one, then its time. More would be a device that keeps the
/// poller busy.
const RENEWALS_MAX: u8 = 3;

/// Purposes of requests.
pub(crate) enum Purpose {
    /// A PDU with readings of the device.
    Pdu(usize),
    /// The next rows of the device's current walk.
    Walk(RequestMessage),
    /// A probe of a silent device.
    Probe(RequestMessage),
}

impl Purpose {
    /// True if the next request depends on the answer.
    fn is_step(&self) -> bool {
        !matches!(self, Purpose::Pdu(_))
    }
}

/// A pending request.
pub(crate) struct Exchange {
    pub device: usize,
    pub purpose: Purpose,
    /// Id and sending time of each attempt.
    pub attempts: Vec<(i32, u64)>,
    /// Serial number, which differs from those of earlier exchanges with the same number.
    pub serial: u32,
    /// True while the request counts in the [`super::lane::Lane`].
    pub is_fresh: bool,
    /// Number of times that the request was sent as if it were new.
    pub renewals: u8,
    /// True while an attempt waits for room at its agent.
    pub is_queued: bool,
    /// The agent whose window the request occupies, until an answer or a timeout.
    pub agent: Option<usize>,
}

/// All pending requests, by number.
#[derive(Default)]
pub(crate) struct Exchanges {
    places: Vec<Option<Exchange>>,
    free: Vec<usize>,
    serials: u32,
    /// Number of requests on whose answers the next request depends.
    steps: usize,
    /// Vectors of attempts to be reused.
    spare: Vec<Vec<(i32, u64)>>,
}

impl Exchanges {
    /// Adds a request without an attempt.
    pub(crate) fn add(&mut self, device: usize, purpose: Purpose) -> usize {
        self.serials = self.serials.wrapping_add(1);
        self.steps += usize::from(purpose.is_step());
        let exchange = Exchange {
            device,
            purpose,
            attempts: self.spare.pop().unwrap_or_default(),
            serial: self.serials,
            is_fresh: false,
            renewals: 0,
            is_queued: false,
            agent: None,
        };
        match self.free.pop() {
            Some(number) => {
                self.places[number] = Some(exchange);
                number
            }
            None => {
                self.places.push(Some(exchange));
                self.places.len() - 1
            }
        }
    }

    /// A request, if it is still pending.
    pub(crate) fn get(&mut self, number: usize) -> Option<&mut Exchange> {
        self.places.get_mut(number)?.as_mut()
    }

    /// A request, if it is pending and has this serial number.
    pub(crate) fn same(&mut self, number: usize, serial: u32) -> Option<&mut Exchange> {
        self.get(number)
            .filter(|exchange| exchange.serial == serial)
    }

    /// True if the request with this serial number is pending.
    pub(crate) fn is_out(&self, number: usize, serial: u32) -> bool {
        let place = self.places.get(number).and_then(Option::as_ref);
        place.is_some_and(|exchange| exchange.serial == serial)
    }

    /// A request with a new serial number, which makes its timers void; `None`: it had too many of them.
    pub(crate) fn renew(&mut self, number: usize) -> Option<&mut Exchange> {
        let serial = self.serials.wrapping_add(1);
        let exchange = self.places.get_mut(number)?.as_mut()?;
        if exchange.renewals == RENEWALS_MAX {
            return None;
        }
        self.serials = serial;
        (exchange.serial, exchange.renewals) = (serial, exchange.renewals + 1);
        Some(exchange)
    }

    /// Marks a request that waits for room at its agent.
    pub(crate) fn queue(&mut self, number: usize) {
        if let Some(exchange) = self.get(number) {
            exchange.is_queued = true;
        }
    }

    /// True if a request is pending and its last attempt was sent.
    pub(crate) fn is_asked(&self, number: usize) -> bool {
        let place = self.places.get(number).and_then(Option::as_ref);
        place.is_some_and(|exchange| !exchange.is_queued)
    }

    /// Removes a request.
    pub(crate) fn take(&mut self, number: usize) -> Option<Exchange> {
        let exchange = self.places.get_mut(number)?.take()?;
        self.free.push(number);
        self.steps -= usize::from(exchange.purpose.is_step());
        Some(exchange)
    }

    /// True if no request depends on an answer.
    pub(crate) fn has_no_step(&self) -> bool {
        self.steps == 0
    }

    /// Keeps the memory of a removed request.
    pub(crate) fn done_with(&mut self, exchange: Exchange) {
        let mut attempts = exchange.attempts;
        attempts.clear();
        self.spare.push(attempts);
    }
}
