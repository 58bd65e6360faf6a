//! The sampler's thread: waits for the beat, takes a sample, and pushes the record to
//! the queue. It never waits for a disk. The first sample waits for its beat too, so
//! that all intervals have the same length; only without pause it is taken at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kymo_base::limits;
use kymo_kernel::backoff::{SLOW_TURNS, SlowRead};
use kymo_kernel::sampler::{Due, Sampler};
use kymo_kernel::source;
use kymo_sys::clock::{Clock, Stamp};
use kymo_sys::ticker::{Beat, Ticker};

use crate::queue::Queue;
use crate::record::{self, Head};

/// Event before the first sample of a recorder; readers use it to tell two recorders apart.
pub const STARTS: &str = "recorder starts";

/// Notice that a recorder writes once.
const MALFORMED: &str = "what the keeper says of programs is malformed, and left out";

/// Schedule of the samples.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Time between samples; zero for no pause.
    pub interval: Duration,
    /// Number of samples between two scans of processes.
    pub scan_each: u32,
    /// Number of samples after the baseline.
    pub count: Option<u64>,
    /// Run time after the baseline.
    pub runtime: Option<Duration>,
    /// Aligns the baseline to the interval of the scans rather than to that of the samples.
    pub scans_aligned: bool,
    /// Writes the event [`STARTS`] first.
    pub announced: bool,
}

/// State that the sampler shares with other threads, and flags by which they control it.
#[derive(Default)]
pub struct Control {
    /// Set by others: end after the current sample.
    pub stop: AtomicBool,
    /// Set by the sampler when a disk or a NIC came or went, so that the facts must be read again.
    pub devices_changed: AtomicBool,
    /// Set by others: sync all recorded records now, whatever the sync interval.
    pub flush_wanted: AtomicBool,
    /// Set by a thread that lost records: the next sample must be a key.
    pub key_wanted: AtomicBool,
    /// Start of the current sample (monotonic), 0 between samples.
    pub sampling_since_ns: AtomicU64,
    /// Samples taken.
    pub samples: AtomicU64,
    /// Largest number of files that the sampler kept open.
    pub kept_files: AtomicU64,
    /// Number of processes in the baseline.
    pub processes: AtomicU64,
    /// Number of those processes with a file that the sampler may not read.
    pub forbidden: AtomicU64,
    /// Beats missed.
    pub missed: AtomicU64,
}

impl Control {
    fn note_sizes(&self, sampler: &Sampler) {
        let (processes, _, files) = sampler.sizes();
        self.processes.store(processes as u64, Ordering::Relaxed);
        self.forbidden
            .store(sampler.forbidden() as u64, Ordering::Relaxed);
        self.kept_files.fetch_max(files as u64, Ordering::Relaxed);
    }
}

/// Takes samples until the schedule or `control` ends it, then closes the queue.
pub fn run(
    mut sampler: Sampler,
    schedule: Schedule,
    ticker: Option<&Ticker>,
    clock: &dyn Clock,
    control: &Control,
    (queue, key_wanted): (&Queue, &AtomicBool),
) {
    let mut beat = BeatState::new(schedule, clock.now());
    if let Some(ticker) = ticker {
        wait_for_baseline(ticker, &mut beat, clock, control);
    }
    let mut out = Vec::with_capacity(64 << 10);
    while !control.stop.load(Ordering::Relaxed) {
        let stamp = clock.now();
        control
            .sampling_since_ns
            .store(stamp.mono_ns, Ordering::Relaxed);
        let key = beat.is_key([key_wanted, &control.key_wanted]);
        out.clear();
        if beat.taken == 0 {
            beat.begin(stamp);
        }
        beat.note_start(stamp, &mut out);
        beat.note_clock(stamp, &mut out);
        let due = beat.due(stamp);
        take(
            &mut sampler,
            clock,
            stamp,
            (key, due, beat.missed),
            &mut out,
        );
        report(&mut sampler, stamp, &mut out);
        control.sampling_since_ns.store(0, Ordering::Relaxed);
        if key {
            control.note_sizes(&sampler);
        }
        if beat.facts_are_due(stamp, sampler.devices_changed()) {
            control.devices_changed.store(true, Ordering::Relaxed);
        }
        let pushed = push(queue, &out, schedule, control);
        beat.pushed(pushed);
        control.samples.store(beat.taken, Ordering::Relaxed);
        if beat.is_done() {
            break;
        }
        if let Some(ticker) = ticker {
            let missed = wait(ticker, &mut beat, control);
            beat.missed = beat.missed.saturating_add(missed);
            control
                .missed
                .fetch_add(u64::from(missed), Ordering::Relaxed);
        }
    }
    queue.close();
}

