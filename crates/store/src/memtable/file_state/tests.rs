//! Tests of the state of a file after sequences of steps in any order.

use super::*;

const LIVE: Live = Live {
    updated: 1,
    tuned: 2,
};

fn identity(inode: u64, size_bytes: u64, mtime_ns: i64) -> Identity {
    Identity {
        device: 1,
        inode,
        size_bytes,
        mtime_ns,
    }
}

fn left(upto: f64) -> Left {
    Left {
        identity: identity(7, 100, 5),
        live: LIVE,
        upto,
    }
}

/// A step in the life of a file with all values up to 10 on the disk.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin(u32),
    Finish(f64),
    Abort,
    Settle(u32),
    Start,
    End(f64),
    NotStarted,
    Checkpoint,
    Leave,
    MakeAgain,
}
use Step::*;

fn after(steps: &[Step]) -> FileState {
    let mut file = FileState::found(&left(10.0));
    for step in steps {
        match *step {
            Begin(epoch) => {
                assert!(file.reserve());
                file.begin_write(u64::from(epoch), epoch);
            }
            Finish(upto) => {
                file.finish_write(&left(upto), 0);
                file.release();
            }
            Abort => {
                file.abort_write();
                file.release();
            }
            Settle(epoch) if file.is_settled_by(epoch) => file.settle(),
            Settle(_) => {}
            Start => file.replay_start(3),
            End(upto) => file.replay_end(identity(7, 100, 5), upto),
            NotStarted => file.replay_not_started(),
            Checkpoint if !file.is_unfinished() => file.settle(),
            Checkpoint => {}
            Leave => file.leave_as_it_is(),
            MakeAgain => file.make_again(),
        }
    }
    file
}

/// Steps; start of the next write and content of the file; the oldest START that the journal must keep.
type Case<'a> = (&'a [Step], (f64, f64), Option<u64>);

#[test]
fn a_write_begins_at_what_is_on_the_disk_for_certain_if_one_was_cut_short() {
    let cases: &[Case] = &[
        (&[], (10.0, 10.0), None),
        (&[Begin(1)], (10.0, 10.0), Some(1)),
        (&[Begin(1), Finish(20.0)], (20.0, 20.0), Some(1)),
        (&[Begin(1), Finish(20.0), Settle(2)], (20.0, 20.0), None),
        // The write began after the checkpoint.
        (&[Begin(2), Finish(20.0), Settle(2)], (20.0, 20.0), Some(2)),
        (
            &[Begin(1), Finish(20.0), Begin(2), Settle(2)],
            (20.0, 20.0),
            Some(1),
        ),
        // Failed writes.
        (&[Begin(1), Abort], (10.0, 10.0), Some(1)),
        (
            &[Begin(1), Finish(20.0), Begin(1), Abort],
            (10.0, 20.0),
            Some(1),
        ),
        (
            &[Begin(1), Abort, Begin(1), Finish(20.0)],
            (20.0, 20.0),
            Some(1),
        ),
        (
            &[Begin(1), Abort, Settle(2), Begin(2), Abort],
            (10.0, 10.0),
            Some(1),
        ),
        (
            &[Begin(1), Abort, Begin(1), Finish(20.0), Settle(2)],
            (20.0, 20.0),
            None,
        ),
        // After a start.
        (&[Start], (10.0, 10.0), Some(3)),
        (&[Start, End(20.0)], (10.0, 20.0), Some(3)),
        (&[Start, End(20.0), Checkpoint], (20.0, 20.0), None),
        (
            &[Start, End(20.0), Start, NotStarted],
            (10.0, 20.0),
            Some(3),
        ),
        (
            &[Start, End(20.0), Start, Checkpoint],
            (10.0, 20.0),
            Some(3),
        ),
        (&[Start, Checkpoint], (10.0, 10.0), Some(3)),
        (&[Start, End(20.0), Begin(1), Abort], (10.0, 20.0), Some(3)),
        (
            &[Start, End(20.0), Begin(1), Finish(30.0), Settle(2)],
            (30.0, 30.0),
            None,
        ),
        // A checkpoint does not settle a file that must be written again.
        (&[Start, End(20.0), Settle(2)], (10.0, 20.0), Some(3)),
        (&[Start, End(20.0), Leave, Settle(2)], (20.0, 20.0), None),
        // An END without its START is at the start of a journal file that carries everything over.
        (&[End(20.0)], (20.0, 20.0), None),
        (&[End(20.0), Start], (10.0, 20.0), Some(3)),
        (&[Begin(1), Finish(20.0), MakeAgain], (10.0, 20.0), Some(1)),
    ];
    for (steps, (from, upto), started) in cases {
        let file = after(steps);
        assert_eq!((file.from(), file.upto()), (*from, *upto), "{steps:?}");
        assert_eq!(file.started(), *started, "{steps:?}");
    }
}

