//! The terminal of `kymo top`: keys, the mouse and signals come in, pictures go out. However it ends, the terminal is as before.

use std::io::{self, BufWriter, Stdout};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use anyhow::{Context as _, Result};
use crossterm::cursor;
use crossterm::event::{
    DisableMouseCapture, EnableMouseCapture, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers,
    MouseButton, MouseEventKind,
};
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use kymo_top::app::Task;
use kymo_top::key::{Key, Mouse};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::happening::Happening;
use crate::recorder::session::spawn;

/// Bytes of a picture that are written at once.
const BUFFER_BYTES: usize = 64 << 10;

type Screen = Terminal<CrosstermBackend<BufWriter<Stdout>>>;

/// A screen, of one machine or of several.
pub(super) trait TerminalScreen {
    /// Takes in what happened.
    fn take(&mut self, happening: Happening) -> Result<Task>;
    /// Draws the picture.
    fn draw(&mut self, buffer: &mut Buffer) -> Result<()>;
    /// Longest time to the next picture, whatever happens.
    fn patience(&self) -> Duration;
}

/// Shows a screen until it is left. `begin` makes it; it sends what happens.
pub(super) fn run(
    begin: impl FnOnce(Sender<Happening>) -> Result<Box<dyn TerminalScreen>>,
) -> Result<ExitCode> {
    let (sender, happenings) = mpsc::channel();
    listen(&sender)?;
    let shown = begin(sender)?;
    restore_on_panic();
    enter().context("cannot use the terminal")?;
    let backend = CrosstermBackend::new(BufWriter::with_capacity(BUFFER_BYTES, io::stdout()));
    let ended = Terminal::new(backend)
        .map_err(anyhow::Error::from)
        .and_then(|screen| OnTerminal { shown, screen }.go_on(&happenings));
    leave();
    ended
        .map(|()| ExitCode::SUCCESS)
        .context("cannot show the screen")
}

/// The screen while it is shown.
struct OnTerminal {
    shown: Box<dyn TerminalScreen>,
    screen: Screen,
}

impl OnTerminal {
    fn go_on(&mut self, happenings: &Receiver<Happening>) -> Result<()> {
        self.draw()?;
        loop {
            match happenings.recv_timeout(self.shown.patience()) {
                // Keys that were typed while a picture was drawn need no pictures of their own.
                Ok(first) => {
                    for happening in std::iter::once(first).chain(happenings.try_iter()) {
                        if !self.take(happening)? {
                            return Ok(());
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            self.draw()?;
        }
    }

    fn draw(&mut self) -> Result<()> {
        let (shown, mut done) = (&mut self.shown, Ok(()));
        self.screen
            .draw(|frame| done = shown.draw(frame.buffer_mut()))?;
        done
    }

    /// `false`: the screen was left.
    fn take(&mut self, happening: Happening) -> Result<bool> {
        let task = match happening {
            Happening::Signal(SIGTSTP) => Task::Suspend,
            Happening::Signal(SIGCONT) => {
                self.come_back()?;
                Task::Nothing
            }
            Happening::Signal(_) | Happening::Closed => Task::Quit,
            other => self.shown.take(other)?,
        };
        match task {
            Task::Quit => return Ok(false),
            Task::Suspend => {
                leave();
                emulate_default_handler(SIGTSTP)?;
                self.come_back()?;
            }
            Task::Redraw => self.begin_again()?,
            Task::Threads(_) | Task::Nothing => {}
        }
        Ok(true)
    }

    /// Takes the terminal again, whoever had it meanwhile.
    fn come_back(&mut self) -> Result<()> {
        disable_raw_mode()?;
        enter()?;
        self.begin_again()
    }

    /// Draws each cell with the next picture. `Terminal::clear` would ask the terminal for its cursor, whose answer the thread of
    /// keys takes.
    fn begin_again(&mut self) -> Result<()> {
        let size = self.screen.size()?;
        self.screen
            .resize(Rect::new(0, 0, size.width, size.height))?;
        Ok(())
    }
}

/// A key or an action of the mouse, with its place.
#[derive(Clone, Copy)]
pub(super) enum Pressed {
    Key(Key),
    Mouse(Mouse, u16, u16),
}

/// The input of an event, if it is one for a screen.
pub(super) fn pressed(event: &Event) -> Option<Pressed> {
    match event {
        Event::Key(event) if event.kind != KeyEventKind::Release => key(event).map(Pressed::Key),
        Event::Mouse(event) => {
            let mouse = match event.kind {
                MouseEventKind::Down(MouseButton::Left) => Mouse::Click,
                MouseEventKind::Drag(MouseButton::Left) => Mouse::Drag,
                MouseEventKind::ScrollUp => Mouse::WheelUp,
                MouseEventKind::ScrollDown => Mouse::WheelDown,
                _ => return None,
            };
            Some(Pressed::Mouse(mouse, event.column, event.row))
        }
        _ => None,
    }
}

/// The key of an event.
fn key(event: &KeyEvent) -> Option<Key> {
    let has = |modifier| event.modifiers.contains(modifier);
    let (shift, ctrl) = (has(KeyModifiers::SHIFT), has(KeyModifiers::CONTROL));
    Some(match event.code {
        KeyCode::Char(letter) if ctrl => Key::Ctrl(letter.to_ascii_lowercase()),
        KeyCode::Char(letter) => Key::Char(letter),
        KeyCode::F(number) => Key::Function(number),
        KeyCode::Left if ctrl => Key::CtrlLeft,
        KeyCode::Left if shift => Key::ShiftLeft,
        KeyCode::Left => Key::Left,
        KeyCode::Right if ctrl => Key::CtrlRight,
        KeyCode::Right if shift => Key::ShiftRight,
        KeyCode::Right => Key::Right,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}

/// Threads that report keys and signals.
fn listen(sender: &Sender<Happening>) -> Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGTSTP, SIGCONT])
        .context("cannot listen to signals")?;
    let to = sender.clone();
    spawn("signals", move || {
        for signal in signals.forever() {
            if to.send(Happening::Signal(signal)).is_err() {
                return;
            }
        }
    })?;
    let to = sender.clone();
    spawn("keys", move || {
        loop {
            let happening = match crossterm::event::read() {
                Ok(event) => Happening::Input(event),
                Err(_) => Happening::Closed,
            };
            let is_closed = matches!(happening, Happening::Closed);
            if to.send(happening).is_err() || is_closed {
                return;
            }
        }
    })?;
    Ok(())
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    crossterm::execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture)
}

/// Gives the terminal back as it was; where that fails there is no terminal any more.
fn leave() {
    let _ = crossterm::execute!(
        io::stdout(),
        DisableMouseCapture,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = disable_raw_mode();
}

/// Gives the terminal back before a panic says where it was.
fn restore_on_panic() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        leave();
        say(panic);
    }));
}
