//! Requests that are out: each may be sent several times, and any of its attempts may be answered.

use kymo_wire::snmp::RequestMessage;

/// What a request is for.
pub(crate) enum Purpose {
    /// This PDU of the device.
    Pdu(usize),
    /// The next rows of the walk that the device is at.
    Walk(RequestMessage),
    /// Is anybody there?
    Probe(RequestMessage),
}

impl Purpose {
    /// Whether the answer decides what is asked next.
    fn is_step(&self) -> bool {
        !matches!(self, Purpose::Pdu(_))
    }
}

/// A request that is out.
pub(crate) struct Exchange {
    pub device: usize,
    pub purpose: Purpose,
    /// Of each attempt the id, and when it was sent.
    pub attempts: Vec<(i32, u64)>,
    /// Tells it from others that had its place before.
    pub serial: u32,
    /// It counts among those whose answers may come in a moment, all at once.
    pub is_fresh: bool,
    /// An attempt waits until its agent may be asked.
    pub is_queued: bool,
    /// The agent that is asked nothing else before it has answered, or time has passed.
    pub agent: Option<usize>,
}

/// All of them, by number.
#[derive(Default)]
pub(crate) struct Exchanges {
    places: Vec<Option<Exchange>>,
    free: Vec<usize>,
    serials: u32,
    /// Those whose answer decides what is asked next.
    steps: usize,
    /// Memory of attempts, to be used again.
    spare: Vec<Vec<(i32, u64)>>,
}

impl Exchanges {
    /// A new one, without an attempt.
    pub(crate) fn add(&mut self, device: usize, purpose: Purpose) -> usize {
        self.serials = self.serials.wrapping_add(1);
        self.steps += usize::from(purpose.is_step());
        let exchange = Exchange {
            device,
            purpose,
            attempts: self.spare.pop().unwrap_or_default(),
            serial: self.serials,
            is_fresh: false,
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

    /// One of them, if it is still out.
    pub(crate) fn get(&mut self, number: usize) -> Option<&mut Exchange> {
        self.places.get_mut(number)?.as_mut()
    }

    /// The same, if it is not another one by now.
    pub(crate) fn same(&mut self, number: usize, serial: u32) -> Option<&mut Exchange> {
        self.get(number)
            .filter(|exchange| exchange.serial == serial)
    }

    /// Whether that one is still out.
    pub(crate) fn is_out(&self, number: usize, serial: u32) -> bool {
        let place = self.places.get(number).and_then(Option::as_ref);
        place.is_some_and(|exchange| exchange.serial == serial)
    }

    /// A request waits until its agent may be asked.
    pub(crate) fn queue(&mut self, number: usize) {
        if let Some(exchange) = self.get(number) {
            exchange.is_queued = true;
        }
    }

    /// True while the session waits for an answer to a request.
    pub(crate) fn is_asked(&self, number: usize) -> bool {
        let place = self.places.get(number).and_then(Option::as_ref);
        place.is_some_and(|exchange| !exchange.is_queued)
    }

    /// It is over.
    pub(crate) fn take(&mut self, number: usize) -> Option<Exchange> {
        let exchange = self.places.get_mut(number)?.take()?;
        self.free.push(number);
        self.steps -= usize::from(exchange.purpose.is_step());
        Some(exchange)
    }

    /// Whether nothing waits for an answer in order to be sent.
    pub(crate) fn has_no_step(&self) -> bool {
        self.steps == 0
    }

    /// Its memory is used again.
    pub(crate) fn done_with(&mut self, exchange: Exchange) {
        let mut attempts = exchange.attempts;
        attempts.clear();
        self.spare.push(attempts);
    }
}
