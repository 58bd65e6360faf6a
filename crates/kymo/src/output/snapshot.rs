//! `--export lexpr,f=FILE`: a file with the values of the last interval. A reader always finds the complete values of one
//! interval.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kymo_sys::talk;
use kymo_view::sink::{Sink, To};

const QUIET: Duration = Duration::from_secs(60);

/// The file, and the values for it.
pub(crate) struct Snapshot {
    path: PathBuf,
    text: Vec<u8>,
    /// True if the file was written before: an error at the first write ends the program.
    is_written: bool,
    reported: Option<Instant>,
}

impl Snapshot {
    /// A file with this name, made with the first interval.
    pub(crate) fn new(path: PathBuf) -> Snapshot {
        Snapshot {
            path,
            text: Vec::new(),
            is_written: false,
            reported: None,
        }
    }

    fn replace(&self) -> io::Result<()> {
        // Only regular files are replaced: /dev/null stays a device.
        if fs::metadata(&self.path).is_ok_and(|old| !old.is_file()) {
            return fs::write(&self.path, &self.text);
        }
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        File::create_new(&beside)?.write_all(&self.text)?;
        fs::rename(&beside, &self.path)
    }
}

impl Sink for Snapshot {
    fn write(&mut self, _: To, bytes: &[u8]) -> io::Result<()> {
        self.text.extend_from_slice(bytes);
        Ok(())
    }

    fn interval(&mut self) -> io::Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        let done = self.replace();
        self.text.clear();
        let Err(error) = done else {
            self.is_written = true;
            return Ok(());
        };
        let name = self.path.display();
        if !self.is_written {
            return Err(io::Error::new(error.kind(), format!("{name}: {error}")));
        }
        if self
            .reported
            .is_none_or(|reported| reported.elapsed() > QUIET)
        {
            self.reported = Some(Instant::now());
            talk::say(format_args!("kymo: cannot write {name}: {error}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_interval_is_there_whole() {
        let folder = std::env::temp_dir().join(format!("kymo-snapshot-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("L");
        let mut snapshot = Snapshot::new(path.clone());
        for text in ["a 1\nb 2\n", "c 3\n"] {
            let (first, second) = text.split_at(2);
            snapshot.write(To::Stream, first.as_bytes()).unwrap();
            snapshot.write(To::Stream, second.as_bytes()).unwrap();
            snapshot.interval().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            // Without values the file stays.
            snapshot.interval().unwrap();
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
        // After a first success an error is reported and nothing more.
        snapshot.write(To::Stream, b"d 4\n").unwrap();
        snapshot.interval().unwrap();
        let mut never = Snapshot::new(path);
        never.write(To::Stream, b"e 5\n").unwrap();
        let error = never.interval().unwrap_err().to_string();
        assert!(error.contains("/L: "), "{error}");
    }

    #[test]
    fn devices_stay() {
        let mut snapshot = Snapshot::new("/dev/null".into());
        snapshot.write(To::Stream, b"x\n").unwrap();
        snapshot.interval().unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
