//! The screen of several hosts: their rows at one moment, which all of them share, and what keys change.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use kymo_base::name::DisplayName;
use kymo_kernel::subsystem::cpu::CPU;
use kymo_view::time::Zone;

use crate::app::{day_around, local, moment_of};
use crate::areas::{Areas, Drawn};
use crate::hosts::{
    COLUMNS, HostColumn, HostRow, LinkState, Numbers, Strip, StripRange, Wanted, order,
};
use crate::key::{Key, Mouse};
use crate::meters::METERS;
use crate::palette::Palette;
use crate::screen::{Go, Overlay, Screen, Way, Wish};
use crate::tables::{Content, Order, Table};
use crate::window::{Range, Window};

const SECOND_NS: i64 = 1_000_000_000;
const MINUTE_NS: i64 = 60 * SECOND_NS;
/// Length of a point of the day, after which it is read again.
const DAY_TURN_NS: i64 = 5 * MINUTE_NS;
/// Points of the range around the moment, and of a day.
const POINTS: usize = 240;
const DAY_POINTS: usize = 288;
/// The last samples that come back from hosts are this old.
const LATE_NS: i64 = 2 * SECOND_NS;

/// Rows of hosts; their columns and values are in `hosts.rs`.
static HOSTS: Table = Table {
    key: 'h',
    name: "Hosts",
    short: "Host",
    subsystem: &CPU,
    sets: &[],
    orders: &[
        "cpu", "load", "pressure", "memory", "swap", "disk", "net", "clock", "age", "host",
    ],
    last: "host",
    content: Content::Instances,
};

/// Work for the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FleetTask {
    /// None.
    Nothing,
    /// End.
    Quit,
    /// Stop until the shell says to go on.
    Suspend,
    /// Draw everything.
    Redraw,
    /// Show a host alone, at this moment of its clock; `None`: live.
    Open(String, Option<i64>),
}

/// The screen with its rows.
pub struct Fleet {
    /// State of the screen.
    pub screen: Screen,
    /// Look.
    pub palette: Palette,
    /// Present time, in nanoseconds since 1970, set by the caller.
    pub now_ns: i64,
    rows: Vec<HostRow>,
    at_ns: Option<i64>,
    pub(crate) areas: Areas,
    around: Option<Range>,
    pub(crate) held: Option<(i64, HashMap<String, Numbers>)>,
    /// Time zone of this machine.
    zone: RefCell<Zone>,
    /// Strips of all hosts as one, which change once in minutes: of the day, and around the moment.
    merged: RefCell<[Option<MergedStrip>; 2]>,
}

/// Strips of hosts as one.
struct MergedStrip {
    range: Range,
    strips: Vec<Arc<Strip>>,
    window: Arc<Window>,
}

impl Fleet {
    /// A screen of hosts, live or at a moment.
    pub fn new(
        palette: Palette,
        zone: Zone,
        now_ns: i64,
        at_ns: Option<i64>,
        by: HostColumn,
    ) -> Fleet {
        let mut screen = Screen {
            table: &HOSTS,
            ..Screen::default()
        };
        let word = COLUMNS.iter().find(|(column, ..)| *column == by);
        screen.order_by(word.map_or("cpu", |(_, word, ..)| word));
        Fleet {
            screen,
            palette,
            now_ns,
            rows: Vec::new(),
            at_ns,
            areas: Areas::default(),
            around: None,
            held: None,
            zone: RefCell::new(zone),
            merged: RefCell::default(),
        }
    }

    /// Takes in the present rows; a picture that stands still keeps its own.
    pub fn take(&mut self, rows: Vec<HostRow>) {
        if !self.screen.paused || self.at_ns.is_some() {
            self.rows = rows;
        }
    }

    /// The moment that is shown; `None`: now.
    pub fn at_ns(&self) -> Option<i64> {
        self.at_ns
    }

    /// Shows a moment; `None`: now.
    pub fn show(&mut self, at_ns: Option<i64>) {
        let at_ns = at_ns.map(end_of_second);
        self.at_ns = at_ns.filter(|at_ns| *at_ns < self.now_ns.saturating_sub(LATE_NS));
    }

