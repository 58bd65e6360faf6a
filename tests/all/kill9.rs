//! kill -9 at random moments, repeatedly on one folder: everything acknowledged is read back,
//! nothing needs repair. Seals are so small that many kills hit a switch, a seal or a removal.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kymo_sys::effort::{effort, first_seed};
use kymo_tests::{Scratch, kymo, parse_dump, run};

/// Counts of the states in which kills left the files.
#[derive(Default, Debug)]
struct Hits {
    /// A block half written.
    sealing: u32,
    /// Both tails in use: the recorder has switched, and the old tail is not sealed yet.
    switched: u32,
    /// Blocks were removed in this round, so the kill came after or in a removal.
    removing: u32,
    acknowledged: u64,
}

impl Hits {
    /// Kills that hit a seal, a switch or a removal.
    fn inside(&self) -> u64 {
        u64::from(self.sealing + self.switched + self.removing)
    }
}

#[test]
fn nothing_acknowledged_is_lost() {
    let seed = first_seed(u64::from(std::process::id()));
    eprintln!("SEED={seed}");
    let rounds = effort(200);
    let mut random = seed | 1;
    let scratch = Scratch::new("kill9");
    let dir = scratch.text("ring");
    let mut hits = Hits::default();
    let mut newest = 0;
    for round in 0..3 * rounds {
        // Chance decides how many kills hit a seal, a switch
        // or a removal: more rounds follow if too few did.
        if round >= rounds && hits.inside() >= rounds / 4 {
            break;
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let before = blocks(&dir);
        let acked = record_and_kill(&dir, random, round % 4 == 0);
        look(&dir, &before, &mut hits);
        hits.acknowledged += acked.len() as u64;
        check(&dir, &acked, &mut newest, round);
    }
    eprintln!("{hits:?}");
    assert!(
        hits.inside() >= rounds / 4,
        "too few kills hit a seal, a switch or a removal: {hits:?}"
    );
    assert!(
        hits.acknowledged > rounds * 3,
        "hardly anything was recorded: {hits:?}"
    );
}

/// Records for a random while, kills the recorder, and returns the acknowledged sequence numbers.
fn record_and_kill(dir: &str, random: u64, pauseless: bool) -> Vec<u64> {
    let (mut acks, child_end) = pipe();
    let interval = if pauseless { "0" } else { ".002" };
    let mut command = Command::new(kymo());
    command.args([
        "record",
        "-s",
        "c",
        "-i",
        interval,
        "-f",
        dir,
        "--cap",
        "512K",
        "--seal-bytes",
        "8K",
    ]);
    command.args(["--sync", if random.is_multiple_of(3) { "0" } else { "5s" }]);
    command
        .arg("--ack-fd")
        .arg(child_end.as_raw_fd().to_string())
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("kymo starts");
    drop(child_end);
    let mut first = [0u8; 1];
    let mut text = String::new();
    if acks.read(&mut first).expect("acknowledgements") == 1 {
        text.push(first[0] as char);
    }
    if random & 8 == 0 {
        wait_for_seal(dir, Duration::from_millis(60));
    } else {
        std::thread::sleep(Duration::from_micros(random % 90_000));
    }
    child.kill().expect("kill -9");
    child.wait().expect("the end");
    acks.read_to_string(&mut text).expect("acknowledgements");
    // A truncated last line is no acknowledgement.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect()
}

/// Waits until a block is being written, or for `at_most`.
fn wait_for_seal(dir: &str, at_most: Duration) {
    let start = Instant::now();
    while start.elapsed() < at_most && !blocks(dir).iter().any(|name| is_half(name)) {}
}

/// The name of an unfinished block does not end in `.blk`.
fn is_half(name: &str) -> bool {
    !name.starts_with("tail") && !name.ends_with(".blk")
}

/// A pipe whose write end a child inherits.
fn pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    kymo_tests::inherit(&writer);
    (reader, writer)
}

fn blocks(dir: &str) -> BTreeSet<String> {
    let folders = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let files = folders
        .filter_map(|folder| std::fs::read_dir(folder.path()).ok())
        .flatten()
        .flatten();
    files
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .collect()
}

fn look(dir: &str, before: &BTreeSet<String>, hits: &mut Hits) {
    let after = blocks(dir);
    let tails = after.iter().filter(|name| name.starts_with("tail")).count();
    let half = after.iter().any(|name| is_half(name));
    let removed = before
        .iter()
        .any(|name| name.ends_with(".blk") && !after.contains(name));
    if half {
        hits.sealing += 1;
    } else if tails == 2 && both_in_use(dir) {
        hits.switched += 1;
    } else if removed {
        hits.removing += 1;
    }
}

/// True if the tail with the older epoch holds records that no block holds yet.
fn both_in_use(dir: &str) -> bool {
    let newest_block = blocks(dir)
        .iter()
        .filter(|n| n.ends_with(".blk"))
        .filter_map(|n| n[..12].parse::<u64>().ok())
        .max();
    let seqs = kymo_tests::tail_first_seqs(dir);
    seqs.len() == 2 && seqs.iter().min().copied() > newest_block
}

/// All records acknowledged in this round are there, in unbroken order, and nothing is damaged.
fn check(dir: &str, acked: &[u64], newest: &mut u64, round: u64) {
    let dump = run(&["dump", dir, "--source", "proc/loadavg"]);
    let stderr = String::from_utf8_lossy(&dump.stderr);
    let frames = parse_dump(&dump.stdout);
    let seqs: BTreeSet<u64> = frames.iter().map(|frame| frame.seq).collect();
    let lost: Vec<_> = acked.iter().filter(|seq| !seqs.contains(seq)).collect();
    // Retention may have removed records older than the oldest one left.
    let oldest = seqs.first().copied().unwrap_or(0);
    let lost: Vec<_> = lost.into_iter().filter(|&&seq| seq >= oldest).collect();
    assert!(
        lost.is_empty(),
        "round {round}: lost {lost:?} of {acked:?}; kept {oldest}..; {stderr}"
    );
    assert!(!stderr.contains("damage"), "round {round}: {stderr}");
    assert!(
        acked.first().is_none_or(|&first| first > *newest),
        "round {round}: a number was given twice"
    );
    assert!(
        frames.iter().all(|frame| frame.text.contains(&b'/')),
        "round {round}: a wrong text"
    );
    *newest = (*newest).max(seqs.last().copied().unwrap_or(0));
}
