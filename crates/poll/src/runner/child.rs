//! The runner's side: reads the configuration, runs what the poller requests, and answers. One thread waits for the
//! poller and for all programs at once. It ends when the poller has gone and programs of thresholds have finished.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::time::Duration;

use kymo_sys::clock::{Clock, RealClock};
use kymo_sys::machine::DaemonSignals;
use kymo_sys::privilege;
use kymo_sys::program::{Output, Program};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};

use super::commands::{Commands, Programs};
use super::frame::{Answer, Ask, PACKET_BYTES, Say};
use super::job::Job;
use super::trusted::RunRights;
use super::unsent::Unsent;
use crate::threshold::Action;

/// Commands that run at once, and programs of thresholds that run at once; a guess.
const AT_ONCE: usize = 32;
/// Programs of thresholds that may wait to be run. Further ones are dropped with a message.
const PROGRAMS_MAX: usize = 1000;
/// Time limit for a program of a threshold; MRTG waits for ever.
const PROGRAM_LIMIT: Duration = Duration::from_secs(60);

/// Serves the poller, through the socket that is standard input, until the poller ends. `read` reads the
/// configuration.
pub fn serve(read: &mut dyn FnMut() -> Result<Commands, String>) -> io::Result<()> {
    // Signals to the process group, such as a terminal's Ctrl-C or a hang-up, are meant for the poller; the runner
    // ends with it.
    let _signals = DaemonSignals::block()?;
    privilege::keep_files_back();
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    // Messages go to the poller, and the runner must not keep a terminal open.
    privilege::close_standard_files()?;
    let mut work = Work {
        socket,
        commands: Commands::default(),
        rights: RunRights::of(&Commands::default()),
        generation: 0,
        wanted: VecDeque::new(),
        commands_running: BTreeMap::new(),
        dying: BTreeMap::new(),
        programs_wanted: VecDeque::new(),
        programs_running: Vec::new(),
        reported: BTreeMap::new(),
        unsent: Unsent::default(),
        alone: false,
    };
    work.load(0, read);
    loop {
        work.start_wanted();
        // Only now: a program that could not be started leaves nothing to wait for.
        if work.alone && work.is_idle() {
            return Ok(());
        }
        work.wait();
        while let Some(ask) = work.hear()? {
            work.obey(ask, read);
        }
        work.look_after_jobs();
        work.unsent.send_waiting(&work.socket);
    }
}

/// Requests that wait and programs that run.
struct Work {
    socket: OwnedFd,
    commands: Commands,
    rights: RunRights,
    generation: u32,
    /// Numbers of commands that wait to be run, with their deadlines.
    wanted: VecDeque<(u32, u64)>,
    commands_running: BTreeMap<u32, Job>,
    /// Commands that were killed but have not ended yet: one that hangs in the kernel is not started again.
    dying: BTreeMap<u32, Job>,
    programs_wanted: VecDeque<(String, Command)>,
    programs_running: Vec<(String, Job)>,
    /// The last message about each command.
    reported: BTreeMap<u32, String>,
    unsent: Unsent,
    /// True once the poller has ended.
    alone: bool,
}

impl Work {
    fn is_idle(&self) -> bool {
        self.programs_wanted.is_empty() && self.programs_running.is_empty()
    }

    /// Reads the configuration. Commands of the one before are dropped.
    fn load(&mut self, generation: u32, read: &mut dyn FnMut() -> Result<Commands, String>) {
        self.drop_commands();
        self.reported.clear();
        self.generation = generation;
        self.commands = read().unwrap_or_else(|error| {
            self.say(Say::Line(error.into_bytes()));
            Commands::default()
        });
        self.rights = RunRights::of(&self.commands);
        for line in self.rights.lines().to_vec() {
            self.say(Say::Line(line.into_bytes()));
        }
        let fingerprint = self.commands.fingerprint();
        self.say(Say::Loaded {
            generation,
            fingerprint,
        });
    }

    fn drop_commands(&mut self) {
        self.wanted.clear();
        for (number, job) in std::mem::take(&mut self.commands_running) {
            job.program.kill();
            self.dying.insert(number, job);
        }
    }