    /// The moment that is shown, or now.
    pub(crate) fn shown_ns(&self) -> i64 {
        self.at_ns.unwrap_or(self.now_ns)
    }

    /// The hosts that pass the filter, in their order, each with its numbers.
    pub(crate) fn lines(&self) -> Vec<(&HostRow, Numbers)> {
        let filter = self.screen.filter.to_lowercase();
        let now_ns = self.shown_ns();
        let order_at = self.screen.order();
        let word = HOSTS.orders.get(order_at.at).copied();
        let column = COLUMNS
            .iter()
            .position(|(_, known, ..)| Some(*known) == word);
        let column = column.unwrap_or(0);
        let chosen = self.rows.iter();
        let chosen = chosen.filter(|row| row.name.to_lowercase().contains(&filter));
        let mut lines: Vec<_> = chosen.map(|row| (row, row.numbers(now_ns))).collect();
        let key = |(row, numbers): &(&HostRow, Numbers)| match &self.held {
            _ if row.state != LinkState::Up => f64::NAN,
            Some((_, then)) => {
                let then = then.get(&row.name).map_or(f64::NAN, |then| then[column]);
                (numbers[column] - then).abs()
            }
            None => numbers[column],
        };
        lines.sort_by(|a, b| {
            let (first, second) = (key(a), key(b));
            let order = order((a.0, first), (b.0, second));
            // Rows without a number stay behind.
            let both = first.is_nan() == second.is_nan();
            if order_at.turned && both {
                order.reverse()
            } else {
                order
            }
        });
        lines
    }

