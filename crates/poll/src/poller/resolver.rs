//! Resolves names of devices on a thread of its own, so that a name server that is gone delays no poll. A name that cannot be
//! resolved keeps its last address.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use kymo_wire::mrtg_cfg::{Config, Host};

/// A name to be resolved, and true if only an IPv4 address will do.
type Question = (Box<str>, bool);
type Answer = (Question, Option<IpAddr>);

/// The poller's end of the resolver thread.
pub(super) struct Resolver {
    questions: Sender<Question>,
    answers: Receiver<Answer>,
    woken: PipeReader,
    /// Sessions that use each name, with their ports.
    wanted: BTreeMap<Question, Vec<(usize, u16)>>,
    pending: usize,
}

impl Resolver {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Resolver> {
        let (questions, queue) = channel::<Question>();
        let (answered, answers) = channel();
        let (woken, wakes) = io::pipe()?;
        let named = thread::Builder::new()
            .name("resolver".into())
            .stack_size(super::STACK_BYTES);
        named.spawn(move || resolve(&queue, &answered, wakes))?;
        Ok(Resolver {
            questions,
            answers,
            woken,
            wanted: BTreeMap::new(),
            pending: 0,
        })
    }

    /// Replaces the sessions. Sessions whose host is an address go to `known` at once.
    pub(super) fn use_for(&mut self, config: &Config, mut known: impl FnMut(usize, SocketAddr)) {
        self.wanted.clear();
        for (number, session) in config.sessions().iter().enumerate() {
            match &session.host {
                Host::V6(address) => {
                    if let Some(address) = address {
                        known(number, SocketAddr::new((*address).into(), session.port));
                    }
                }
                Host::Name(name) => match name.parse::<IpAddr>() {
                    Ok(address) => known(number, SocketAddr::new(address, session.port)),
                    Err(_) => {
                        let question = (name.clone(), session.ipv4_only);
                        let sessions = self.wanted.entry(question).or_default();
                        sessions.push((number, session.port));
                    }
                },
            }
        }
    }

    /// Requests all names, unless answers of the last request are pending.
    pub(super) fn ask(&mut self) {
        if self.pending > 0 {
            return;
        }
        for question in self.wanted.keys() {
            if self.questions.send(question.clone()).is_ok() {
                self.pending += 1;
            }
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.pending > 0
    }

    /// Takes the answers so far. `found` gets each session with its address, `None` if the name has no address.
    pub(super) fn take(&mut self, mut found: impl FnMut(usize, Option<SocketAddr>)) {
        let mut bytes = [0; 64];
        while let Ok((question, address)) = self.answers.try_recv() {
            // The thread writes one byte for each answer; a short read leaves the rest for the next time.
            let _ = self.woken.read(&mut bytes[..1]);
            self.pending = self.pending.saturating_sub(1);
            for &(session, port) in self.wanted.get(&question).into_iter().flatten() {
                found(session, address.map(|ip| SocketAddr::new(ip, port)));
            }
        }
    }
}

impl AsFd for Resolver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }
}

fn resolve(questions: &Receiver<Question>, answered: &Sender<Answer>, mut wakes: PipeWriter) {
    while let Ok(question) = questions.recv() {
        let found = (&*question.0, 0).to_socket_addrs();
        let fits = |address: &SocketAddr| !question.1 || address.is_ipv4();
        let address = found.ok().and_then(|mut all| all.find(fits));
        let answer = (question, address.map(|address| address.ip()));
        if answered.send(answer).is_err() || wakes.write_all(&[0]).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn names_are_found_and_nothing_waits() {
        let mut resolver = Resolver::start().unwrap();
        let names = [("localhost", true), ("no-such-name.invalid", false)];
        for (number, (name, ipv4_only)) in names.into_iter().enumerate() {
            let question = (name.into(), ipv4_only);
            resolver.wanted.insert(question, vec![(number, 161)]);
        }
        resolver.ask();
        let mut found = BTreeMap::new();
        let begun = Instant::now();
        while found.len() < 2 && begun.elapsed() < Duration::from_secs(60) {
            resolver.take(|session, address| {
                found.insert(session, address);
            });
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(found[&0], Some("127.0.0.1:161".parse().unwrap()));
        assert_eq!(found[&1], None);
        assert!(!resolver.is_busy());
    }
}
