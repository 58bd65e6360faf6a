//! Requests that the store answers from memory, many of them under one lock, and with one write to the journal.

use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Instant;

use kymo_base::limits::TURN_ANSWERS_MAX;
use kymo_store::write_batch::Switched;
use kymo_store::{Position, Refusal as StoreRefusal, WriteBatch};
use kymo_wire::rrdcached::{
    Answers, Context, Fields, Permissions, Refusal, Request, Stats, Verb, parse, take_line,
};

use super::connection::{Connection, Mark};
use super::refusals::{denied, foreign, held, no_journal, refuse};
use super::{SAY_EVERY, Severity, Shared};

/// Bytes of answers after which the client has to read them before the next lines are served.
pub(super) const UNSENT_MAX: usize = 256 << 10;
/// HELP's text for a command when there are no files. `kymo rrd export` looks for it.
const NO_FILES: &str = "This daemon keeps no .rrd files (--files never).";
/// PENDING's text after the count.
pub(super) const PENDING: &[u8] = b"updates pending";
/// Most bytes of errors of one BATCH.
const BATCH_ERRORS_MAX: usize = 16 << 20;

/// Reason for which serving stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// There is no complete line.
    Drained,
    /// The client has to read its answers first.
    Full,
    /// The next line needs a file, or a look at a name that the store does not know.
    Slow,
    /// The next line is for the threads for long work.
    Long,
    /// The connection ends after its answers.
    Close,
}

/// Outcome of a request.
enum Done {
    Answered,
    /// The request needs a file; nothing was done.
    Slow,
    Quit,
}

/// Counts of a batch, which become valid when it is committed.
#[derive(Default)]
struct Tally {
    updates: u64,
}

/// Serves the lines of these connections as one write batch of the store. If the journal accepts no writes, nothing
/// has changed, and clients that asked for a change get an error.
pub(super) fn serve_batch(shared: &Shared, all: &mut [&mut Connection]) -> (Vec<Stop>, Position) {
    let marks: Vec<Mark> = all.iter().map(|connection| connection.mark()).collect();
    let mut tally = Tally::default();
    match one_turn(shared, all, None, &mut tally) {
        Ok(served) => {
            count(shared, &tally);
            served
        }
        Err(error) => {
            complain(shared, &error);
            for (connection, mark) in all.iter_mut().zip(marks) {
                connection.back_to(mark);
            }
            let mut tally = Tally::default();
            let served = one_turn(shared, all, Some(&error), &mut tally);
            count(shared, &tally);
            // Without a change there is nothing to write; if that fails, too, no answer can be trusted.
            served.unwrap_or_else(|_| (vec![Stop::Close; all.len()], Position::default()))
        }
    }
}

/// Logs that the journal accepts no writes, but not for each request.
fn complain(shared: &Shared, error: &io::Error) {
    let mut reported = shared
        .reported
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if reported.is_none_or(|at| at.elapsed() > SAY_EVERY) {
        *reported = Some(Instant::now());
        shared.log(
            Severity::Critical,
            &format!("cannot write journal: {error}"),
        );
    }
}

fn count(shared: &Shared, tally: &Tally) {
    shared
        .updates_received
        .fetch_add(tally.updates, Ordering::Relaxed);
}

fn one_turn(
    shared: &Shared,
    all: &mut [&mut Connection],
    broken: Option<&io::Error>,
    tally: &mut Tally,
) -> io::Result<(Vec<Stop>, Position)> {
    let mut service = Service {
        shared,
        batch: shared.store.write_batch(),
        broken,
        tally,
    };
    let mut made = 0;
    let mut lines = |connection: &mut Connection| {
        if made > TURN_ANSWERS_MAX {
            // These answers have to be counted before this connection has its turn.
            return Stop::Full;
        }
        let before = connection.answers.size();
        let stop = service.lines(connection);
        made += connection.answers.size().saturating_sub(before);
        stop
    };
    let stops = all.iter_mut().map(|connection| lines(connection)).collect();
    Ok((stops, service.batch.commit()?))
}