    /// Numbers of hosts with an answer, and of all.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let answers = |row: &&HostRow| match row.state {
            LinkState::Up | LinkState::Unrecorded => true,
            LinkState::Connecting | LinkState::Down(_) => false,
        };
        (self.rows.iter().filter(answers).count(), self.rows.len())
    }

    /// Numbers of each host for the next picture.
    pub fn wanted(&mut self) -> Wanted {
        let at_ns = self.shown_ns();
        let span_ns = self.screen.span_s() * SECOND_NS;
        let turn_ns = MINUTE_NS.max(span_ns / 240);
        let around = match self.at_ns {
            None => {
                let thru_ns = self.now_ns.div_euclid(turn_ns).saturating_mul(turn_ns);
                range(thru_ns.saturating_sub(span_ns), thru_ns, POINTS)
            }
            Some(_) => match self.around {
                Some(known) if known.holds(at_ns) && known.thru_ns - known.from_ns == span_ns => {
                    known
                }
                _ => {
                    let thru_ns = at_ns.saturating_add(span_ns / 2).min(self.now_ns);
                    range(thru_ns.saturating_sub(span_ns), thru_ns, POINTS)
                }
            },
        };
        self.around = Some(around);
        let strip = |range: Range, turn_ns: i64| {
            let is_over = !range.holds(self.now_ns);
            Some(StripRange {
                range,
                meter: self.screen.meter,
                turn: if is_over {
                    0
                } else {
                    self.now_ns.div_euclid(turn_ns)
                },
            })
        };
        Wanted {
            at_ns: self.at_ns,
            strips: [strip(self.day(), DAY_TURN_NS), strip(around, turn_ns)],
        }
    }

    /// The day of the moment.
    pub(crate) fn day(&self) -> Range {
        day_around(&mut self.zone.borrow_mut(), self.shown_ns(), DAY_POINTS)
    }

    /// The range around the moment.
    pub(crate) fn around(&self) -> Option<Range> {
        self.around
    }

    /// The greatest of all hosts in each point of a range, and the events of all; which: 0 of the day, 1 around the moment.
    pub(crate) fn strip(&self, which: usize, range: Range) -> Option<Arc<Window>> {
        let strips = self.rows.iter().filter_map(|row| row.strips[which].clone());
        let meter = self.screen.meter;
        let strips: Vec<Arc<Strip>> = strips.filter(|strip| strip.what.meter == meter).collect();
        if strips.is_empty() {
            return None;
        }
        let mut merged = self.merged.borrow_mut();
        let is_same = |known: &&MergedStrip| {
            let pairs = || known.strips.iter().zip(&strips);
            known.range == range
                && known.strips.len() == strips.len()
                && pairs().all(|(known, strip)| Arc::ptr_eq(known, strip))
        };
        if let Some(known) = merged[which].as_ref().filter(is_same) {
            return Some(known.window.clone());
        }
        let window = Arc::new(merge(&strips, range));
        merged[which] = Some(MergedStrip {
            range,
            strips,
            window: window.clone(),
        });
        Some(window)
    }

    /// Local time of a moment: day and time.
    pub(crate) fn local(&self, real_ns: i64) -> (String, String) {
        local(&mut self.zone.borrow_mut(), real_ns)
    }

    /// Shows a message until the next key.
    pub fn say(&mut self, message: &str) {
        self.screen.message = DisplayName(message.as_bytes()).text().into_owned();
    }

    /// Takes notice of a picture.
    pub(crate) fn drawn(&mut self, drawn: Drawn) {
        self.screen.drawn(&drawn);
        self.areas = drawn.areas;
    }

    /// Fulfils what a key asks for.
    pub fn press(&mut self, key: Key) -> FleetTask {
        if self.screen.typing.is_none() && self.screen.overlay.is_none() {
            match key {
                Key::Char('P' | 'C' | 'M' | 'D') => return self.fulfil(key),
                Key::Char('w') => self.say("open a host for that"),
                // Keys of a machine's own tables.
                Key::Char(
                    '1'..='9' | 'g' | 'm' | 'd' | 'v' | 'T' | 't' | 'u' | 'p' | 'G' | 'c',
                )
                | Key::Char('H' | 'y')
                | Key::Tab
                | Key::BackTab
                | Key::Function(5) => {}
                _ => return self.fulfil(key),
            }
            return FleetTask::Nothing;
        }
        self.fulfil(key)
    }

    fn fulfil(&mut self, key: Key) -> FleetTask {
        let wish = self.screen.press(key, self.areas.lines);
        self.grant(wish)
    }

    fn grant(&mut self, wish: Wish) -> FleetTask {
        let done = match wish {
            Wish::Quit => return FleetTask::Quit,
            Wish::Suspend => return FleetTask::Suspend,
            Wish::Redraw => return FleetTask::Redraw,
            Wish::Details => return self.open(),
            Wish::Go(go) => self.go(go),
            Wish::Jump(text) => self.jump(&text),
            Wish::Hold => {
                self.hold();
                Ok(())
            }
            Wish::Nothing
            | Wish::Pause
            | Wish::Show
            | Wish::Span
            | Wish::Threads
            | Wish::Why
            | Wish::Leave => Ok(()),
        };
        if let Err(why) = done {
            self.say(&why);
        }
        FleetTask::Nothing
    }

    /// Takes in what the mouse did at a place of the last picture.
    pub fn mouse(&mut self, mouse: Mouse, x: u16, y: u16) -> FleetTask {
        match mouse {
            Mouse::WheelUp => return self.press(Key::Up),
            Mouse::WheelDown => return self.press(Key::Down),
            Mouse::Click | Mouse::Drag => {}
        }
        if let Some(at_ns) = self.areas.moment(x, y) {
            return self.grant(Wish::Go(Go::To(at_ns)));
        }
        if mouse == Mouse::Drag {
            return FleetTask::Nothing;
        }
        if let Some(word) = self.areas.word(x, y) {
            let known = COLUMNS.iter().find(|(_, _, head, _)| *head == word);
            if let Some((_, word, ..)) = known {
                self.screen.order_by(word);
            }
        } else if let Some(line) = self.areas.line(y)
            && self.screen.clicked(line, self.areas.lines)
        {
            return self.open();
        }
        FleetTask::Nothing
    }

    fn open(&mut self) -> FleetTask {
        let lines = self.lines();
        let found = lines.iter().find(|(row, _)| {
            let selected = self.screen.selected.as_ref();
            selected.is_some_and(|one| one.name == row.name.as_bytes())
        });
        let Some((row, _)) = found.or_else(|| lines.get(self.screen.cursor)) else {
            return FleetTask::Nothing;
        };
        let there_ns = self.at_ns.map(|at_ns| match row.at_ns == Some(at_ns) {
            true if row.sample_ns > 0 => row.sample_ns,
            // A sample of that second.
            _ => at_ns.saturating_add(row.ahead_ns()) - (SECOND_NS - 1),
        });
        FleetTask::Open(row.name.clone(), there_ns)
    }

    fn hold(&mut self) {
        if self.held.take().is_none() {
            let lines = self.lines();
            let held = lines
                .iter()
                .map(|(row, numbers)| (row.name.clone(), *numbers));
            self.held = Some((self.shown_ns(), held.collect()));
        }
    }

    /// Goes to a place in time.
    fn go(&mut self, go: Go) -> Result<(), String> {
        let last_ns = self.now_ns.saturating_sub(LATE_NS);
        let from_ns = self.at_ns.unwrap_or(last_ns);
        let by = |seconds: i64| from_ns.saturating_add(seconds.saturating_mul(SECOND_NS));
        let to_ns = match go {
            Go::Sample(Way::Back) => by(-1),
            Go::Sample(Way::Forward) => by(1),
            Go::Seconds(seconds) => by(seconds),
            Go::Live => self.now_ns,
            Go::To(to_ns) => to_ns,
            Go::First => {
                let firsts = self.rows.iter().filter(|row| row.first_ns > 0);
                let firsts = firsts.map(|row| row.first_ns.saturating_sub(row.ahead_ns()));
                firsts.min().ok_or("nothing is recorded there")?
            }
            Go::Worst => {
                let window = self.around.and_then(|range| self.strip(1, range));
                let worst_ns = window.and_then(|window| window.worst_ns(0));
                worst_ns.ok_or("the range is still being read")?
            }
            Go::Event(way) => {
                let at_ns = self.shown_ns();
                let window = self.strip(0, self.day()).unwrap_or_default();
                let mut times = window.marks.iter().map(|mark| mark.until_ns);
                let found = match way {
                    Way::Forward => times.find(|ns| end_of_second(*ns) > at_ns),
                    Way::Back => times.rfind(|ns| end_of_second(*ns) < at_ns),
                };
                found.ok_or("no event of this day on that side")?
            }
        };
        self.show(Some(to_ns));
        Ok(())
    }

    /// Goes to a time that was typed.
    fn jump(&mut self, text: &str) -> Result<(), String> {
        let times = (self.shown_ns(), self.now_ns);
        let to_ns = moment_of(text, &mut self.zone.borrow_mut(), times)?;
        self.go(Go::To(to_ns))
    }

    /// The name of the slider's meter.
    pub(crate) fn meter(&self) -> &'static crate::meters::Meter {
        &METERS[self.screen.meter]
    }

    /// The order's name.
    pub(crate) fn order_name(&self) -> &'static str {
        let Order { at, .. } = self.screen.order();
        HOSTS.orders.get(at).copied().unwrap_or_default()
    }

    /// True if a text is in the place of the table.
    pub(crate) fn shows_help(&self) -> bool {
        self.screen.overlay == Some(Overlay::Help)
    }
}

