//! The table of hosts on a terminal, and the host that was opened from it.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::Result;
use crossterm::event::Event;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_top::app::Task;
use kymo_top::draw::draw_fleet;
use kymo_top::fleet::{Fleet, FleetTask};
use kymo_top::key::Key;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::super::happening::{FarNews, Happening};
use super::super::terminal::{Pressed, TerminalScreen, pressed};
use super::call::lock;
use super::link::{Link, News};
use super::opened::{Opened, Place, Taken};

/// Time between two pictures of the table.
const EVERY: Duration = Duration::from_secs(1);

/// The table, and the host that is shown in its place.
pub(super) struct HostsScreen {
    fleet: Fleet,
    links: Vec<Link>,
    news: Arc<News>,
    sender: Sender<Happening>,
    opened: Option<(Opened, usize)>,
    /// Hosts that were opened so far.
    count: u64,
    area: Rect,
}

impl HostsScreen {
    pub(super) fn new(
        fleet: Fleet,
        links: Vec<Link>,
        news: Arc<News>,
        sender: Sender<Happening>,
    ) -> HostsScreen {
        let _first = news.sender.set(sender.clone());
        HostsScreen {
            fleet,
            links,
            news,
            sender,
            opened: None,
            count: 0,
            area: Rect::default(),
        }
    }

    fn input(&mut self, event: Event) -> Result<Task> {
        let pressed = pressed(&event);
        if let Some((opened, _)) = &mut self.opened {
            match pressed {
                Some(Pressed::Key(Key::Ctrl('c'))) => return Ok(Task::Quit),
                Some(Pressed::Key(Key::Ctrl('z'))) => return Ok(Task::Suspend),
                Some(Pressed::Key(Key::Ctrl('l'))) => return Ok(Task::Redraw),
                Some(_) if opened.input(event) == Taken::Back => self.opened = None,
                Some(_) | None => {}
            }
            return Ok(Task::Nothing);
        }
        let task = match pressed {
            Some(Pressed::Key(key)) => self.fleet.press(key),
            Some(Pressed::Mouse(mouse, x, y)) => self.fleet.mouse(mouse, x, y),
            None => FleetTask::Nothing,
        };
        Ok(match task {
            FleetTask::Nothing => Task::Nothing,
            FleetTask::Quit => Task::Quit,
            FleetTask::Suspend => Task::Suspend,
            FleetTask::Redraw => Task::Redraw,
            FleetTask::Open(host, at_ns) => {
                let known = self.links.iter();
                let at = known
                    .take_while(|link| lock(&link.row).name != host)
                    .count();
                let (palette, out) = (self.fleet.palette, self.sender.clone());
                self.count += 1;
                let place = Place { host, at_ns };
                let opened = Opened::new(place, self.count, palette, self.area, out)?;
                self.opened = Some((opened, at));
                Task::Nothing
            }
        })
    }

    fn news(&mut self, news: FarNews) {
        match (news, &mut self.opened) {
            (FarNews::Picture(picture, taken), Some((opened, _))) => opened.picture(picture, taken),
            (FarNews::Left(left), Some((_, at))) => {
                let ahead_ns = self.links.get(*at).map(|link| lock(&link.row).ahead_ns());
                self.opened = None;
                match left {
                    Ok(there_ns) => self.fleet.show(
                        there_ns.map(|there_ns| there_ns.saturating_sub(ahead_ns.unwrap_or(0))),
                    ),
                    Err(why) => self.fleet.say(&why),
                }
            }
            (FarNews::Picture(..) | FarNews::Left(_), None) => {}
        }
    }
}

impl TerminalScreen for HostsScreen {
    fn take(&mut self, happening: Happening) -> Result<Task> {
        self.fleet.now_ns = RealClock.now().real_ns;
        match happening {
            Happening::Input(event) => return self.input(event),
            Happening::Far(number, news) => {
                let opened = self.opened.as_ref();
                if opened.is_some_and(|(opened, _)| opened.number() == number) {
                    self.news(news);
                }
            }
            Happening::Signal(_) | Happening::Closed => return Ok(Task::Quit),
            Happening::Row | Happening::Sample | Happening::Answer(..) => {}
        }
        Ok(Task::Nothing)
    }

    fn draw(&mut self, buffer: &mut Buffer) -> Result<()> {
        self.area = buffer.area;
        if let Some((opened, _)) = &mut self.opened {
            opened.draw(&self.fleet.palette, buffer);
            return Ok(());
        }
        self.news.heard();
        self.fleet.now_ns = RealClock.now().real_ns;
        let rows = self.links.iter().map(|link| lock(&link.row).clone());
        self.fleet.take(rows.collect());
        let wanted = self.fleet.wanted();
        self.links.iter().for_each(|link| link.want(wanted));
        draw_fleet(&mut self.fleet, buffer);
        Ok(())
    }

    fn patience(&self) -> Duration {
        let opened = self.opened.as_ref();
        opened
            .map_or(Some(EVERY), |(opened, _)| opened.patience())
            .unwrap_or(EVERY)
    }
}
