//! Messages that wait for the keeper. One thread hands them over, in their order. While the keeper is away they wait,
//! up to a number of bytes; then the oldest go, and are counted.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use kymo_keeper_client::Keeper;
use kymo_sys::talk;
use kymo_wire::keeper::{Push, PushFormat, ScrapedTarget};

/// Bytes of all messages that wait.
const WAITING_MAX: usize = 64 << 20;
/// Longest wait for a piece of the keeper's answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// Pause before a message is sent again.
const PAUSE: Duration = Duration::from_secs(1);
/// Statuses of a keeper that takes the message later.
const LATER: [u16; 3] = [429, 500, 503];

#[derive(Default)]
struct Waiting {
    pushes: VecDeque<Push>,
    bytes: usize,
    targets: Option<Vec<ScrapedTarget>>,
    /// Messages that went because too many waited.
    dropped: u64,
}

impl Waiting {
    fn add(&mut self, push: Push) {
        self.bytes += push.body.len();
        self.pushes.push_back(push);
        while self.bytes > WAITING_MAX {
            let Some(oldest) = self.pushes.pop_front() else {
                break;
            };
            self.bytes -= oldest.body.len();
            self.dropped += 1;
        }
    }

    fn take(&mut self) -> Option<Push> {
        let push = self.pushes.pop_front()?;
        self.bytes -= push.body.len();
        Some(push)
    }

    /// Takes a message back, which goes before all others.
    fn put_back(&mut self, push: Push) {
        self.bytes += push.body.len();
        self.pushes.push_front(push);
    }
}

/// The way to the keeper. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Outbox {
    waiting: Arc<(Mutex<Waiting>, Condvar)>,
}

impl Outbox {
    /// Starts the thread that hands messages to the keeper with this socket.
    pub(crate) fn start(keeper: PathBuf) -> io::Result<Outbox> {
        let outbox = Outbox::default();
        let keeper = Keeper::shared(keeper, 1, PATIENCE);
        let own = outbox.clone();
        let named = thread::Builder::new().name("outbox".into());
        named.spawn(move || own.work(&keeper))?;
        Ok(outbox)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the messages of a scrape of a target.
    pub(crate) fn send(&self, target: &str, parts: Vec<Vec<u8>>) {
        let mut waiting = self.lock();
        for body in parts {
            waiting.add(Push {
                format: PushFormat::Scrape,
                sender: target.into(),
                body,
            });
        }
        self.waiting.1.notify_one();
    }

    /// Replaces the state of all targets.
    pub(crate) fn report(&self, targets: Vec<ScrapedTarget>) {
        self.lock().targets = Some(targets);
        self.waiting.1.notify_one();
    }

    fn work(&self, keeper: &Keeper) {
        let mut is_away = false;
        loop {
            let (targets, push) = self.next();
            let mut failed = None;
            if let Some(targets) = targets
                && let Err(why) = keeper.scraped(targets.clone())
            {
                self.lock().targets.get_or_insert(targets);
                failed = Some(why);
            }
            if let Some(push) = push {
                let sent = match &failed {
                    None => hand_over(keeper, &push),
                    Some(why) => Err(why.clone()),
                };
                if let Err(why) = sent {
                    self.lock().put_back(push);
                    failed = Some(why);
                }
            }
            self.say(failed.as_deref(), &mut is_away);
            if failed.is_some() {
                thread::sleep(PAUSE);
            }
        }
    }

    /// Waits for messages, or for the state of targets.
    fn next(&self) -> (Option<Vec<ScrapedTarget>>, Option<Push>) {
        let waiting = self.lock();
        let is_empty =
            |waiting: &mut Waiting| waiting.pushes.is_empty() && waiting.targets.is_none();
        let waited = self.waiting.1.wait_while(waiting, is_empty);
        let mut waiting = waited.unwrap_or_else(PoisonError::into_inner);
        (waiting.targets.take(), waiting.take())
    }

    /// Says that the keeper is away, or that it is back.
    fn say(&self, failed: Option<&str>, is_away: &mut bool) {
        match failed {
            Some(why) if !*is_away => {
                talk::say(format_args!(
                    "kymo: scrape: cannot keep samples: {why}; they wait"
                ));
            }
            None if *is_away => {
                let dropped = std::mem::take(&mut self.lock().dropped);
                talk::say(format_args!(
                    "kymo: scrape: samples are kept again; {dropped} messages were dropped"
                ));
            }
            Some(_) | None => {}
        }
        *is_away = failed.is_some();
    }
}

/// Hands a message over. The error says why it has to be sent again. The keeper counts and reports samples that it
/// refuses for good.
fn hand_over(keeper: &Keeper, push: &Push) -> Result<(), String> {
    let pushed = keeper.push(push.clone())?;
    match LATER.contains(&pushed.status) {
        true => Err(pushed.why),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(number: u8, size: usize) -> Push {
        Push {
            format: PushFormat::Scrape,
            sender: String::new(),
            body: vec![number; size],
        }
    }

    #[test]
    fn the_oldest_messages_go() {
        let mut waiting = Waiting::default();
        let half = WAITING_MAX / 2;
        for number in 0..3 {
            waiting.add(push(number, half));
        }
        assert_eq!((waiting.dropped, waiting.bytes), (1, 2 * half));
        let first = waiting.take().unwrap();
        assert_eq!(first.body[0], 1);
        waiting.put_back(first);
        let order: Vec<u8> = std::iter::from_fn(|| waiting.take())
            .map(|of| of.body[0])
            .collect();
        assert_eq!((order, waiting.bytes), (vec![1, 2], 0));
    }
}
