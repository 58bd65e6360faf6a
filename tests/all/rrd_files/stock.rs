//! `rrdtool -`, and files of both sides in a form that can be compared.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use kymo_rrd::Rrd;
use kymo_rrd::compute_text;
use kymo_rrd::header::field;
use kymo_tests::Scratch;

/// The zone of all local times.
pub(super) const ZONE: &str = "Europe/Zurich";

/// rrdtool in a scratch folder.
pub(super) struct Stock {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    pub scratch: Scratch,
}

/// rrdtool's answer to one line.
pub(super) struct Answer {
    pub text: Vec<u8>,
    pub error: Option<String>,
}

impl Stock {
    pub(super) fn start(name: &str) -> Stock {
        let scratch = Scratch::new(name);
        let child = Command::new("rrdtool")
            .arg("-")
            .env("TZ", ZONE)
            .env("LC_ALL", "C")
            .env_remove("RRDCACHED_ADDRESS")
            .current_dir(scratch.path("."))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.expect("rrdtool is there");
        Stock {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
            scratch,
        }
    }

    /// Sends all lines and reads all answers.
    pub(super) fn ask_all(&mut self, lines: &[String]) -> Vec<Answer> {
        let stdin = self.stdin.as_mut().expect("a pipe");
        let stdout = &mut self.stdout;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for line in lines {
                    writeln!(stdin, "{line}").expect("rrdtool reads");
                }
                stdin.flush().expect("rrdtool reads");
            });
            let answers = lines.iter().map(|line| answer(stdout, line));
            answers.collect()
        })
    }

    pub(super) fn ask(&mut self, line: &str) -> Answer {
        let mut answers = self.ask_all(&[line.to_owned()]);
        answers.pop().expect("one answer")
    }

    /// A file that must exist.
    pub(super) fn file(&self, name: &str) -> Rrd {
        Rrd::parse(&self.bytes(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(super) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(super) fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).expect("a file can be written");
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path(name)
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        self.stdin = None;
        // rrdtool ends with its input.
        let _ = self.child.wait();
    }
}

fn answer(stdout: &mut impl BufRead, asked: &str) -> Answer {
    let mut text = Vec::new();
    loop {
        let from = text.len();
        let len = stdout
            .read_until(b'\n', &mut text)
            .expect("rrdtool answers");
        assert!(len > 0, "rrdtool died of: {asked}");
        let line = &text[from..];
        let error = line.strip_prefix(b"ERROR: ").map(|line| {
            String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned()
        });
        if error.is_some() || line.starts_with(b"OK u:") {
            text.truncate(from);
            return Answer { text, error };
        }
    }
}

/// The file with each archive's oldest row first; its first row is random.
pub(super) fn unrotated(mut rrd: Rrd) -> Rrd {
    let (ds_cnt, mut first) = (rrd.header.ds.len(), 0);
    for (rra, cur_row) in rrd.header.rra.iter().zip(&mut rrd.header.cur_row) {
        let len = rra.row_cnt as usize * ds_cnt;
        let oldest = (*cur_row as usize + 1) % rra.row_cnt as usize * ds_cnt;
        rrd.cells[first..first + len].rotate_left(oldest);
        *cur_row = rra.row_cnt - 1;
        first += len;
    }
    rrd
}

/// The file without the random bytes in
/// rrdtool's definition of an added data source.
pub(super) fn without_chance(mut rrd: Rrd) -> Rrd {
    for ds in &mut rrd.header.ds {
        ds.dst = field(ds.dst());
        if ds.dst() == b"COMPUTE" {
            let len = compute_text::nodes(&ds.par).count() + 1;
            for node in len..20 {
                ds.par[node / 2] &= !(0xffff_ffff << (32 * (node % 2)));
            }
            // The byte between operator and value is random.
            for word in &mut ds.par {
                *word &= 0xffff_00ff_ffff_00ff;
            }
        } else {
            ds.par[3..].fill(0);
        }
    }
    rrd
}

/// Panics at the first difference of two files, and names it.
pub(super) fn assert_same(stock: &Rrd, ours: &Rrd, what: &str) {
    let (a, b) = (&stock.header, &ours.header);
    assert_eq!(a.version, b.version, "version of {what}");
    assert_eq!(a.ds, b.ds, "data sources of {what}");
    assert_eq!(a.rra, b.rra, "archives of {what}");
    assert_eq!(a.pdp_prep, b.pdp_prep, "points in the making of {what}");
    for (i, (a, b)) in a.cdp_prep.iter().zip(&b.cdp_prep).enumerate() {
        assert_eq!(a, b, "row in the making {i} of {what}");
    }
    assert_eq!(a, b, "header of {what}");
    let bits = |rrd: &Rrd| {
        rrd.cells
            .iter()
            .map(|cell| cell.to_bits())
            .collect::<Vec<_>>()
    };
    for (i, (a, b)) in bits(stock).iter().zip(&bits(ours)).enumerate() {
        let (a, b) = (f64::from_bits(*a), f64::from_bits(*b));
        assert!(
            a.to_bits() == b.to_bits(),
            "cell {i}: {a:e} and {b:e} of {what}"
        );
    }
    assert_eq!(stock.to_bytes(), ours.to_bytes(), "bytes of {what}");
}

/// Panics at the first line that differs.
pub(super) fn assert_lines(stock: &[u8], ours: &[u8], what: &str) {
    let (stock, ours) = (
        String::from_utf8_lossy(stock),
        String::from_utf8_lossy(ours),
    );
    for (i, (a, b)) in stock.lines().zip(ours.lines()).enumerate() {
        assert_eq!(a, b, "line {} of {what}", i + 1);
    }
    assert_eq!(stock.len(), ours.len(), "length of {what}");
}

/// Arguments in the form that `kymo_rrd` expects.
pub(super) fn words(line: &str) -> Vec<&[u8]> {
    line.split(' ')
        .filter(|word| !word.is_empty())
        .map(str::as_bytes)
        .collect()
}