/// Pushes a record to the queue. Without pause there are no beats to miss, so it waits for room.
fn push(queue: &Queue, record: &[u8], schedule: Schedule, control: &Control) -> bool {
    while schedule.interval.is_zero() && !queue.has_room(record.len()) {
        if control.stop.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    queue.push(record)
}

/// State of the beat between samples.
struct BeatState {
    schedule: Schedule,
    /// Stamp of the baseline.
    start: Stamp,
    last: Stamp,
    taken: u64,
    since_key: u32,
    clock_set: bool,
    /// The last record found no room in the queue.
    lost: bool,
    /// Number of samples missed since the last record that found room.
    missed: u32,
    /// Number of the scan interval in which the last sample fell.
    scan: i64,
    /// Monotonic time at which the facts are read a second time after a device came or went.
    facts_again_ns: Option<u64>,
}

/// How early the timer may fire while the wall clock is slewed.
const EARLY_NS: i64 = 1_000_000;
/// Change of the wall clock against the monotonic clock that counts as a step.
const STEP_NS: i64 = 100_000_000;
/// How long /sys may lag behind /proc: the kernel removes an interface from /proc/net/dev before it removes its folder
/// from /sys, the source of the facts.
const SYSFS_LAG_NS: u64 = 1_000_000_000;

impl BeatState {
    fn new(schedule: Schedule, start: Stamp) -> BeatState {
        BeatState {
            schedule,
            start,
            last: start,
            taken: 0,
            since_key: 0,
            clock_set: false,
            lost: false,
            missed: 0,
            scan: i64::MIN,
            facts_again_ns: None,
        }
    }

    /// Returns true if the facts must be read after this sample: when a
    /// device came or went, and a second time after /sys has caught up.
    fn facts_are_due(&mut self, now: Stamp, devices_changed: bool) -> bool {
        if devices_changed {
            self.facts_again_ns = Some(now.mono_ns + SYSFS_LAG_NS);
            return true;
        }
        self.facts_again_ns
            .take_if(|again_ns| *again_ns <= now.mono_ns)
            .is_some()
    }

    /// Marks `now` as the time of the baseline.
    fn begin(&mut self, now: Stamp) {
        (self.start, self.last, self.clock_set) = (now, now, false);
    }

    /// Nanoseconds between two scans.
    fn scan_interval_ns(&self) -> i64 {
        let interval_ns = self.schedule.interval.as_nanos() as i64;
        interval_ns.saturating_mul(self.schedule.scan_each.max(1).into())
    }

    /// Returns true if the baseline may be taken at `now`.
    fn may_begin(&self, now: Stamp) -> bool {
        let since_ns = (now.real_ns.saturating_add(EARLY_NS)).rem_euclid(self.scan_interval_ns());
        !self.schedule.scans_aligned || since_ns < self.schedule.interval.as_nanos() as i64
    }

    /// Returns true if the count is reached, or if the next sample would fall after the run time. A sample due right at
    /// the end may be a little late.
    fn is_done(&self) -> bool {
        let interval = self.schedule.interval;
        let next = Duration::from_nanos(self.last.mono_ns - self.start.mono_ns) + interval;
        let over = |runtime| next >= runtime + interval / 2 && next > runtime;
        self.schedule.count.is_some_and(|count| self.taken > count)
            || self.schedule.runtime.is_some_and(over)
    }

    fn is_key(&mut self, wishes: [&AtomicBool; 2]) -> bool {
        let take_wish =
            |wish: &AtomicBool| wish.load(Ordering::Relaxed) && wish.swap(false, Ordering::Relaxed);
        let wanted = wishes.map(take_wish).contains(&true) || self.lost;
        let key = wanted || self.taken == 0 || self.since_key >= limits::KEY_SAMPLES;
        self.since_key = if key { 1 } else { self.since_key + 1 };
        key
    }

    /// Notes if a record found room; a record without room counts as a missed sample.
    fn pushed(&mut self, pushed: bool) {
        self.taken += 1;
        self.lost = !pushed;
        self.missed = if pushed {
            0
        } else {
            self.missed.saturating_add(1)
        };
    }

    /// Decides if this sample scans processes. The baseline does, then the first sample of each scan interval from there,
    /// by the clock, so that a missed sample does not delay later scans.
    fn due(&mut self, now: Stamp) -> Due {
        let each = i64::from(self.schedule.scan_each.max(1));
        let interval_ns = self.schedule.interval.as_nanos() as i64;
        let beats = |at: Stamp| at.real_ns.saturating_add(EARLY_NS).div_euclid(interval_ns);
        let scan = match (interval_ns, each) {
            (0, _) | (_, 1) => self.taken as i64 / each,
            // Counts whole beats, so that a late baseline does not make all scans late.
            _ => beats(now)
                .saturating_sub(beats(self.start))
                .div_euclid(each),
        };
        let due = self.scan != scan;
        self.scan = scan;
        if due { Due::Now } else { Due::Later }
    }

    /// Adds the event to the batch of the first sample, so that either both are recorded or neither.
    fn note_start(&self, now: Stamp, out: &mut Vec<u8>) {
        if self.schedule.announced && self.taken == 0 {
            record::push_event(out, now, STARTS);
        }
    }

    /// Adds an event before the sample if the wall clock was stepped or the machine was asleep.
    fn note_clock(&mut self, now: Stamp, out: &mut Vec<u8>) {
        let mono = now.mono_ns as i64 - self.last.mono_ns as i64;
        let asleep = (now.boot_ns as i64 - self.last.boot_ns as i64) - mono;
        let step = (now.real_ns - self.last.real_ns)
            .saturating_sub(mono)
            .saturating_sub(asleep);
        if self.clock_set || step.abs() >= STEP_NS {
            record::push_event(out, now, &format!("clock step {:+.3} s", step as f64 / 1e9));
        }
        if asleep >= STEP_NS {
            record::push_event(out, now, &format!("suspended {:.3} s", asleep as f64 / 1e9));
        }
        self.clock_set = false;
        self.last = now;
    }
}

/// Waits for the beat at which the first interval begins, or for `stop`.
fn wait_for_baseline(ticker: &Ticker, beat: &mut BeatState, clock: &dyn Clock, control: &Control) {
    while !control.stop.load(Ordering::Relaxed) {
        wait(ticker, beat, control);
        if beat.may_begin(clock.now()) {
            return;
        }
    }
}

/// Waits for the next tick; returns the number of ticks missed meanwhile.
fn wait(ticker: &Ticker, beat: &mut BeatState, control: &Control) -> u32 {
    loop {
        let waited = ticker.wait();
        if control.stop.load(Ordering::Relaxed) {
            // A thread that sets `stop` also wakes the ticker, so this is no beat.
            return 0;
        }
        match waited {
            Ok(Beat::Tick { missed }) => return missed.min(u64::from(u32::MAX)) as u32,
            Ok(Beat::ClockSet) => beat.clock_set = true,
            // An unreadable timer must not become a busy loop.
            Err(_) => std::thread::sleep(beat.schedule.interval),
        }
    }
}

/// Size above which no queue could hold a sample; sections that would exceed it are left out.
const SAMPLE_MAX: usize = limits::QUEUE_MAX - (1 << 20);

fn take(
    sampler: &mut Sampler,
    clock: &dyn Clock,
    stamp: Stamp,
    (key, due, missed): (bool, Due, u32),
    out: &mut Vec<u8>,
) {
    let mut left_out = Vec::new();
    let mut open = record::begin(out, &Head::sample(stamp, key, missed));
    sampler.sample(clock, key, due, |kind, cost, section| {
        if open.out().len() + section.len() > SAMPLE_MAX {
            left_out.push(kind);
        } else {
            open.section(kind, cost, |out| out.extend_from_slice(section));
        }
    });
    open.end();
    if !left_out.is_empty() {
        record::push_event(
            out,
            stamp,
            &format!("sample too large: {} left out", source::names(&left_out)),
        );
    }
}

fn report(sampler: &mut Sampler, stamp: Stamp, out: &mut Vec<u8>) {
    for slow in sampler.take_slow() {
        record::push_event(out, stamp, &slow_line(&slow));
    }
    if sampler.take_malformed_activity() {
        record::push_event(out, stamp, MALFORMED);
    }
    if let Some(max) = sampler.take_groups_left_out() {
        let line =
            format!("more than {max} control groups: those farthest from the root are not read");
        record::push_event(out, stamp, &line);
    }
}

/// Formats e.g. `slow read: proc/stat took 15.2 ms, again 15.1 ms; read at 1 of 2 turns from now on`. If the second read,
/// directly after the first, is quick, the cost is that of the work which the kernel collected since the last turn.
fn slow_line(slow: &SlowRead) -> String {
    let ms = |ns: u64| ns as f64 / 1e6;
    let cost_ms = ms(slow.cost_ns);
    let mut line = match slow.again_ns > slow.cost_ns / 10 {
        true => format!(
            "slow read: {} took {cost_ms:.1} ms, again {:.1} ms",
            slow.path,
            ms(slow.again_ns)
        ),
        false => format!(
            "slow read: {} took {cost_ms:.1} ms, as at each of {SLOW_TURNS} turns",
            slow.path
        ),
    };
    if slow.stride > 1 {
        line.push_str(&format!("; read at 1 of {} turns from now on", slow.stride));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_sys::sim_clock::SimClock;

    const SECOND: u64 = 1_000_000_000;

    fn events(before: Stamp, after: Stamp) -> Vec<String> {
        let schedule = Schedule {
            interval: Duration::from_secs(1),
            scan_each: 5,
            count: None,
            runtime: None,
            scans_aligned: false,
            announced: false,
        };
        let mut beat = BeatState::new(schedule, before);
        let mut out = Vec::new();
        beat.note_clock(after, &mut out);
        let mut lines = Vec::new();
        let mut rest = &out[..];
        while let Ok(record) = record::parse_unsealed(rest) {
            lines.push(record.text().into_owned());
            rest = &rest[record.length..];
        }
        lines
    }

    /// Returns the stamp one second later; the wall clock moves by a further `wall_s` + `asleep_s`.
    fn later(start: Stamp, wall_s: i64, asleep_s: u64) -> Stamp {
        Stamp {
            real_ns: start.real_ns + (1 + wall_s + asleep_s as i64) * SECOND as i64,
            mono_ns: start.mono_ns + SECOND,
            boot_ns: start.boot_ns + (1 + asleep_s) * SECOND,
        }
    }

    #[test]
    fn steps_and_sleep_are_events() {
        let start = SimClock::new(Stamp {
            real_ns: 1_700_000_000 * SECOND as i64,
            mono_ns: SECOND,
            boot_ns: SECOND,
        })
        .now();
        for (wall_s, asleep_s, expected) in [
            (0, 0, &[][..]),
            (-12 * 3600, 0, &["clock step -43200.000 s"][..]),
            (10 * 365 * 86_400, 0, &["clock step +315360000.000 s"]),
            (0, 8 * 3600, &["suspended 28800.000 s"]),
            (-1, 60, &["clock step -1.000 s", "suspended 60.000 s"]),
        ] {
            assert_eq!(events(start, later(start, wall_s, asleep_s)), expected);
        }
    }

    fn each_second(scan_each: u32, scans_aligned: bool) -> Schedule {
        Schedule {
            interval: Duration::from_secs(1),
            scan_each,
            count: None,
            runtime: None,
            scans_aligned,
            announced: false,
        }
    }

    fn at_ms(ms: u64) -> Stamp {
        Stamp {
            real_ns: ms as i64 * 1_000_000,
            mono_ns: ms * 1_000_000,
            boot_ns: ms * 1_000_000,
        }
    }

    /// Regression test: the first interval of processes was shorter than the others.
    #[test]
    fn scans_are_counted_from_the_baseline() {
        // The baseline is 300 ms late, one beat is early, and one is missing.
        let mut beat = BeatState::new(each_second(5, false), at_ms(0));
        beat.begin(at_ms(3_300));
        let times = [
            3_300, 4_000, 5_000, 6_000, 7_000, 7_999, 9_000, 10_000, 11_000, 12_000, 14_000,
            15_000, 16_000, 17_000, 18_000,
        ];
        let due: Vec<u64> = times
            .into_iter()
            .filter(|&ms| beat.due(at_ms(ms)) == Due::Now)
            .collect();
        assert_eq!(due, [3_300, 7_999, 14_000, 18_000]);
    }

    #[test]
    fn facts_are_gathered_again_when_sysfs_has_followed() {
        let mut beat = BeatState::new(each_second(1, false), at_ms(0));
        let due: Vec<u64> = (0..40)
            .map(|n| n * 100)
            .filter(|&ms| beat.facts_are_due(at_ms(ms), ms == 300 || ms == 700))
            .collect();
        assert_eq!(due, [300, 700, 1_700]);
    }

    #[test]
    fn a_stop_is_no_missed_beat() {
        let ticker = Ticker::new(Duration::from_secs(3600)).expect("a timer");
        let control = Control::default();
        control.stop.store(true, Ordering::Relaxed);
        ticker.ring().expect("a timer");
        let mut beat = BeatState::new(each_second(5, false), at_ms(0));
        assert_eq!(wait(&ticker, &mut beat, &control), 0);
    }

    #[test]
    fn aligned_scans_wait_for_their_multiple() {
        for (ms, aligned, begins) in [
            (3_000, false, true),
            (3_000, true, false),
            (4_998, true, false),
            (4_999, true, true),
            (5_300, true, true),
            (6_000, true, false),
            (9_998, true, false),
        ] {
            let beat = BeatState::new(each_second(5, aligned), at_ms(0));
            assert_eq!(beat.may_begin(at_ms(ms)), begins, "{ms} ms, {aligned}");
        }
    }

    #[test]
    fn a_runtime_counts_from_the_baseline_in_whole_intervals() {
        for (runtime_ms, expect) in [(500, 0), (1_000, 1), (3_000, 3), (3_400, 3), (60_000, 6)] {
            let runtime = Some(Duration::from_millis(runtime_ms));
            let schedule = Schedule {
                runtime,
                ..each_second(1, false)
            };
            let mut beat = BeatState::new(schedule, at_ms(0));
            beat.begin(at_ms(1_000));
            // Some samples come late.
            let taken = [1_000, 2_050, 3_300, 4_000, 5_200, 6_000, 7_000]
                .into_iter()
                .take_while(|&ms| {
                    let over = ms > 1_000 && beat.is_done();
                    beat.last = at_ms(ms);
                    !over
                });
            assert_eq!(taken.count() - 1, expect, "{runtime_ms} ms");
        }
    }

    #[test]
    fn a_lost_record_makes_the_next_one_a_key() {
        let schedule = Schedule {
            interval: Duration::ZERO,
            scan_each: 1,
            count: None,
            runtime: None,
            scans_aligned: false,
            announced: false,
        };
        let mut beat = BeatState::new(schedule, Stamp::default());
        let wish = AtomicBool::new(false);
        let mut key = |taken, lost| {
            (beat.taken, beat.lost) = (taken, lost);
            beat.is_key([&wish, &wish])
        };
        assert!(key(0, false));
        assert!(!key(1, false));
        assert!(key(2, true));
        wish.store(true, Ordering::Relaxed);
        let mut key = |taken, lost| {
            (beat.taken, beat.lost) = (taken, lost);
            beat.is_key([&wish, &wish])
        };
        assert!(key(3, false), "a wish is granted");
        assert!(!key(4, false), "once");
        assert_eq!(
            (5..70).filter(|&taken| key(taken, false)).count(),
            1,
            "and every 60 samples"
        );
    }
}
