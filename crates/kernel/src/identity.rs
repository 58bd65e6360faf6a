//! The slow lane reads the identity of processes (command line, cgroup, executable, container) and of control groups. These
//! reads can wait for a lock of the process or for a disk, so another thread does them, and the sampler takes the answers.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use kymo_base::limits;
use kymo_sys::kernel_file::Root;

use crate::containers::{Containers, GroupIdentity, has_container_around};
use crate::reader::errno_of;
use crate::source::{self, kind};

/// Limit of waiting questions; further ones are asked again later.
const WAITING_MAX: usize = 65_536;

/// Most groups whose identities are found before processes have their turn again.
const GROUPS_BATCH: usize = 64;
/// Most containers of processes that the lane remembers, and the number of lookups after which it reads their files again.
const REMEMBERED_MAX: usize = 4096;
const LOOKUPS_MAX: usize = 1024;

/// The kinds of source that make up an identity.
pub const KINDS: [u8; 4] = [
    kind::PID_CMDLINE,
    kind::PID_CGROUP,
    kind::PID_EXE,
    kind::PID_CONTAINER,
];

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

/// The control group that a question or an answer is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSubject {
    /// Slot in the table of groups.
    pub slot: usize,
    /// Number that distinguishes the group from earlier ones in the same slot.
    pub generation: u64,
    /// Path below the hierarchy.
    pub path: Arc<[u8]>,
}

/// Queues of questions and answers between the sampler and the lane's thread.
#[derive(Default)]
pub struct Lane {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    questions: VecDeque<Subject>,
    answers: Vec<(Subject, Texts)>,
    groups: VecDeque<GroupSubject>,
    group_answers: Vec<(GroupSubject, Vec<u8>)>,
    /// Texts of /proc/PID/cgroup whose containers the choice of processes needs.
    wanted: HashSet<Vec<u8>>,
    /// Texts of containers, by the text of /proc/PID/cgroup.
    containers: HashMap<Vec<u8>, Vec<u8>>,
    closed: bool,
}

impl State {
    fn next(&mut self) -> Option<Work> {
        if let Some(cgroup) = self.wanted.iter().next().cloned() {
            self.wanted.remove(&cgroup);
            return Some(Work::Container(cgroup));
        }
        if !self.groups.is_empty() {
            let count = self.groups.len().min(GROUPS_BATCH);
            return Some(Work::Groups(self.groups.drain(..count).collect()));
        }
        self.questions.pop_front().map(Work::Process)
    }
}

/// A piece of work for the lane's thread.
enum Work {
    Process(Subject),
    Groups(Vec<GroupSubject>),
    Container(Vec<u8>),
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
        let taken = subjects.len().min(room);
        state.questions.extend(subjects.drain(..taken));
        drop(state);
        self.changed.notify_one();
    }

    /// Replaces `out` by the answers, sorted by slot.
    pub fn answers(&self, out: &mut Vec<(Subject, Texts)>) {
        out.clear();
        std::mem::swap(&mut self.lock().answers, out);
        out.sort_by_key(|(subject, _)| (subject.slot, subject.generation));
    }

    /// Queues questions about groups. If the lane is full, some subjects stay in the list for the next call.
    pub fn ask_groups(&self, subjects: &mut Vec<GroupSubject>) {
        if subjects.is_empty() {
            return;
        }
        let mut state = self.lock();
        let room = WAITING_MAX - state.groups.len().min(WAITING_MAX);
        let taken = subjects.len().min(room);
        state.groups.extend(subjects.drain(..taken));
        drop(state);
        self.changed.notify_one();
    }

    /// Replaces `out` by the answers about groups, sorted by slot.
    pub fn group_answers(&self, out: &mut Vec<(GroupSubject, Vec<u8>)>) {
        out.clear();
        std::mem::swap(&mut self.lock().group_answers, out);
        out.sort_by_key(|(subject, _)| (subject.slot, subject.generation));
    }

    /// The text of the container around a process, by its text of /proc/PID/cgroup; empty if there is none. `None`: the lane
    /// does not know it yet, and looks for it.
    pub fn container(&self, cgroup: &[u8]) -> Option<Vec<u8>> {
        if !has_container_around(cgroup) {
            return Some(Vec::new());
        }
        let mut state = self.lock();
        let known = state.containers.get(cgroup).cloned();
        if known.is_none() && state.wanted.len() < REMEMBERED_MAX {
            state.wanted.insert(cgroup.to_vec());
            drop(state);
            self.changed.notify_one();
        }
        known
    }

    /// Ends [`Lane::serve`].
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Answers questions until the lane is closed.
    pub fn serve(&self, root: &Root) {
        let mut finder = Finder::default();
        while let Some(work) = self.wait() {
            self.answer(root, work, &mut finder);
        }
    }

    /// Answers the waiting questions without waiting for others.
    #[cfg(test)]
    pub(crate) fn answer_waiting(&self, root: &Root) {
        let mut finder = Finder::default();
        loop {
            let work = self.lock().next();
            match work {
                Some(work) => self.answer(root, work, &mut finder),
                None => return,
            }
        }
    }

    fn answer(&self, root: &Root, work: Work, finder: &mut Finder) {
        match work {
            Work::Process(subject) => {
                let texts = self.texts(root, &subject.name, finder);
                self.lock().answers.push((subject, texts));
            }
            Work::Groups(subjects) => {
                // A new group may have a file that earlier lists of containers lack.
                finder.forget();
                for subject in subjects {
                    let text = text_of(&finder.containers.of_group(root, &subject.path));
                    self.lock().group_answers.push((subject, text));
                }
            }
            Work::Container(cgroup) => {
                self.container_of(root, &cgroup, finder);
            }
        }
    }

    /// Waits for the next piece of work; `None` once the lane is closed.
    fn wait(&self) -> Option<Work> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(work) = state.next() {
                return Some(work);
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    fn texts(&self, root: &Root, name: &str, finder: &mut Finder) -> Texts {
        let [cmdline, cgroup, exe, _] = KINDS.map(|wanted| match wanted {
            kind::PID_CONTAINER => Ok(Vec::new()),
            _ => read(root, wanted, name),
        });
        let container = match &cgroup {
            Ok(text) if has_container_around(text) => Ok(self.container_of(root, text, finder)),
            Ok(_) | Err(_) => Ok(Vec::new()),
        };
        [cmdline, cgroup, exe, container]
    }

    /// The text of the container around a process, remembered if something is known of it.
    fn container_of(&self, root: &Root, cgroup: &[u8], finder: &mut Finder) -> Vec<u8> {
        finder.lookups += 1;
        if finder.lookups > LOOKUPS_MAX {
            finder.forget();
            self.lock().containers.clear();
        }
        if let Some(known) = self
            .lock()
            .containers
            .get(cgroup)
            .filter(|text| !text.is_empty())
        {
            return known.clone();
        }
        let text = text_of(&finder.containers.around(root, cgroup));
        if text.is_empty() {
            finder.forget();
        }
        let mut state = self.lock();
        if state.containers.len() < REMEMBERED_MAX {
            state.containers.insert(cgroup.to_vec(), text.clone());
        }
        text
    }
}

/// Finds containers for the lane's thread.
#[derive(Default)]
struct Finder {
    containers: Containers,
    /// Lookups since the files were forgotten.
    lookups: usize,
}

impl Finder {
    fn forget(&mut self) {
        *self = Finder::default();
    }
}

fn text_of(identity: &GroupIdentity) -> Vec<u8> {
    let mut text = Vec::new();
    identity.put_text(&mut text);
    text
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