#[test]
fn what_is_cut_short_is_not_current_until_it_is_written() {
    for (steps, is_current, is_whole) in [
        (&[][..], true, true),
        (&[Begin(1)], true, true),
        (&[Begin(1), Abort], false, false),
        (&[Begin(1), Abort, Begin(1), Finish(10.0)], true, true),
        (&[Start], false, false),
        (&[Start, NotStarted], false, false),
        (&[Start, End(10.0)], false, false),
        (&[Start, Leave], true, false),
        (&[MakeAgain], false, false),
    ] {
        let file = after(steps);
        assert_eq!(file.has(10.0), is_current, "{steps:?}");
        assert_eq!(file.is_whole(), is_whole, "{steps:?}");
        assert!(!file.has(10.5), "{steps:?}");
    }
    assert!(!FileState::none(10.0).has(10.0));
}

#[test]
fn which_file_is_ours_though_it_is_not_as_we_left_it() {
    let older = identity(7, 100, 4);
    let newer = identity(7, 100, 6);
    let shorter = identity(7, 99, 6);
    let another = identity(8, 100, 4);
    for (steps, seen, cut_short, cut_off) in [
        (&[][..], older, false, false),
        (&[Start], older, true, false),
        (&[Start], newer, true, false),
        (&[Start], another, false, false),
        (&[Start], shorter, false, true),
        // A finished write leaves no newer time than its END has, unless another program changed the file.
        (&[Start, End(20.0)], older, true, false),
        (&[Start, End(20.0)], newer, false, false),
        (&[Start, End(20.0)], shorter, false, true),
        (&[Start, End(20.0), Checkpoint], shorter, false, false),
    ] {
        let file = after(steps);
        assert_eq!(file.was_cut_short(&seen), cut_short, "{steps:?} {seen:?}");
        assert_eq!(file.was_cut_off(&seen), cut_off, "{steps:?} {seen:?}");
    }
}

#[test]
fn what_we_made_counts_when_a_checkpoint_has_settled_it() {
    let mut file = FileState::made(&left(10.0), 3, 1);
    assert!(file.has(10.0) && file.is_create_unsynced() && !file.was_half_made());
    assert!(!file.is_settled_by(1) && file.is_settled_by(2));
    file.settle();
    assert!(!file.is_create_unsynced());
    for (base, made) in [(None, true), (Some(10), false)] {
        let mut file = FileState::of_birth(base, 10.0);
        assert!(file.left().is_none() && file.started().is_none());
        file.replay_start(3);
        file.replay_end(left(10.0).identity, 10.0);
        assert_eq!(file.was_half_made(), made);
        file.settle();
        assert!(!file.was_half_made());
    }
}

#[test]
fn a_block_has_what_is_on_the_disk_for_certain() {
    let mut file = after(&[Begin(1), Finish(20.0)]);
    assert_eq!(file.for_block(), Some((left(0.0).identity, 20.0, 10.0)));
    let mut back = FileState::of_block(file.for_block(), file.live(), false);
    back.replay_start(3);
    assert_eq!(
        (back.from(), back.upto(), back.live()),
        (10.0, 20.0, Some(LIVE))
    );
    file.settle();
    assert_eq!(file.for_block(), Some((left(0.0).identity, 20.0, 20.0)));
    let none = FileState::of_block(None, Some(LIVE), true);
    assert!(none.left().is_none() && none.live().is_none() && none.is_create_unsynced());
    assert_eq!(none.upto(), f64::NEG_INFINITY);
}

#[test]
fn one_thread_has_it_at_a_time() {
    let mut file = FileState::none(0.0);
    assert!(file.reserve() && !file.reserve() && file.is_busy());
    file.release();
    assert!(file.is_at_rest() && file.reserve());
    assert!(file.enqueue() && !file.enqueue());
    file.dequeue();
    assert!(!file.is_queued() && file.enqueue());
}

#[test]
fn what_is_missing_counts_from_the_first_look_that_found_it_so() {
    let mut file = FileState::found(&left(10.0));
    file.miss(5);
    file.miss(8);
    assert_eq!(file.gone_since(), Some(5));
    file.miss_from(9);
    assert_eq!(file.gone_since(), Some(9));
    let backs: [fn(&mut FileState); 4] = [
        FileState::come_back,
        FileState::look,
        |file| file.confirm(left(0.0).identity),
        |file| {
            assert!(file.reserve());
            file.begin_write(1, 1);
            file.finish_write(&left(10.0), 0);
        },
    ];
    for back in backs {
        let mut file = file;
        back(&mut file);
        assert_eq!(file.gone_since(), None);
    }
}

#[test]
fn after_a_start_a_file_is_unseen_until_somebody_looks() {
    let mut file = FileState::found(&left(10.0));
    file.begin_life(7);
    assert!(file.is_unseen() && !file.is_due(6) && file.is_due(7));
    file.come_back();
    assert!(file.is_unseen());
    file.look();
    assert!(!file.is_unseen());
    file.put_off(9);
    assert!(!file.is_due(8));
}

#[test]
#[should_panic(expected = "not reserved")]
fn nobody_writes_a_file_that_is_not_reserved() {
    FileState::found(&left(10.0)).begin_write(1, 1);
}

#[test]
#[should_panic(expected = "not announced")]
fn no_write_ends_that_was_not_announced() {
    FileState::found(&left(10.0)).finish_write(&left(20.0), 0);
}