    fn obey(&mut self, ask: Ask, read: &mut dyn FnMut() -> Result<Commands, String>) {
        match ask {
            Ask::Load { generation } => self.load(generation, read),
            Ask::Run { generation, number } if generation == self.generation => self.want(number),
            Ask::Act { generation, action } if generation == self.generation => self.act(&action),
            Ask::Run { .. } | Ask::Act { .. } => {}
        }
    }

    fn want(&mut self, number: u32) {
        let known = self.commands.commands.contains_key(&number) && !self.rights.refuses_all();
        if !known {
            return self.answer(number, Answer::default());
        }
        let is_wanted = self.wanted.iter().any(|&(other, _)| other == number);
        if is_wanted || self.commands_running.contains_key(&number) {
            return;
        }
        self.wanted.push_back((number, after(self.commands.limit)));
    }

    fn act(&mut self, action: &Action) {
        let Some(programs) = self.commands.programs.get(&action.target) else {
            return;
        };
        let Some(command) = threshold_command(programs, action) else {
            return;
        };
        let name = format!("the threshold program of {}", lossy(&programs.target));
        if self.rights.refuses_all() {
            return;
        }
        if self.programs_wanted.len() >= PROGRAMS_MAX {
            let line = format!("cannot run {name}: {PROGRAMS_MAX} others wait");
            return self.say(Say::Line(line.into_bytes()));
        }
        let program = command.get_program().as_bytes();
        if let Some(why) = self.rights.refusal_of_program(program) {
            let line = programs.complaint(&why);
            return self.say(Say::Line(line.into_bytes()));
        }
        let command = with_path(command, self.rights.search_path());
        self.programs_wanted.push_back((name, command));
    }

    fn start_wanted(&mut self) {
        while self.commands_running.len() < AT_ONCE
            && let Some((number, deadline_ns)) = self.wanted.pop_front()
        {
            self.start(number, deadline_ns);
        }
        while self.programs_running.len() < AT_ONCE
            && let Some((name, mut command)) = self.programs_wanted.pop_front()
        {
            match Program::start(&mut command, Output::Dropped) {
                Ok(program) => self
                    .programs_running
                    .push((name, Job::new(program, after(PROGRAM_LIMIT)))),
                Err(error) => {
                    let line = format!("cannot run {name}: {error}");
                    self.say(Say::Line(line.into_bytes()));
                }
            }
        }
    }

    fn start(&mut self, number: u32, deadline_ns: u64) {
        if self.dying.contains_key(&number) {
            return self.failed(number, "it was killed and has not ended yet".into());
        }
        if deadline_ns <= RealClock.mono_ns() {
            return self.failed(number, "others took all the time".into());
        }
        let Some(text) = self.commands.commands.get(&number).map(|c| &c.text) else {
            return;
        };
        if let Some(why) = self.rights.refusal_of_text(text) {
            return self.failed(number, why);
        }
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(OsStr::from_bytes(text));
        let mut command = with_path(command, self.rights.search_path());
        match Program::start(&mut command, Output::Kept) {
            Ok(program) => {
                self.commands_running
                    .insert(number, Job::new(program, deadline_ns));
            }
            Err(error) => self.failed(number, error.to_string()),
        }
    }

    /// Waits until the poller sends something, a program prints or ends, or a deadline passes.
    fn wait(&self) {
        let to_poller = match self.unsent.is_empty() {
            true => PollFlags::empty(),
            false => PollFlags::OUT,
        };
        let from_poller = match self.alone {
            true => PollFlags::empty(),
            false => PollFlags::IN,
        };
        let mut files = Vec::new();
        if !self.alone {
            files.push(PollFd::new(&self.socket, from_poller | to_poller));
        }
        let programs = self.programs_running.iter().map(|(_, job)| job);
        let watched = self.commands_running.values().chain(programs);
        let mut next_ns = u64::MAX;
        for job in watched.clone() {
            files.push(PollFd::from_borrowed_fd(job.program.end(), PollFlags::IN));
            if let Some(output) = job.program.output() {
                files.push(PollFd::from_borrowed_fd(output, PollFlags::IN));
            }
            next_ns = next_ns.min(job.deadline_ns);
        }
        for job in self.dying.values() {
            files.push(PollFd::from_borrowed_fd(job.program.end(), PollFlags::IN));
        }
        let nap = Duration::from_nanos(next_ns.saturating_sub(RealClock.mono_ns()));
        let nap = nap.min(Duration::from_secs(3600));
        let time = Timespec {
            tv_sec: nap.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: nap.subsec_nanos().into(),
        };
        // The result does not matter, as all of them are checked afterwards.
        let _ = poll(&mut files, Some(&time));
    }