fn range(from_ns: i64, thru_ns: i64, points: usize) -> Range {
    Range {
        from_ns,
        thru_ns,
        points,
    }
}

/// The last moment of a second: its samples are before it.
fn end_of_second(ns: i64) -> i64 {
    ns.div_euclid(SECOND_NS)
        .saturating_mul(SECOND_NS)
        .saturating_add(SECOND_NS - 1)
}

/// The greatest value in each point of a range, and all events.
fn merge(strips: &[Arc<Strip>], range: Range) -> Window {
    let points = i64::try_from(range.points).unwrap_or(1).max(1);
    let step_ns = (range.thru_ns.saturating_sub(range.from_ns) / points).max(1);
    let value = |point: i64| {
        let end_ns = range
            .from_ns
            .saturating_add(step_ns.saturating_mul(point + 1));
        let values = strips.iter().filter_map(|strip| {
            let line = strip.window.lines.first()?;
            line.get(strip.window.point(end_ns)?).copied()
        });
        values.fold(f64::NAN, f64::max)
    };
    let marks = strips.iter().flat_map(|strip| strip.window.marks.clone());
    let mut marks: Vec<_> = marks.collect();
    marks.sort_by_key(|mark| mark.until_ns);
    Window {
        from_ns: range.from_ns,
        step_ns,
        lines: vec![(0..points).map(value).collect()],
        marks,
    }
}
