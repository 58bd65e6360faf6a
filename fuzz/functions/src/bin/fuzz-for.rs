//! `fuzz-for SECONDS [TARGET]`: runs every target for this time, on the corpus, its mutations and
//! random bytes. A panic, or more than [`LIMIT`] for one input, prints the input as hex and fails.

#![allow(clippy::print_stderr, reason = "a person reads it")]

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kymo_fuzz::TARGETS;
use kymo_sys::clock::thread_cpu_ns;

/// Longest CPU time for one input: the machine may be busy.
const LIMIT: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20.0);
    let only = arguments.next();
    let seed = std::env::var("FUZZ_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(now);
    let corpus = corpus();
    eprintln!(
        "fuzz-for: {seconds} s a target, {} corpus texts, FUZZ_SEED={seed}",
        corpus.len()
    );
    say_input_on_panic();
    let mut failed = 0;
    for (name, target) in TARGETS {
        if only.as_deref().is_none_or(|only| only == *name) {
            failed += u32::from(!run(
                name,
                *target,
                Duration::from_secs_f64(seconds),
                seed,
                &corpus,
            ));
        }
    }
    ExitCode::from(u8::from(failed > 0))
}

fn now() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(1, |t| t.as_nanos() as u64 | 1)
}

/// The present input of the target.
static INPUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Installs a hook, since a panic ends a release build.
fn say_input_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        before(panic);
        say_input(&INPUT.lock().unwrap_or_else(PoisonError::into_inner));
    }));
}

fn say_input(input: &[u8]) {
    let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
    eprintln!("fuzz-for: the input was {hex}");
}

fn run(name: &str, target: fn(&[u8]), time: Duration, seed: u64, corpus: &[Vec<u8>]) -> bool {
    let mut random = Random(seed | 1);
    let start = Instant::now();
    let (mut runs, mut slowest) = (0u64, Duration::ZERO);
    while start.elapsed() < time {
        let input = random.input(corpus);
        input.clone_into(&mut INPUT.lock().unwrap_or_else(PoisonError::into_inner));
        let before_ns = thread_cpu_ns();
        target(&input);
        slowest = slowest.max(Duration::from_nanos(thread_cpu_ns() - before_ns));
        runs += 1;
        if slowest > LIMIT {
            eprintln!("fuzz-for: {name} took {slowest:?}, more than {LIMIT:?}");
            say_input(&input);
            return false;
        }
    }
    eprintln!("fuzz-for: {name}: {runs} runs, slowest {slowest:?}");
    true
}

/// All files of tests/corpus, and of its folder with configurations.
fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let folders = [folder.join("mrtg"), folder];
    let files = folders.into_iter().flat_map(std::fs::read_dir).flatten();
    files
        .flatten()
        .filter_map(|file| std::fs::read(file.path()).ok())
        .collect()
}

/// Parts of hostile names, and the greatest number.
const NASTY: [&str; 6] = [
    "\x1b]0;x\x07",
    "\u{9b}31m",
    "\u{202e}",
    "\",\"\r\n",
    ") (",
    "18446744073709551615",
];

/// xorshift64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn input(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut input = match self.below(4) {
            0 => (0..self.below(300)).map(|_| self.next() as u8).collect(),
            _ if corpus.is_empty() => Vec::new(),
            _ => corpus[self.below(corpus.len())].clone(),
        };
        if self.below(3) == 0 && !corpus.is_empty() {
            let other = input.clone();
            input.push(0);
            input.extend(other);
        }
        for _ in 0..self.below(12) {
            self.mutate(&mut input);
        }
        input
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        match self.below(8) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = b"0123456789 \n:().-"[self.below(17)],
            2 => input.truncate(at),
            3 => input.insert(at, self.next() as u8),
            4 if at < input.len() => {
                input.remove(at);
            }
            5 => {
                let number = (self.next() >> self.below(64)).to_string();
                input.splice(at..at, number.bytes());
            }
            6 => {
                let nasty = NASTY[self.below(NASTY.len())];
                input.splice(at..at, nasty.bytes());
            }
            _ => {
                let end = (at + self.below(40)).min(input.len());
                let piece = input[at..end].to_vec();
                let to = self.below(input.len() + 1);
                input.splice(to..to, piece);
            }
        }
    }
}