    /// The poller's next request.
    fn hear(&mut self) -> io::Result<Option<Ask>> {
        let mut packet = [0; PACKET_BYTES];
        while !self.alone {
            match recv(&self.socket, &mut packet[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => {
                    self.alone = true;
                    self.drop_commands();
                }
                // Only this program sends packets, so one that cannot be parsed is skipped.
                Ok((length, _)) => match Ask::of(&packet[..length]) {
                    Some(ask) => return Ok(Some(ask)),
                    None => continue,
                },
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                // The poller has ended and left answers unread: its last requests are behind this error, which comes once.
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNRESET) => continue,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    fn look_after_jobs(&mut self) {
        let now_ns = RealClock.mono_ns();
        self.dying.retain(|_, job| job.program.ended().is_none());
        let numbers: Vec<u32> = self.commands_running.keys().copied().collect();
        for number in numbers {
            self.look_after(number, now_ns);
        }
        let mut lines = Vec::new();
        self.programs_running.retain_mut(|(name, job)| {
            if job.program.ended().is_some() {
                return false;
            }
            if now_ns >= job.deadline_ns {
                job.program.kill();
                job.deadline_ns = u64::MAX;
                lines.push(format!(
                    "{name} was killed: it took more than {} s",
                    PROGRAM_LIMIT.as_secs()
                ));
            }
            true
        });
        for line in lines {
            self.say(Say::Line(line.into_bytes()));
        }
    }

    /// Reads a command's output, and kills the command at its deadline.
    fn look_after(&mut self, number: u32, now_ns: u64) {
        let Some(job) = self.commands_running.get_mut(&number) else {
            return;
        };
        let ended = job.program.ended();
        // After the program's end all of its output is in the pipe.
        job.read();
        if let Some(ended) = ended {
            let (answer, wrong) = job.answer(ended);
            self.commands_running.remove(&number);
            match wrong {
                Some(wrong) => self.complain(number, wrong),
                None => drop(self.reported.remove(&number)),
            }
            return self.answer(number, answer);
        }
        if now_ns >= job.deadline_ns {
            job.program.kill();
            if let Some(job) = self.commands_running.remove(&number) {
                self.dying.insert(number, job);
            }
            let limit = self.commands.limit.as_secs_f64();
            self.failed(
                number,
                format!("it took more than {limit} s and was killed"),
            );
        }
    }

    fn failed(&mut self, number: u32, why: String) {
        self.complain(number, why);
        self.answer(number, Answer::default());
    }

    /// Reports a problem with a command, unless its last message was the same.
    fn complain(&mut self, number: u32, why: String) {
        if self.reported.get(&number) == Some(&why) {
            return;
        }
        let command = self.commands.commands.get(&number);
        let line = command.map_or_else(String::new, |command| command.complaint(&why));
        self.reported.insert(number, why);
        self.say(Say::Line(line.into_bytes()));
    }

    fn answer(&mut self, number: u32, answer: Answer) {
        let generation = self.generation;
        self.say(Say::Answer {
            generation,
            number,
            answer,
        });
    }

    fn say(&mut self, say: Say) {
        let mut packet = Vec::new();
        say.put(&mut packet);
        self.unsent.push(packet, &self.socket);
    }
}

fn after(time: Duration) -> u64 {
    let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    RealClock.mono_ns().saturating_add(time_ns)
}

fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

fn threshold_command(programs: &Programs, action: &Action) -> Option<Command> {
    let (program, arguments) = programs.arguments(action)?;
    let mut command = Command::new(program);
    command.args(arguments.iter().map(|word| OsStr::from_bytes(word)));
    let environment = &programs.environment;
    command.envs(
        environment
            .iter()
            .map(|(name, value)| (OsStr::from_bytes(name), OsStr::from_bytes(value))),
    );
    let names = ["THRESH_DESC", "HWTHRESH_DESC"];
    for (name, description) in names.into_iter().zip(&programs.descriptions) {
        if let Some(description) = description {
            command.env(name, OsStr::from_bytes(description));
        }
    }
    Some(command)
}

fn with_path(mut command: Command, path: &[u8]) -> Command {
    command.env("PATH", OsStr::from_bytes(path));
    command
}