struct Service<'a> {
    shared: &'a Shared,
    batch: WriteBatch<'a>,
    /// Error of a journal that accepts no writes.
    broken: Option<&'a io::Error>,
    tally: &'a mut Tally,
}

impl<'a> Service<'a> {
    fn lines(&mut self, connection: &mut Connection) -> Stop {
        let Connection {
            input,
            consumed,
            answers,
            scratch,
            permissions,
            writer,
            ..
        } = connection;
        self.batch.by(*writer);
        loop {
            if answers.out.len() > UNSENT_MAX {
                return Stop::Full;
            }
            if answers.batch_size() > BATCH_ERRORS_MAX {
                return Stop::Close;
            }
            let Some((line, size)) = take_line(&input[*consumed..]) else {
                return Stop::Drained;
            };
            answers.begin_command();
            match self.line(Fields::of(line, scratch), answers, *permissions) {
                Done::Answered => *consumed += size,
                Done::Quit => return Stop::Close,
                Done::Slow => {
                    answers.withdraw_command();
                    return Stop::Slow;
                }
            }
        }
    }

    fn line(&mut self, fields: Fields, answers: &mut Answers, permissions: Permissions) -> Done {
        match parse(fields, context(answers), permissions) {
            Ok(request) => self.request(request, answers),
            Err(Refusal::Torn) => Done::Quit,
            Err(refusal) => {
                refuse(answers, refusal);
                match refusal {
                    // Stock closes the connection in this case, too.
                    Refusal::Usage(Verb::Suspend | Verb::Resume) => Done::Quit,
                    _ => Done::Answered,
                }
            }
        }
    }

    fn request(&mut self, request: Request, answers: &mut Answers) -> Done {
        match request {
            Request::Update { name, values } => return self.update(name, values, answers),
            Request::Forget(name) => return self.forget(name, answers),
            Request::Pending(name) => return self.pending(name, answers),
            Request::Suspend(name) => return self.suspend(name, answers),
            Request::Resume(name) => return self.resume(name, answers),
            Request::SuspendAll => self.all("suspend", WriteBatch::suspend_all, answers),
            Request::ResumeAll => self.all("resumed", WriteBatch::resume_all, answers),
            Request::Queue => self.queue(answers),
            Request::Stats => self.stats(answers),
            Request::FlushAll => {
                self.batch.flush_all();
                answers.ok(&[b"Started flush."]);
            }
            Request::Help(word) => {
                let none = self.shared.store.is_without_files();
                answers.help(word, none.then_some(NO_FILES));
            }
            Request::Ping => answers.ok(&[b"PONG"]),
            Request::Batch => answers.batch(),
            Request::EndBatch => answers.end_batch(),
            Request::Quit => return Done::Quit,
            Request::Tune { .. }
            | Request::Dump(_)
            | Request::Flush(_)
            | Request::Fetch(_)
            | Request::FetchBin(_)
            | Request::Info(_)
            | Request::First { .. }
            | Request::Last(_)
            | Request::Create { .. }
            | Request::List(_) => return Done::Slow,
        }
        Done::Answered
    }

    fn update(&mut self, name: &[u8], values: Fields, answers: &mut Answers) -> Done {
        if !self.shared.names.allowed(name) {
            denied(answers, &self.shared.names.spelled(name));
        } else if self.shared.names.is_foreign(name) {
            foreign(answers, &self.shared.names.spelled(name));
        } else if let Some(error) = self.broken {
            no_journal(answers, error);
        } else {
            match self.batch.update(name, values) {
                Ok(count) => answers.enqueued(count),
                Err(StoreRefusal::Untouched) => return Done::Slow,
                Err(refusal) => refuse_values(answers, &refusal),
            }
        }
        self.tally.updates += 1;
        Done::Answered
    }

    fn forget(&mut self, name: &[u8], answers: &mut Answers) -> Done {
        if !self.shared.names.allowed(name) {
            denied(answers, &self.shared.names.spelled(name));
        } else if self.shared.names.is_foreign(name) {
            foreign(answers, &self.shared.names.spelled(name));
        } else if self.batch.is_held(name) {
            held(answers);
        } else if let Some(error) = self.broken {
            no_journal(answers, error);
        } else if self.batch.forget(name) {
            answers.ok(&[b"Gone!"]);
        } else {
            return Done::Slow;
        }
        Done::Answered
    }

