//! A child that is killed when its test ends.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

pub(crate) struct Running(Child);

impl Running {
    /// Starts a program and waits until it has written a line: that line.
    pub(crate) fn start(command: &mut Command) -> (Running, String) {
        let mut running = Running(
            command
                .stdout(Stdio::piped())
                .stdin(Stdio::piped())
                .spawn()
                .expect("a child"),
        );
        let mut line = String::new();
        let output = running.0.stdout.as_mut().expect("its output");
        BufReader::new(output).read_line(&mut line).expect("a line");
        (running, line.trim_end().to_string())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// The state that the kernel says it is in: `T` is stopped, `Z` ended.
    pub(crate) fn state(&self) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("its stat");
        let behind = stat.rsplit(") ").next().expect("fields");
        behind.chars().next().expect("a state")
    }

    /// Waits until it is in a state.
    pub(crate) fn await_state(&self, state: char) {
        while self.state() != state {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().expect("a kill");
        self.0.wait().expect("its end");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = (self.0.kill(), self.0.wait());
    }
}
