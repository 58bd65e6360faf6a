//! Stock rrdtool: one command at a time, or many through one `rrdtool -`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

/// Runs `rrdtool` to its end in a folder.
pub fn rrdtool(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new("rrdtool");
    let output = command
        .current_dir(folder)
        .env("TZ", "UTC")
        .args(words)
        .output();
    output.unwrap_or_else(|why| panic!("cannot run rrdtool: {why}"))
}

/// A running `rrdtool -`, which reads commands line by line.
pub struct Pipe {
    folder: PathBuf,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Pipe {
    /// Starts rrdtool in `folder`.
    pub fn start(folder: &Path) -> Pipe {
        let mut command = Command::new("rrdtool");
        let command = command.arg("-").current_dir(folder);
        let command = command.env("TZ", "UTC").stdin(Stdio::piped());
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|why| panic!("cannot start {command:?}: {why}"));
        let stdin = child.stdin.take().expect("its stdin");
        let stdout = child.stdout.take().expect("its stdout");
        Pipe {
            folder: folder.to_path_buf(),
            child,
            stdin,
            stdout: BufReader::new(stdout),
        }
    }

    /// Working folder of rrdtool.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The answer to a line, without the closing `OK`; the error without `ERROR: `.
    pub fn ask(&mut self, line: &str) -> Result<String, String> {
        self.send(line);
        self.reply(line)
    }

    /// Sends many lines together, each of which must
    /// succeed. All answers must fit into a pipe.
    pub fn must_all(&mut self, lines: &[String]) {
        self.send(&lines.join("\n"));
        for line in lines {
            let done = self.reply(line);
            done.unwrap_or_else(|error| panic!("rrdtool `{line}`: {error}"));
        }
    }

    fn send(&mut self, line: &str) {
        let sent = writeln!(self.stdin, "{line}").and_then(|()| self.stdin.flush());
        sent.unwrap_or_else(|why| panic!("cannot tell rrdtool `{line}`: {why}"));
    }

    fn reply(&mut self, line: &str) -> Result<String, String> {
        let mut bytes = Vec::new();
        loop {
            let at = bytes.len();
            let read = self.stdout.read_until(b'\n', &mut bytes);
            assert!(
                read.is_ok_and(|len| len > 0),
                "rrdtool ended over `{line}`: {}",
                String::from_utf8_lossy(&bytes)
            );
            let last = String::from_utf8_lossy(&bytes[at..]).into_owned();
            if last.starts_with("OK u:") {
                return Ok(String::from_utf8_lossy(&bytes[..at]).into_owned());
            }
            if let Some(error) = last.strip_prefix("ERROR: ") {
                return Err(error.trim_end().to_string());
            }
        }
    }

    /// The answer to a line. Panics on an error.
    pub fn must(&mut self, line: &str) -> String {
        self.ask(line)
            .unwrap_or_else(|error| panic!("rrdtool `{line}`: {error}"))
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // rrdtool may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
