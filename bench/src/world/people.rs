//! Simulated processes: most of them sleep, some work, a few live only for a while.

use kymo_base::template::Grammar;
use kymo_base::track::Why;
use kymo_base::track_writer::TrackWriter;
use kymo_kernel::source::kind;
use std::io::Write as _;

use super::chance::Chance;

/// Kinds of their tracks, in the order of a record.
const KINDS: [u8; 6] = [
    kind::PID_STAT,
    kind::PID_IO,
    kind::PID_STATUS,
    kind::PID_CMDLINE,
    kind::PID_CGROUP,
    kind::PID_EXE,
];
const STAT: usize = 0;
const IO: usize = 1;
const STATUS: usize = 2;
/// First of the kinds that identify a process and are read once.
const IDENTITY: usize = 3;

/// Share of processes that work in most scans;
/// [`STIRRING`] work now and then, the others sleep.
const BUSY: f64 = 0.09;
const STIRRING: f64 = 0.20;
/// Probability that a scan replaces a process.
const BIRTHS: f64 = 0.4;
/// Working scans of a process until its `status` is read again.
const STATUS_SCANS: u32 = 2;
const HZ: u64 = 100;

/// All processes, with their tracks.
pub(super) struct People {
    members: Vec<Member>,
    tracks: [TrackWriter; 6],
    chance: Chance,
    next_pid: u64,
}

struct Member {
    pid: u64,
    name: &'static str,
    /// Probability of work in a scan.
    works: f64,
    start_ticks: u64,
    utime: u64,
    stime: u64,
    minflt: u64,
    rss: u64,
    rchar: u64,
    wchar: u64,
    calls: u64,
    read_bytes: u64,
    write_bytes: u64,
    switches: u64,
    worked: u32,
    texts: [Vec<u8>; 6],
    is_new: bool,
}

const NAMES: [&str; 12] = [
    "postgres",
    "nginx",
    "php-fpm8.2",
    "java",
    "redis-server",
    "sshd",
    "bash",
    "python3",
    "kworker/0:1",
    "systemd-journal",
    "cron",
    "containerd-shim",
];

impl People {
    /// `count` processes, on a machine with an uptime of `up_s` seconds.
    pub(super) fn new(count: usize, up_s: u64) -> People {
        let grammars = [
            Grammar::Stat,
            Grammar::Plain,
            Grammar::Keyed,
            Grammar::Word,
            Grammar::Word,
            Grammar::Word,
        ];
        let mut people = People {
            members: Vec::new(),
            tracks: grammars.map(TrackWriter::new),
            chance: Chance::new(0x7065_6f70),
            next_pid: 300,
        };
        for slot in 0..count {
            let member = people.born(up_s);
            people.place(slot, &member);
            people.members.push(member);
        }
        people
    }

    /// A scan at `up_s` seconds after boot: time advances, and every process is read.
    pub(super) fn scan(&mut self, key: bool, up_s: u64, put: &mut impl FnMut(u8, &[u8])) {
        self.begin(key);
        if self.chance.is(BIRTHS) && !self.members.is_empty() {
            self.replace_one(up_s);
        }
        for slot in 0..self.members.len() {
            self.read(slot);
        }
        if key || self.members.iter().any(|member| member.is_new) {
            self.identify();
        }
        self.put_all(put);
    }

    /// A key between two scans repeats the state of every process.
    pub(super) fn state(&mut self, put: &mut impl FnMut(u8, &[u8])) {
        self.begin(true);
        for slot in 0..self.members.len() {
            for track in &mut self.tracks {
                track.unread(slot, Why::NotDue);
            }
        }
        self.put_all(put);
    }

    fn begin(&mut self, key: bool) {
        for track in &mut self.tracks {
            track.begin(key);
        }
    }

    fn put_all(&mut self, put: &mut impl FnMut(u8, &[u8])) {
        for (n, track) in self.tracks.iter_mut().enumerate() {
            if n < IDENTITY || track.has_frames() {
                put(KINDS[n], track.end());
            }
        }
    }

    fn read(&mut self, slot: usize) {
        let member = &mut self.members[slot];
        let works = self.chance.is(member.works);
        if works {
            member.work(&mut self.chance);
        }
        if works || member.is_new {
            member.write_stat();
            member.write_io();
        }
        for which in [STAT, IO] {
            self.tracks[which].read(slot, &member.texts[which]);
        }
        let has_status = !member.is_new && member.worked < STATUS_SCANS;
        if has_status {
            self.tracks[STATUS].unread(slot, Why::NotDue);
        } else {
            member.write_status();
            self.tracks[STATUS].read(slot, &member.texts[STATUS]);
        }
    }

    /// Reads the identity of new processes; the others are noted as not due.
    fn identify(&mut self) {
        for (slot, member) in self.members.iter_mut().enumerate() {
            for (track, text) in self.tracks.iter_mut().zip(&member.texts).skip(IDENTITY) {
                match member.is_new {
                    true => drop(track.read(slot, text)),
                    false => track.unread(slot, Why::NotDue),
                }
            }
            member.is_new = false;
        }
    }

