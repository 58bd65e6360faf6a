//! The slow lane reads the identity of processes: command line, cgroup, executable. These reads can wait for a lock of the
//! process itself, so another thread does them, and the sampler takes the answers.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use kymo_base::limits;
use kymo_sys::kernel_file::Root;

use crate::reader::errno_of;
use crate::source::{self, kind};

/// Limit of waiting questions; further ones are asked again later.
const WAITING_MAX: usize = 65_536;

/// The kinds of source that make up an identity.
pub const KINDS: [u8; 3] = [kind::PID_CMDLINE, kind::PID_CGROUP, kind::PID_EXE];

/// The process that a question or an answer is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Slot in the process table.
    pub slot: usize,
    /// Number that distinguishes the process from earlier ones in the same slot.
    pub generation: u64,
    /// The pid.
    pub name: Arc<str>,
}

/// Texts of one process, in the order of [`KINDS`].
pub type Texts = [Result<Vec<u8>, u16>; KINDS.len()];

/// Queues of questions and answers between the sampler and the lane's thread.
#[derive(Default)]
pub struct Lane {
    state: Mutex<State>,
    asked: Condvar,
}

#[derive(Default)]
struct State {
    questions: VecDeque<Subject>,
    answers: Vec<(Subject, Texts)>,
    closed: bool,
}

impl Lane {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Queues questions. If the lane is full, some subjects stay in the list for the next call.
    pub fn ask(&self, subjects: &mut Vec<Subject>) {
        if subjects.is_empty() {
            return;
        }
        let mut state = self.lock();
        let room = WAITING_MAX - state.questions.len().min(WAITING_MAX);
        let asked = subjects.len().min(room);
        state.questions.extend(subjects.drain(..asked));
        drop(state);
        self.asked.notify_one();
    }

    /// Replaces `out` by the answers, sorted by slot.
    pub fn answers(&self, out: &mut Vec<(Subject, Texts)>) {
        out.clear();
        std::mem::swap(&mut self.lock().answers, out);
        out.sort_by_key(|(subject, _)| (subject.slot, subject.generation));
    }

    /// Ends [`Lane::serve`].
    pub fn close(&self) {
        self.lock().closed = true;
        self.asked.notify_all();
    }

    /// Answers questions until the lane is closed.
    pub fn serve(&self, root: &Root) {
        loop {
            let mut state = self.lock();
            while state.questions.is_empty() && !state.closed {
                state = self
                    .asked
                    .wait(state)
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
            }
            if state.closed {
                return;
            }
            let subject = state.questions.pop_front();
            drop(state);
            if let Some(subject) = subject {
                let texts = KINDS.map(|wanted| read(root, wanted, &subject.name));
                self.lock().answers.push((subject, texts));
            }
        }
    }
}

fn read(root: &Root, wanted: u8, name: &str) -> Result<Vec<u8>, u16> {
    let path = source::of(wanted)
        .map(|source| source.path_of(name))
        .unwrap_or_default();
    if wanted == kind::PID_EXE {
        return root.link(&path).map_err(errno_of);
    }
    let mut text = Vec::new();
    let file = root.file(&path).map_err(errno_of)?;
    // A process can make its command line as long as its memory, so the lane keeps only its first part.
    while text.len() < limits::IDENTITY_MAX {
        text.reserve(4096);
        let offset = text.len() as u64;
        if file.pread(&mut text, offset).map_err(errno_of)? == 0 {
            break;
        }
    }
    text.truncate(limits::IDENTITY_MAX);
    // Thousands of texts may wait for the sampler.
    text.shrink_to_fit();
    Ok(text)
}
