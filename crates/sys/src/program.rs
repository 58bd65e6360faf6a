//! A program in its own process group, so that it can be ended together with the processes that it starts. Its end is
//! seen on a file, its output is read without waiting.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// One that was started.
#[derive(Debug)]
pub struct Program {
    child: Child,
    /// Readable once the program has ended.
    end: OwnedFd,
    /// Until it is let go of.
    output: Option<ChildStdout>,
}

/// Pipes of a program that is talked with.
#[derive(Debug)]
pub struct Talk {
    /// Standard input.
    pub input: ChildStdin,
    /// Standard output.
    pub output: ChildStdout,
    /// Standard error.
    pub errors: ChildStderr,
}

/// Use of a program's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// [`Program::output`] has stdout; stderr is dropped.
    Kept,
    /// All output is dropped.
    Dropped,
    /// Output goes where that of this process goes.
    Shared,
}

impl Program {
    /// Starts it, with /dev/null where its input would come from, and no signal blocked.
    pub fn start(command: &mut Command, output: Output) -> io::Result<Program> {
        let (stdout, stderr) = match output {
            Output::Kept => (Stdio::piped(), Stdio::null()),
            Output::Dropped => (Stdio::null(), Stdio::null()),
            Output::Shared => (Stdio::inherit(), Stdio::inherit()),
        };
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        Program::spawn(command)
    }

    /// Starts it to talk with it: both its outputs are read without waiting.
    pub fn start_talk(command: &mut Command) -> io::Result<(Program, Talk)> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Program::spawn(command.stderr(Stdio::piped()))?;
        let errors = program.child.stderr.take();
        let pipes = (program.child.stdin.take(), program.output.take(), errors);
        let (Some(input), Some(output), Some(errors)) = pipes else {
            unreachable!("BUG: a pipe that was asked for is missing");
        };
        rustix::io::ioctl_fionbio(&errors, true)?;
        let talk = Talk {
            input,
            output,
            errors,
        };
        Ok((program, talk))
    }

    #[allow(unsafe_code)]
    fn spawn(command: &mut Command) -> io::Result<Program> {
        command.process_group(0);
        // SAFETY: between fork and exec this makes a system call, and nothing else.
        unsafe {
            command.pre_exec(|| {
                crate::privilege::unblock_signals();
                Ok(())
            });
        }
        let mut child = command.spawn()?;
        let output = child.stdout.take();
        let watched = watch(&child, output.as_ref());
        match watched {
            Ok(end) => Ok(Program { child, end, output }),
            Err(error) => {
                kill_group(&child);
                // The program was killed.
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Readable once the program has ended.
    pub fn end(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }

    /// Readable when there is output, or no more will come.
    pub fn output(&self) -> Option<BorrowedFd<'_>> {
        self.output.as_ref().map(AsFd::as_fd)
    }

    /// Reads some of the output, without waiting; `Ok(0)`: that was all.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.output.as_mut().map_or(Ok(0), |pipe| pipe.read(into))
    }

    /// Reads no more: what the program goes on to print breaks its pipe.
    pub fn close_output(&mut self) {
        self.output = None;
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Kills the program and the processes that it started, unless they left its group. To be called before its end was
    /// seen: afterwards the number may be another's.
    pub fn kill(&self) {
        kill_group(&self.child);
    }
}

fn watch(child: &Child, output: Option<&ChildStdout>) -> io::Result<OwnedFd> {
    if let Some(pipe) = output {
        rustix::io::ioctl_fionbio(pipe, true)?;
    }
    Ok(pidfd_open(Pid::from_child(child), PidfdFlags::empty())?)
}

fn kill_group(child: &Child) {
    // The child was not waited for, so the number is still its own; the group may be empty.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::wait_readable;
    use std::os::unix::process::ExitStatusExt;
    use std::time::Duration;

    fn shell(text: &str) -> Program {
        let mut command = Command::new("/bin/sh");
        Program::start(command.args(["-c", text]), Output::Kept).unwrap()
    }

    fn wait(file: BorrowedFd<'_>) {
        while wait_readable(&[file], Duration::from_secs(10)) != [true] {}
    }

    #[test]
    fn output_and_end_are_seen() {
        let mut program = shell("echo out; echo err >&2; read line || exit 7");
        wait(program.end());
        assert_eq!(program.ended().and_then(|status| status.code()), Some(7));
        let mut text = [0; 64];
        assert_eq!(program.read(&mut text).unwrap(), 4);
        assert_eq!(&text[..4], b"out\n");
        // A child that another test starts at this moment has the pipe's other end too, until its exec.
        wait(program.output().unwrap());
        assert_eq!(program.read(&mut text).unwrap(), 0, "no more");
    }

    #[test]
    fn one_can_be_talked_with() {
        use std::io::Write as _;
        let mut command = Command::new("/bin/sh");
        let script = "read line; echo \"got $line\"; echo no >&2";
        let (mut program, mut talk) = Program::start_talk(command.args(["-c", script])).unwrap();
        talk.input.write_all(b"word\n").unwrap();
        wait(program.end());
        let mut text = [0; 64];
        assert_eq!(talk.output.read(&mut text).unwrap(), 9);
        assert_eq!(&text[..9], b"got word\n");
        assert_eq!(talk.errors.read(&mut text).unwrap(), 3);
        assert!(program.ended().is_some());
    }

    #[test]
    fn what_it_started_ends_with_it() {
        let mut program = shell("sleep 1000 & echo $!; wait");
        wait(program.output().unwrap());
        let mut text = [0; 64];
        let length = program.read(&mut text).unwrap();
        let pid: u32 = std::str::from_utf8(&text[..length])
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        assert!(crate::privilege::is_alive(pid));
        assert!(program.read(&mut text).is_err(), "nothing there yet");
        program.kill();
        wait(program.end());
        assert_eq!(program.ended().and_then(|status| status.signal()), Some(9));
        while crate::privilege::is_alive(pid) {
            std::thread::yield_now();
        }
    }
}
