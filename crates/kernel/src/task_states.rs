//! Processes by state: counted at each scan from what the table of processes has anyway, so that no file is read for
//! it.

use kymo_base::scan::put_number;
use kymo_base::template::Grammar;
use kymo_base::track::Why;
use kymo_base::track_writer::TrackWriter;

/// The kernel's letters of states, with the names of their lines.
const STATES: [(u8, &str); 9] = [
    (b'R', "tasks_running"),
    (b'S', "tasks_sleeping"),
    (b'D', "tasks_disk"),
    (b'T', "tasks_stopped"),
    (b't', "tasks_traced"),
    (b'Z', "tasks_zombie"),
    (b'X', "tasks_dead"),
    (b'I', "tasks_idle"),
    (b'P', "tasks_parked"),
];

/// The track of the counts.
pub(crate) struct TaskStates {
    track: TrackWriter,
    text: Vec<u8>,
}

impl TaskStates {
    /// A track without counts yet.
    pub(crate) fn new() -> TaskStates {
        let mut track = TrackWriter::new(Grammar::Counts);
        track.add(0, b"");
        TaskStates {
            track,
            text: Vec::new(),
        }
    }

    /// The section of a sample with a scan that found processes of these states and numbers of threads.
    pub(crate) fn counted(&mut self, key: bool, tasks: impl Iterator<Item = (u8, u64)>) -> &[u8] {
        self.track.begin(key);
        put_counts(tasks, &mut self.text);
        self.track.read(0, &self.text);
        self.track.end()
    }

    /// The section of a key sample without a scan.
    pub(crate) fn not_due(&mut self) -> &[u8] {
        self.track.begin(true);
        self.track.unread(0, Why::NotDue);
        self.track.end()
    }
}

/// Lines `NAME NUMBER`; a state that is in no list counts as a process alone.
fn put_counts(tasks: impl Iterator<Item = (u8, u64)>, out: &mut Vec<u8>) {
    let (mut processes, mut threads, mut states) = (0u64, 0u64, [0u64; STATES.len()]);
    for (state, of_task) in tasks {
        processes += 1;
        threads = threads.saturating_add(of_task);
        let at = STATES.iter().position(|(letter, _)| *letter == state);
        if let Some(count) = at.and_then(|at| states.get_mut(at)) {
            *count += 1;
        }
    }
    out.clear();
    let whole = [("tasks_processes", processes), ("tasks_threads", threads)];
    let by_state = STATES
        .iter()
        .zip(states)
        .map(|((_, name), count)| (*name, count));
    for (name, number) in whole.into_iter().chain(by_state) {
        out.extend_from_slice(name.as_bytes());
        out.push(b' ');
        put_number(out, number, 1, b' ');
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_counted() {
        let mut text = Vec::new();
        let tasks = [
            (b'S', 3),
            (b'R', 1),
            (b'S', 1),
            (b'?', 2),
            (0, 0),
            (b't', 1),
        ];
        put_counts(tasks.into_iter(), &mut text);
        assert_eq!(
            String::from_utf8_lossy(&text),
            "tasks_processes 6\ntasks_threads 8\ntasks_running 1\ntasks_sleeping 2\ntasks_disk 0\ntasks_stopped 0\n\
             tasks_traced 1\ntasks_zombie 0\ntasks_dead 0\ntasks_idle 0\ntasks_parked 0\n"
        );
    }
}
