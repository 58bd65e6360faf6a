//! Reads any bytes as those of a client, and does all that the keeper does with them: answers must be complete,
//! and a client that may only read must change nothing.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use kymo_store::{Files, Settings};
use kymo_sys::clock::RealClock;
use kymo_sys::disk::Disk as _;
use kymo_sys::sim_disk::SimDisk;
use kymo_wire::fuzz::keeper_frames;
use kymo_wire::keeper::ANSWER_MAX;

use super::*;

/// Inputs until a new store replaces the old one, which would grow for ever.
const INPUTS: u32 = 2000;
struct Bench {
    store: Store,
    inputs: u32,
}

thread_local! {
    static BENCH: RefCell<Option<Bench>> = const { RefCell::new(None) };
}

impl Bench {
    fn new() -> Bench {
        let disk = Arc::new(SimDisk::new(1));
        let mut settings = Settings::new("/kept", "/base");
        settings.files = Files::Never;
        let made = disk.create_dir_all(Path::new("/base"));
        made.unwrap_or_else(|error| unreachable!("BUG: {error}"));
        let opened = Store::open(settings, disk, Arc::new(RealClock));
        let (store, _) = opened.unwrap_or_else(|error| unreachable!("BUG: {error}"));
        // No input waits for values that do not come.
        store.end_waiting_tails();
        Bench { store, inputs: 0 }
    }
}

/// The first byte chooses the socket, and whether frames or their contents follow.
pub(crate) fn fuzz(input: &[u8]) {
    let Some((&first, rest)) = input.split_first() else {
        return;
    };
    let role = match first % 3 {
        0 => Role::Read,
        1 => Role::Write {
            poller: 1,
            postgres: 2,
        },
        _ => Role::Admin {
            owner: 1,
            guardian: 2,
        },
    };
    let sent = if first & 0x80 == 0 {
        keeper_frames(rest)
    } else {
        rest.to_vec()
    };
    BENCH.with_borrow_mut(|bench| {
        let bench = bench.get_or_insert_with(Bench::new);
        ask(bench, role, &sent);
        bench.inputs += 1;
        if bench.inputs == INPUTS {
            *bench = Bench::new();
        }
    });
}

fn ask(bench: &Bench, role: Role, sent: &[u8]) {
    let answers = Answers::of_store(role, Arc::new(|_, _| {}));
    let before = bench.store.known(0).series.len();
    let heard = thread::scope(|scope| {
        let (Ok((mut client, server)), Ok(stop)) = (UnixStream::pair(), StopSignal::new()) else {
            unreachable!("BUG: no sockets");
        };
        let (store, answers) = (&bench.store, &answers);
        scope.spawn(move || answers.answer_all(server, store, &stop));
        let sends = client.try_clone();
        scope.spawn(move || {
            if let Ok(mut sends) = sends {
                // The keeper may have closed the connection.
                let _heard = sends.write_all(sent);
                let _gone = sends.shutdown(Shutdown::Write);
            }
        });
        let mut heard = Vec::new();
        let _reset = client.read_to_end(&mut heard);
        heard
    });
    let mut rest = &heard[..];
    while let Some((head, behind)) = rest.split_first_chunk() {
        let length = body_bytes(*head, ANSWER_MAX)
            .unwrap_or_else(|why| unreachable!("BUG: an answer {why}"));
        let Some((frame, behind)) = behind.split_at_checked(length) else {
            break;
        };
        assert!(Answer::read(frame).is_ok(), "an answer makes no sense");
        rest = behind;
    }
    if role == Role::Read {
        let after = bench.store.known(0).series.len();
        assert_eq!(
            before, after,
            "a client that may only read changed something"
        );
    }
}
