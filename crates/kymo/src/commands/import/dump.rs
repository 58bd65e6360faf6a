//! The text that `promtool tsdb dump` prints: samples of a series line after line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use kymo_base::label_set::Labels;
use kymo_wire::promtool_dump::{BadDumpLine, LINE_MAX, dumped_labels, dumped_sample};

use super::{Gathered, ImportOptions, Importer, count};
use crate::output::progress::WorkPace;

/// A dump that is read.
pub(super) struct Dump {
    name: String,
    text: BufReader<Box<dyn Read>>,
    /// Bytes of the text, if it is a regular file.
    bytes: Option<u64>,
}

/// Numbers of lines that are not taken, with the first of each kind.
type BadLines = BTreeMap<BadDumpLine, (u64, u64)>;

impl Dump {
    /// Opens a file; `-`: stdin.
    pub(super) fn open(options: &ImportOptions, path: &Path) -> Result<Dump> {
        for (name, is_given) in [
            ("--from", options.from.is_some()),
            ("--thru", options.thru.is_some()),
            ("--token-file", options.token_file.is_some()),
            ("--tls-ca", options.tls_ca.is_some()),
        ] {
            ensure!(
                !is_given,
                "cannot use {name} with a dump: it is for the URL of a server"
            );
        }
        let (text, bytes): (Box<dyn Read>, Option<u64>) = match path.as_os_str() == "-" {
            true => (Box::new(io::stdin()), None),
            false => {
                let cannot = || format!("cannot open {}", path.display());
                let file = File::open(path).with_context(cannot)?;
                let stat = file.metadata().with_context(cannot)?;
                ensure!(!stat.is_dir(), "{}: it is a folder", cannot());
                (Box::new(file), stat.is_file().then_some(stat.len()))
            }
        };
        Ok(Dump {
            name: path.display().to_string(),
            text: BufReader::with_capacity(1 << 18, text),
            bytes,
        })
    }

    /// Hands over all samples.
    pub(super) fn hand_over(mut self, importer: &mut Importer<'_>) -> Result<()> {
        let (pace, mut bad) = (WorkPace::new(), BadLines::new());
        let (mut line, mut number, mut done) = (Vec::new(), 0, 0);
        let (mut labels, mut current): (Vec<u8>, Option<Gathered>) = (Vec::new(), None);
        loop {
            line.clear();
            let most = count(LINE_MAX) + 1;
            let read = (&mut self.text).take(most).read_until(b'\n', &mut line);
            let read = read.with_context(|| format!("cannot read {}", self.name))?;
            if read == 0 {
                break;
            }
            (number, done) = (number + 1, done + count(read));
            if number % 1024 == 0 {
                self.show(importer, &pace, done);
            }
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            ensure!(
                text.len() <= LINE_MAX,
                "cannot read {}: line {number} is longer than {LINE_MAX} bytes",
                self.name
            );
            let sample = match dumped_sample(text) {
                Ok(sample) => sample,
                Err(_) if text.is_empty() => continue,
                Err(why) => {
                    bad.entry(why).or_insert((0, number)).0 += 1;
                    continue;
                }
            };
            if current.is_none() || labels != sample.labels {
                if let Some(mut before) = current.take() {
                    before.hand_over(importer)?;
                }
                labels = sample.labels.to_vec();
                current = match set_of(sample.labels) {
                    Ok(set) => Some(Gathered::new(set)),
                    Err(why) => {
                        importer.leave_out(sample.labels, &why);
                        None
                    }
                };
            }
            if let Some(current) = &mut current {
                current.push(importer, sample.time_ms, sample.value)?;
            }
        }
        if let Some(mut last) = current {
            last.hand_over(importer)?;
        }
        for (why, (lines, first)) in bad {
            let more = match lines {
                1 => String::new(),
                _ => format!("; as {} more lines", lines - 1),
            };
            let name = format!("line {first} of {}", self.name);
            importer.leave_out(name.as_bytes(), &format!("{why}{more}"));
        }
        Ok(())
    }

    fn show(&self, importer: &mut Importer<'_>, pace: &WorkPace, done: u64) {
        let mb = |bytes| bytes / 1_000_000;
        importer.show(pace, "MB", (mb(done), self.bytes.map(mb)));
    }
}

/// The label set of a line.
pub(super) fn set_of(labels: &[u8]) -> Result<Labels, String> {
    let labels = dumped_labels(labels).map_err(|why| why.to_string())?;
    let mut pairs = Vec::new();
    for (name, value) in &labels {
        let name = std::str::from_utf8(name).map_err(|_| "a name of a label is no text")?;
        pairs.push((name, value.as_slice()));
    }
    Labels::new(pairs).map_err(|error| error.to_string())
}