    fn pending(&mut self, name: &[u8], answers: &mut Answers) -> Done {
        let mut lines = Vec::new();
        let known = self.batch.pending(name, &mut |value| {
            lines.extend_from_slice(value);
            lines.push(b'\n');
        });
        if known.is_none() {
            return Done::Slow;
        }
        answers.ok_with(&lines, &[PENDING]);
        Done::Answered
    }

    fn suspend(&mut self, name: &[u8], answers: &mut Answers) -> Done {
        let words = [&b" suspended"[..], b" already suspended"];
        self.switch(name, WriteBatch::suspend, words, answers)
    }

    fn resume(&mut self, name: &[u8], answers: &mut Answers) -> Done {
        let words = [&b" resumed"[..], b" not suspended"];
        self.switch(name, WriteBatch::resume, words, answers)
    }

    fn switch(
        &mut self,
        name: &[u8],
        switch: impl Fn(&mut WriteBatch<'a>, &[u8]) -> Switched,
        words: [&[u8]; 2],
        answers: &mut Answers,
    ) -> Done {
        let spelled = self.shared.names.spelled(name);
        match self.broken {
            _ if self.shared.names.is_foreign(name) => foreign(answers, &spelled),
            _ if self.batch.is_held(name) => held(answers),
            Some(error) => no_journal(answers, error),
            None => match switch(&mut self.batch, name) {
                Switched::Now => answers.ok(&[&spelled, words[0]]),
                Switched::Already => answers.ok(&[&spelled, words[1]]),
                Switched::Unknown => return Done::Slow,
            },
        }
        Done::Answered
    }

    fn all(
        &mut self,
        word: &str,
        switch: impl Fn(&mut WriteBatch<'a>) -> usize,
        answers: &mut Answers,
    ) {
        match self.broken {
            Some(error) => no_journal(answers, error),
            None => {
                let text = format!("{} rrds {word}", switch(&mut self.batch));
                answers.ok(&[text.as_bytes()]);
            }
        }
    }

    fn queue(&mut self, answers: &mut Answers) {
        let mut lines = Vec::new();
        self.batch.queue(&mut |count, file| {
            lines.extend_from_slice(format!("{count} ").as_bytes());
            lines.extend_from_slice(file);
            lines.push(b'\n');
        });
        answers.ok_with(&lines, &[b"in queue."]);
    }

    fn stats(&mut self, answers: &mut Answers) {
        let stats = self.batch.stats();
        let mut lines = Vec::new();
        Stats {
            queue_length: stats.queue_length,
            updates_received: self.shared.updates_received.load(Ordering::Relaxed)
                + self.tally.updates,
            flushes_received: self.shared.flushes_received.load(Ordering::Relaxed),
            updates_written: stats.updates_written,
            data_sets_written: stats.data_sets_written,
            tree_nodes: stats.files,
            // There is no tree: this is the depth that a balanced one would have.
            tree_depth: u64::from(u64::BITS - stats.files.leading_zeros()),
            journal_bytes: stats.journal_bytes,
            journal_rotate: stats.journal_rotate,
        }
        .put(&mut lines);
        answers.ok_with(&lines, &[b"Statistics follow"]);
    }
}

/// Context of the next line.
pub(super) fn context(answers: &Answers) -> Context {
    match answers.in_batch() {
        true => Context::Batch,
        false => Context::Client,
    }
}

fn refuse_values(answers: &mut Answers, refusal: &StoreRefusal) {
    match refusal {
        StoreRefusal::NoStamp { value } => {
            answers.error(&[b"Cannot find timestamp in '", value, b"'!"]);
        }
        StoreRefusal::Past { stamp, last } => {
            let text = format!(
                "illegal attempt to update using time {stamp:.6} when last update time is {last:.6} (minimum one second step)"
            );
            answers.error(&[text.as_bytes()]);
        }
        StoreRefusal::Held => held(answers),
        StoreRefusal::NoValues | StoreRefusal::Untouched => answers.error(&[b"No values updated."]),
    }
}
