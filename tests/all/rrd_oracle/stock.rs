//! One `rrdtool -`: writes many commands, then reads the replies.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The rrdtool process and its pipes.
pub(super) struct Stock {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

/// The reply to one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reply {
    /// Lines before the last.
    pub lines: Vec<String>,
    /// The text after `ERROR: `; none if the command succeeded.
    pub error: Option<String>,
}

impl Stock {
    /// Starts rrdtool.
    pub(super) fn start() -> Stock {
        let child = Command::new("rrdtool")
            .arg("-")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.expect("rrdtool is installed");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        Stock {
            child,
            stdin,
            stdout,
        }
    }

    /// Writes the commands, a line each, and reads as many replies.
    pub(super) fn ask(&mut self, commands: &str) -> Vec<Reply> {
        let stdin = self.stdin.as_mut().expect("it is there until dropped");
        let stdout = &mut self.stdout;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                stdin.write_all(commands.as_bytes()).expect("it reads");
                stdin.flush().expect("it reads");
            });
            commands.lines().map(|_| read_reply(stdout)).collect()
        })
    }
}

fn read_reply(stdout: &mut BufReader<ChildStdout>) -> Reply {
    let mut reply = Reply::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let len = stdout.read_until(b'\n', &mut line).expect("it answers");
        assert!(
            len > 0,
            "rrdtool ended: it crashed over one of these commands"
        );
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches('\n');
        if text.starts_with("OK ") {
            return reply;
        }
        if let Some(error) = text.strip_prefix("ERROR: ") {
            reply.error = Some(error.to_owned());
            return reply;
        }
        reply.lines.push(text.to_owned());
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        self.stdin = None;
        // rrdtool ends with its input.
        let _ = self.child.wait();
    }
}
