//! A host that is shown alone, by a thread of its own: it takes in what happened and gives pictures. Keys are answered whatever the
//! host does: while it is asked the last picture stays, with a remark, and Esc leads back.

use std::io::PipeWriter;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Error, Result};
use crossterm::event::Event;
use kymo_kernel::subsystem::process::PROCESS;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_top::app::{App, Task};
use kymo_top::draw::draw_remark;
use kymo_top::key::Key;
use kymo_top::palette::Palette;
use kymo_top::past::Past;
use kymo_top::screen::Go;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::super::happening::{FarNews, Happening};
use super::super::live::Live;
use super::super::one_machine::Machine;
use super::super::terminal::{Pressed, TerminalScreen as _, pressed};
use super::call::Stop;
use super::far::{FarArchive, FarSamples};
use crate::recorder::session::spawn;

/// An input that has no picture after this time is being waited for.
const PROMPT: Duration = Duration::from_millis(300);

/// A host and the moment to begin at, by its clock; `None`: live.
pub(super) struct Place {
    pub(super) host: String,
    pub(super) at_ns: Option<i64>,
}

/// The screen of a host.
pub(super) struct Opened {
    host: String,
    number: u64,
    to: Sender<Happening>,
    picture: Option<Box<Buffer>>,
    area: Rect,
    sent: usize,
    taken: usize,
    /// When the oldest input without a picture was sent.
    since: Instant,
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

/// Result of an input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Stays,
    /// Back to the table of hosts.
    Back,
}

impl Opened {
    /// Opens a host; its news are of this number.
    pub(super) fn new(
        place: Place,
        number: u64,
        palette: Palette,
        area: Rect,
        out: Sender<Happening>,
    ) -> Result<Opened> {
        let (reader, stop) = std::io::pipe()?;
        let (to, inbox) = mpsc::channel();
        let (host, own) = (place.host.clone(), to.clone());
        let thread = spawn("host", move || {
            let stop = Arc::new(Stop(reader));
            let left = show(
                &place,
                palette,
                area,
                (own, inbox),
                &stop,
                |picture, taken| {
                    let news = FarNews::Picture(Box::new(picture), taken);
                    out.send(Happening::Far(number, news)).is_ok()
                },
            );
            // There is no screen any more where that fails.
            let left = FarNews::Left(left.map_err(|error| format!("{error:#}")));
            let _ = out.send(Happening::Far(number, left));
        })?;
        Ok(Opened {
            host,
            number,
            to,
            picture: None,
            area,
            sent: 0,
            taken: 0,
            since: Instant::now(),
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn picture(&mut self, picture: Box<Buffer>, taken: usize) {
        (self.picture, self.taken, self.since) = (Some(picture), taken, Instant::now());
    }

    fn is_waiting(&self) -> bool {
        self.picture.is_none() || self.sent > self.taken
    }

    /// Passes an input on, unless it leads back while the host does not answer.
    pub(super) fn input(&mut self, event: Event) -> Taken {
        let leaves = matches!(
            pressed(&event),
            Some(Pressed::Key(Key::Escape | Key::Char('q')))
        );
        if leaves && self.is_waiting() && (self.picture.is_none() || self.since.elapsed() > PROMPT)
        {
            return Taken::Back;
        }
        if !self.is_waiting() {
            self.since = Instant::now();
        }
        self.sent += 1;
        // The thread has said why it ended where that fails.
        let _ = self.to.send(Happening::Input(event));
        Taken::Stays
    }

    pub(super) fn draw(&mut self, palette: &Palette, buffer: &mut Buffer) {
        if buffer.area != self.area {
            self.area = buffer.area;
            self.input(Event::Resize(self.area.width, self.area.height));
        }
        if let Some(picture) = self.picture.as_deref() {
            let shown = self.area.intersection(picture.area);
            for y in shown.y..shown.y + shown.height {
                for x in shown.x..shown.x + shown.width {
                    buffer[(x, y)].clone_from(&picture[(x, y)]);
                }
            }
        }
        if self.picture.is_none() || self.is_waiting() && self.since.elapsed() > PROMPT {
            let remark = format!("{} is being asked   Esc: back to the hosts", self.host);
            draw_remark(palette, buffer, &remark);
        }
    }

    /// Longest time to the next picture.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.is_waiting().then_some(PROMPT)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // Readings end at once, and the thread sees that it is not wanted.
        drop(self.stop.take());
        let _ = self.to.send(Happening::Closed);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

/// Shows a host until it is left, at a moment of its clock, `None`: live.
fn show(
    place: &Place,
    palette: Palette,
    area: Rect,
    (own, inbox): (Sender<Happening>, Receiver<Happening>),
    stop: &Arc<Stop>,
    mut give: impl FnMut(Buffer, usize) -> bool,
) -> Result<Option<i64>> {
    let archive = FarArchive::new(&place.host, stop);
    let ahead_ns = archive.ahead_ns().map_err(Error::msg)?;
    let (past, why) = match Past::open(Arc::new(archive), &PROCESS) {
        Ok(past) => (Some(past), String::new()),
        Err(why) => (None, format!("no past: {why}")),
    };
    let shared = super::super::live::SharedLive::new();
    let samples = FarSamples::start(&place.host, &shared)?;
    let live = Live::of(shared, Box::new(samples));
    let now_ns = RealClock.now().real_ns.saturating_add(ahead_ns);
    let mut app = App::new(Some(live.readings()), past, palette, now_ns);
    app.screen.nested = true;
    app.without_past(why);
    if let Some(at_ns) = place.at_ns
        && let Err(why) = app.go(Go::To(at_ns))
    {
        app.say(&why);
    }
    let mut machine = Machine::new(app, Some(live), ahead_ns, own)?;
    let (mut area, mut taken, mut first) = (area, 0, None);
    loop {
        for happening in first.take().into_iter().chain(inbox.try_iter()) {
            taken += usize::from(matches!(happening, Happening::Input(_)));
            if let Happening::Input(Event::Resize(width, height)) = happening {
                area = Rect::new(0, 0, width, height);
            }
            if machine.take(happening)? == Task::Quit {
                let is_live = machine.app.is_live();
                return Ok((!is_live).then(|| machine.app.at_ns()));
            }
        }
        let mut picture = Buffer::empty(area);
        machine.draw(&mut picture)?;
        if !give(picture, taken) {
            return Ok(None);
        }
        first = Some(inbox.recv()?);
    }
}
