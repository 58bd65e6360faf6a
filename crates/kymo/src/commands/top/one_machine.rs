//! The screen of one machine, with its samples and the reader of its recording.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use anyhow::Result;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_top::app::{App, Question, Task};
use kymo_top::draw::draw;
use kymo_top::retrieve::Retrieve;
use ratatui_core::buffer::Buffer;

use super::happening::Happening;
use super::live::Live;
use super::terminal::{Pressed, TerminalScreen, pressed};
use crate::recorder::session::spawn;

/// Longest time between two pictures where nothing happens.
const LONG: Duration = Duration::from_secs(3600);

/// A machine that is shown.
pub(super) struct Machine {
    pub(super) app: App,
    live: Option<Live>,
    asked: Option<Sender<Question>>,
    /// Nanoseconds by which its clock is ahead.
    ahead_ns: i64,
}

impl Machine {
    /// Sends what happens to `sender`.
    pub(super) fn new(
        app: App,
        live: Option<Live>,
        ahead_ns: i64,
        sender: Sender<Happening>,
    ) -> Result<Machine> {
        let asked = match app.archive() {
            Some(archive) => Some(answerer(archive, sender.clone())?),
            None => None,
        };
        if let Some(live) = &live {
            live.report_to(sender);
        }
        Ok(Machine {
            app,
            live,
            asked,
            ahead_ns,
        })
    }
}

impl TerminalScreen for Machine {
    fn take(&mut self, happening: Happening) -> Result<Task> {
        self.app.now_ns = RealClock.now().real_ns.saturating_add(self.ahead_ns);
        let task = match happening {
            Happening::Sample => {
                self.app.tick();
                Task::Nothing
            }
            Happening::Answer(question, answer) => {
                self.app.answered(question, answer);
                Task::Nothing
            }
            Happening::Input(event) => match pressed(&event) {
                Some(Pressed::Key(key)) => self.app.press(key),
                Some(Pressed::Mouse(mouse, x, y)) => self.app.mouse(mouse, x, y),
                None => Task::Nothing,
            },
            Happening::Closed | Happening::Signal(_) => Task::Quit,
            Happening::Row | Happening::Far(..) => Task::Nothing,
        };
        if let Task::Threads(threads) = task
            && let Some(live) = self.live.take()
        {
            self.live = Some(live.with_threads(threads)?);
        }
        if let Some(live) = &self.live {
            live.pause(self.app.screen.paused);
            live.show(self.app.screen.table);
        }
        Ok(task)
    }

    fn draw(&mut self, buffer: &mut Buffer) -> Result<()> {
        draw(&mut self.app, buffer);
        if let Some(asked) = &self.asked {
            for question in self.app.questions() {
                asked.send(question)?;
            }
        }
        Ok(())
    }

    fn patience(&self) -> Duration {
        LONG
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(live) = self.live.take() {
            live.end();
        }
    }
}

/// A thread that reads aside.
fn answerer(archive: Arc<dyn Retrieve>, sender: Sender<Happening>) -> Result<Sender<Question>> {
    let (ask, asked) = mpsc::channel::<Question>();
    spawn("reader", move || {
        for question in asked {
            let answer = question.answer(&*archive);
            if sender.send(Happening::Answer(question, answer)).is_err() {
                return;
            }
        }
    })?;
    Ok(ask)
}