    fn replace_one(&mut self, up_s: u64) {
        // Processes of the first half belong to the machine and stay.
        let half = self.members.len() / 2;
        let slot = half + self.chance.below((self.members.len() - half) as u64) as usize;
        let member = self.born(up_s);
        for track in &mut self.tracks {
            track.gone(slot);
        }
        self.place(slot, &member);
        self.members[slot] = member;
    }

    fn place(&mut self, slot: usize, member: &Member) {
        let name = member.pid.to_string();
        for track in &mut self.tracks {
            track.add(slot, name.as_bytes());
        }
    }

    fn born(&mut self, up_s: u64) -> Member {
        let chance = &mut self.chance;
        self.next_pid += 1 + chance.below(3);
        let lot = chance.part();
        let works = match lot {
            _ if lot < BUSY => 0.9,
            _ if lot < BUSY + STIRRING => 0.25,
            _ => 0.002,
        };
        let name = NAMES[chance.below(NAMES.len() as u64) as usize];
        let pid = self.next_pid;
        Member {
            pid,
            name,
            works,
            start_ticks: up_s * HZ,
            utime: 0,
            stime: 0,
            minflt: chance.below(5_000),
            rss: 200 + chance.below(60_000),
            rchar: chance.below(1_000_000),
            wchar: chance.below(100_000),
            calls: chance.below(10_000),
            read_bytes: 4096 * chance.below(1_000),
            write_bytes: 0,
            switches: 1,
            worked: 0,
            texts: [
                Vec::new(),
                Vec::new(),
                Vec::new(),
                format!("/usr/bin/{name}\0--worker\0{}\0", chance.below(40)).into_bytes(),
                format!("0::/system.slice/{name}.service\n").into_bytes(),
                format!("/usr/bin/{name}").into_bytes(),
            ],
            is_new: true,
        }
    }
}

impl Member {
    fn work(&mut self, chance: &mut Chance) {
        self.worked += 1;
        self.utime += chance.burst(12.0);
        self.stime += chance.burst(4.0);
        self.minflt += chance.burst(30.0);
        self.switches += chance.burst(200.0);
        self.calls += chance.burst(150.0);
        self.rchar += chance.burst(60_000.0);
        self.wchar += chance.burst(9_000.0);
        if chance.is(0.3) {
            self.write_bytes += 4096 * chance.burst(6.0);
            self.rss = (self.rss + chance.below(64))
                .saturating_sub(chance.below(64))
                .max(100);
        }
        if chance.is(0.05) {
            self.read_bytes += 4096 * chance.burst(20.0);
        }
    }

    fn write_stat(&mut self) {
        let Member { pid, name, .. } = *self;
        let (minflt, utime, stime) = (self.minflt, self.utime, self.stime);
        let (start, rss) = (self.start_ticks, self.rss);
        let vsize = 40_000_000 + rss * 8192;
        let text = &mut self.texts[STAT];
        text.clear();
        // Writing to a Vec cannot fail.
        let _ = writeln!(
            text,
            "{pid} ({name}) S 1 {pid} {pid} 0 -1 4194304 {minflt} 0 0 0 {utime} {stime} 0 0 20 0 4 0 \
             {start} {vsize} {rss} 18446744073709551615 94823880036352 94823880056233 \
             140732463763920 0 0 0 0 4096 17473 0 0 0 17 1 0 0 0 0 0 94823880072240 94823880073856 \
             94824841211904 140732463770256 140732463770308 140732463770308 140732463771627 0"
        );
    }

    fn write_io(&mut self) {
        let (rchar, wchar, calls) = (self.rchar, self.wchar, self.calls);
        let (read, written, half) = (self.read_bytes, self.write_bytes, self.calls / 2);
        let text = &mut self.texts[IO];
        text.clear();
        let _ = writeln!(
            text,
            "rchar: {rchar}\nwchar: {wchar}\nsyscr: {calls}\nsyscw: {half}\nread_bytes: {read}\n\
             write_bytes: {written}\ncancelled_write_bytes: 0"
        );
    }

    fn write_status(&mut self) {
        self.worked = 0;
        let Member { pid, name, .. } = *self;
        let (rss, switches) = (self.rss * 4, self.switches);
        let (size, data) = (39_063 + rss * 2, rss / 2);
        let text = &mut self.texts[STATUS];
        text.clear();
        let _ = writeln!(
            text,
            "Name:\t{name}\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t{pid}\nNgid:\t0\nPid:\t{pid}\n\
             PPid:\t1\nTracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t256\n\
             VmPeak:\t{size:8} kB\nVmSize:\t{size:8} kB\nVmLck:\t       0 kB\nVmHWM:\t{rss:8} kB\n\
             VmRSS:\t{rss:8} kB\nVmData:\t{data:8} kB\nVmStk:\t     132 kB\nVmExe:\t      20 kB\n\
             VmLib:\t    1528 kB\nVmPTE:\t      48 kB\nVmSwap:\t       0 kB\nThreads:\t4\n\
             voluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t1"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_says_what_moved_and_a_key_everything() {
        let mut people = People::new(200, 1000);
        let mut size = |key, up_s| {
            let mut bytes = 0;
            people.scan(key, up_s, &mut |_, section| bytes += section.len());
            bytes
        };
        let (first, second, key) = (size(true, 1000), size(false, 1005), size(true, 1010));
        assert!(second < first / 4, "{first} {second}");
        assert!(key > second * 4, "{second} {key}");
    }
}
