//! The screen with its data: samples that come, the recording, and ranges of it that are read aside.
//!
//! Long readings are questions, which the caller answers when and where it likes: the picture waits for none of them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo_base::context::Context;
use kymo_base::name::DisplayName;
use kymo_kernel::subsystem::Subsystem;
use kymo_kernel::subsystem::cgroups::CGROUPS;
use kymo_kernel::subsystem::process::{PROCESS, pid_of};
use kymo_query::marks::Mark;
use kymo_query::source::Source;
use kymo_recording::reader::TimeRange;
use kymo_view::time::{Bound, PlayedZone, Zone};
use kymo_view::why::broken;

use crate::areas::{Areas, Drawn};
use crate::key::{Key, Mouse};
use crate::lines::{self, Choice, Identity, Line, Lines, Shape};
use crate::meters::{self, COUNT, SUBSYSTEMS};
use crate::palette::Palette;
use crate::past::Past;
use crate::readings::{Readings, Route};
use crate::retrieve::Retrieve;
use crate::screen::{Go, Overlay, Screen, Way, Wish};
use crate::tables::{Content, Order, order_of_head};
use crate::window::{KILLED, Range, Trail, Window};

const SECOND_NS: i64 = 1_000_000_000;
const DAY_S: i64 = 86_400;
const HOUR_S: i64 = 3600;
/// Longest recording whose hours are the slider's range.
const SHORT_NS: i64 = 12 * HOUR_S * SECOND_NS;
/// Points of the range around a moment, and of a day.
const POINTS: usize = 240;
const DAY_POINTS: usize = 288;
/// Length of the past before the first live sample, in seconds and points.
const BEFORE_S: i64 = 900;
const BEFORE_POINTS: usize = 900;
/// How old the picture of a day that is not over may get.
const DAY_FRESH_NS: i64 = 60 * SECOND_NS;
/// Days that are searched for an event.
const EVENT_DAYS: i64 = 31;

/// Live readings, which another thread may advance.
pub type SharedReadings = Arc<Mutex<Readings>>;

/// A reading aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Question {
    /// The meters around the moment.
    Around(Range),
    /// The meters of the last minutes, before the first live sample.
    Before(Range),
    /// The meters of the day.
    Day(Range),
    /// The process of this pid.
    Life(Range, u64),
    /// The unusual values between these moments.
    Why(i64, i64),
    /// The programs at this moment.
    Programs(i64),
}

/// The answer to a question.
#[derive(Debug)]
pub enum Reply {
    /// A range of the recording.
    Window(Window),
    /// Lines of text.
    Lines(Vec<String>),
}

impl Question {
    /// Reads the answer.
    pub fn answer(self, archive: &dyn Retrieve) -> Result<Reply, String> {
        Ok(match self {
            Question::Around(range) | Question::Before(range) | Question::Day(range) => {
                Reply::Window(Window::of_meters(archive, range)?)
            }
            Question::Life(range, pid) => Reply::Window(Window::of_process(archive, range, pid)?),
            Question::Why(from_ns, thru_ns) => {
                let text = archive.why(TimeRange { from_ns, thru_ns })?;
                Reply::Lines(text.lines().map(str::to_string).collect())
            }
            Question::Programs(at_ns) => {
                let text = archive.programs(at_ns)?;
                Reply::Lines(text.lines().map(str::to_string).collect())
            }
        })
    }
}

/// A moment that others are compared with.
pub struct Held {
    /// Moment, in nanoseconds since 1970.
    pub at_ns: i64,
    /// Values of the meters.
    pub meters: [f64; COUNT],
    /// Values of each line by the orders of its table.
    pub lines: HashMap<Identity, Vec<f64>>,
    table: char,
    shape: Shape,
}

/// Work for the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Task {
    /// None.
    Nothing,
    /// End.
    Quit,
    /// Stop until the shell says to go on.
    Suspend,
    /// Draw everything.
    Redraw,
    /// Sample threads too, or not any more.
    Threads(bool),
}

/// The screen with its data.
pub struct App {
    /// State of the screen.
    pub screen: Screen,
    /// Look.
    pub palette: Palette,
    /// Present time, in nanoseconds since 1970, set by the caller.
    pub now_ns: i64,
    /// Name of the kernel's function that a process waits in, where it is known now.
    pub waits_for: fn(u64) -> String,
    pub(crate) areas: Areas,
    live: Option<SharedReadings>,
    past: Option<Past>,
    /// Reason for which there is no past.
    pub(crate) no_past: String,
    is_live: bool,
    /// Time of the last live sample.
    live_ns: i64,
    pub(crate) trail: Trail,
    around: Option<(Range, Window)>,
    day: Option<(Range, Window, i64)>,
    life: Option<(Range, u64, Window)>,
    /// The unusual values between two moments, once they are known.
    why: Option<(i64, i64, Vec<String>)>,
    /// The programs of a moment.
    programs: Option<(i64, Vec<String>)>,
    began: bool,
    asked: Vec<Question>,
    pub(crate) held: Option<Held>,
    zone: RefCell<PlayedZone>,
}

impl App {
    /// A screen of live samples, of a recording, or of both.
    pub fn new(
        live: Option<SharedReadings>,
        past: Option<Past>,
        palette: Palette,
        now_ns: i64,
    ) -> App {
        App {
            screen: Screen::default(),
            palette,
            now_ns,
            waits_for: |_| String::new(),
            areas: Areas::default(),
            is_live: live.is_some(),
            live_ns: now_ns,
            live,
            past,
            no_past: String::new(),
            trail: Trail::default(),
            around: None,
            day: None,
            life: None,
            why: None,
            programs: None,
            began: false,
            asked: Vec::new(),
            held: None,
            zone: RefCell::default(),
        }
    }

    /// Readings of all tables, for live samples.
    pub fn readings() -> Readings {
        let mut subsystems: Vec<&'static Subsystem> = SUBSYSTEMS.to_vec();
        subsystems.extend([&CGROUPS, &PROCESS]);
        Readings::new(&subsystems)
    }

    /// Takes the present sample of a source into readings that are shown live.
    pub fn advance(
        live: &SharedReadings,
        source: &dyn Source,
        moment: &kymo_query::source::Moment,
    ) {
        lock(live).advance(source, moment, Route::ALWAYS);
    }

    /// Says why there is no past.
    pub fn without_past(&mut self, why: String) {
        self.no_past = why;
    }

    /// True if each live sample changes the picture.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// True if there are live samples to go to.
    pub(crate) fn has_live(&self) -> bool {
        self.live.is_some()
    }

    /// The recording.
    pub fn archive(&self) -> Option<Arc<dyn Retrieve>> {
        self.past.as_ref().map(|past| past.archive().clone())
    }

    pub(crate) fn past(&self) -> Option<&Past> {
        self.past.as_ref()
    }

    /// Takes notice of a live sample.
    pub fn tick(&mut self) {
        if let Some(live) = &self.live {
            let readings = lock(live);
            self.trail.push(&readings);
            self.live_ns = readings.at.map_or(self.live_ns, |at| at.real_ns);
        }
    }

    /// Takes notice of a picture.
    pub fn drawn(&mut self, drawn: Drawn) {
        self.screen.drawn(&drawn);
        self.areas = drawn.areas;
    }

    /// Calls `see` with the readings that are shown, which must not be asked for meanwhile.
    pub(crate) fn with<T>(&self, see: impl FnOnce(&Readings) -> T) -> Option<T> {
        match (&self.live, &self.past) {
            (Some(live), _) if self.is_live => Some(see(&lock(live))),
            (_, Some(past)) => Some(see(past.readings())),
            (_, None) => None,
        }
    }

    /// The moment that is shown.
    pub fn at_ns(&self) -> i64 {
        match &self.past {
            Some(past) if !self.is_live => past.at_ns(),
            _ => self.live_ns,
        }
    }

    /// The lines of the present table.
    pub(crate) fn lines(&self, readings: &Readings) -> Lines {
        let screen = &self.screen;
        let part = readings.part(screen.table.subsystem);
        let Some(part) = part.filter(|_| screen.table.content != Content::Programs) else {
            return Lines::default();
        };
        let choice = Choice {
            table: screen.table,
            order: screen.order(),
            filter: &screen.filter,
            shape: match screen.table.key {
                '1' => screen.shape,
                _ => Shape::Flat,
            },
            threads: screen.threads || screen.table.content == Content::Waiting,
        };
        let mut lines = lines::lines(part, &readings.context, &choice);
        if let Some(held) = self.compared() {
            let order = screen.order().at;
            let change = |line: &Line| {
                let then = held.lines.get(&lines.identity(line, part));
                let then = then.and_then(|values| values.get(order)).copied();
                let then = then.filter(|then| !then.is_nan()).unwrap_or(0.0);
                (line.value - then).abs()
            };
            let mut all: Vec<(f64, Line)> =
                lines.all.iter().map(|line| (change(line), *line)).collect();
            all.sort_by(|a, b| b.0.total_cmp(&a.0));
            lines.all = all.into_iter().map(|(_, line)| line).collect();
        }
        lines
    }

    /// The held moment, if it was held with what the table shows now.
    pub(crate) fn compared(&self) -> Option<&Held> {
        let held = self.held.as_ref()?;
        let is_same = held.table == self.screen.table.key && held.shape == self.screen.shape;
        is_same.then_some(held)
    }

    /// Fulfils what a key asks for.
    pub fn press(&mut self, key: Key) -> Task {
        let wish = self.screen.press(key, self.areas.lines);
        self.fulfil(wish)
    }

    /// Takes in what the mouse did at a place of the last picture.
    pub fn mouse(&mut self, mouse: Mouse, x: u16, y: u16) -> Task {
        match mouse {
            Mouse::WheelUp => return self.press(Key::Up),
            Mouse::WheelDown => return self.press(Key::Down),
            Mouse::Click | Mouse::Drag => {}
        }
        if let Some(at_ns) = self.areas.moment(x, y) {
            return self.fulfil(Wish::Go(Go::To(at_ns)));
        }
        if mouse == Mouse::Drag {
            return Task::Nothing;
        }
        if let Some(word) = self.areas.word(x, y) {
            if let Some(order) = order_of_head(&word) {
                self.screen.order_by(order);
            }
        } else if let Some(line) = self.areas.line(y)
            && self.screen.clicked(line, self.areas.lines)
        {
            return self.fulfil(Wish::Details);
        }
        Task::Nothing
    }

    fn fulfil(&mut self, wish: Wish) -> Task {
        let done = match wish {
            Wish::Nothing | Wish::Pause => Ok(()),
            Wish::Quit => return Task::Quit,
            Wish::Suspend => return Task::Suspend,
            Wish::Redraw => return Task::Redraw,
            Wish::Threads => return Task::Threads(self.screen.threads),
            Wish::Go(go) => self.go(go),
            Wish::Jump(text) => self.jump(&text),
            Wish::Show => self.show_table(),
            Wish::Hold => {
                self.hold();
                Ok(())
            }
            Wish::Details => {
                self.screen.details = self.at_cursor_in_detail();
                self.screen.scroll = 0;
                self.watch()
            }
            Wish::Leave => self.watch(),
            Wish::Why => self.ask_why(),
            Wish::Span => {
                self.around = None;
                Ok(())
            }
        };
        if let Err(why) = done {
            self.say(&why);
        }
        Task::Nothing
    }

    /// Asks about the minute around the moment; live, about the last minute.
    fn ask_why(&mut self) -> Result<(), String> {
        if self.past.is_none() {
            self.screen.overlay = None;
            return Err(self.no_past.clone());
        }
        let thru_ns = match self.is_live {
            true => self.at_ns(),
            false => self.at_ns().saturating_add(30 * SECOND_NS),
        };
        self.why = Some((thru_ns.saturating_sub(60 * SECOND_NS), thru_ns, Vec::new()));
        Ok(())
    }

    /// The unusual values at the moment that was asked about, for a screen of this width.
    pub(crate) fn why(&self, columns: u16) -> Vec<String> {
        match &self.why {
            Some((.., lines)) if !lines.is_empty() => {
                let text = broken(&lines.join("\n"), columns.into());
                text.lines().map(str::to_string).collect()
            }
            _ => vec!["the recording is being read".into()],
        }
    }

    /// The programs as lines, of which those that pass the filter; or the reason for which there are none.
    pub(crate) fn programs(&self) -> Result<Vec<&str>, &str> {
        let Some((_, lines)) = &self.programs else {
            return Err(match &self.past {
                Some(_) => "the recording is being read",
                None if self.no_past.is_empty() => "no past",
                None => &self.no_past,
            });
        };
        if lines.is_empty() {
            return Err(match self.is_live {
                true => "no program publishes anything",
                false => "nothing was recorded of programs then",
            });
        }
        let filter = self.screen.filter.to_lowercase();
        let lines = lines.iter().map(String::as_str);
        Ok(lines
            .filter(|line| line.to_lowercase().contains(&filter))
            .collect())
    }

    /// Shows a message until the next key.
    pub fn say(&mut self, message: &str) {
        self.screen.message = DisplayName(message.as_bytes()).text().into_owned();
    }

    fn watched(&self) -> Option<Vec<u8>> {
        self.screen.details.as_ref().map(|one| one.name.clone())
    }

    fn show_table(&mut self) -> Result<(), String> {
        let table = self.screen.table.subsystem;
        let watched = self.watched();
        let is_live = self.is_live;
        match &mut self.past {
            Some(past) => {
                past.show(table);
                match is_live {
                    true => Ok(()),
                    false => past.go(past.at_ns(), watched.as_deref()),
                }
            }
            None => Ok(()),
        }
    }

    /// The process to show in detail; `None` where lines are no processes.
    fn at_cursor_in_detail(&self) -> Option<Identity> {
        let table = self.screen.table;
        let is_process = table.subsystem.is_of_processes() && table.content != Content::Programs;
        let is_one = is_process && !matches!(self.screen.shape, Shape::By(_));
        is_one.then(|| self.at_cursor()).flatten()
    }

    /// Reads the raw texts of the process in detail, or of none any more.
    fn watch(&mut self) -> Result<(), String> {
        let watched = self.watched();
        if let Some(live) = &self.live {
            lock(live).watch(watched.as_deref());
        }
        match &mut self.past {
            Some(past) if !self.is_live => past.go(past.at_ns(), watched.as_deref()),
            _ => Ok(()),
        }
    }

    /// The selected line, or the one at the cursor.
    fn at_cursor(&self) -> Option<Identity> {
        let selected = self.screen.selected.clone();
        selected
            .filter(|one| *one != Identity::default())
            .or_else(|| {
                let at_cursor = self.with(|readings| {
                    let part = readings.part(self.screen.table.subsystem)?;
                    let lines = self.lines(readings);
                    let line = lines.all.get(self.screen.cursor)?;
                    Some(lines.identity(line, part))
                });
                at_cursor.flatten()
            })
    }

    fn hold(&mut self) {
        if self.held.take().is_some() {
            return;
        }
        let (table, shape) = (self.screen.table, self.screen.shape);
        let orders = 0..table.order_names().len();
        let held = self.with(|readings| {
            let part = readings.part(table.subsystem)?;
            let values: Vec<_> = orders
                .map(|at| table.value(Order { at, turned: false }))
                .collect();
            let lines = self.lines(readings);
            let held = lines.all.iter().map(|line| {
                let cells = lines.cells(line, part, &readings.context);
                let values = values.iter().map(|value| value(&cells)).collect();
                (lines.identity(line, part), values)
            });
            Some(Held {
                at_ns: self.at_ns(),
                meters: meters::values(readings),
                lines: held.collect(),
                table: table.key,
                shape,
            })
        });
        self.held = held.flatten();
    }

    /// Goes to a place in time.
    pub fn go(&mut self, go: Go) -> Result<(), String> {
        let watched = self.watched();
        let at_ns = self.at_ns();
        if go == Go::Live && self.live.is_some() {
            self.is_live = true;
            return Ok(());
        }
        let worst_ns = match go {
            Go::Worst => self.worst_ns()?,
            _ => None,
        };
        let was_live = self.is_live;
        let why = self.no_past.clone();
        let past = self.past.as_mut().ok_or(why)?;
        past.show(self.screen.table.subsystem);
        let watched = watched.as_deref();
        let is_ahead = match go {
            Go::Live | Go::Event(Way::Forward) => true,
            Go::Seconds(seconds) => seconds > 0,
            Go::Sample(_) | Go::Event(Way::Back) | Go::Worst | Go::First | Go::To(_) => false,
        };
        if was_live || is_ahead {
            past.look_again()?;
        }
        match go {
            Go::Sample(Way::Back) if was_live => past.jump(past.extent().thru_ns, watched)?,
            Go::Sample(Way::Back) => past.back(watched)?,
            Go::Sample(Way::Forward) if was_live => return Ok(()),
            Go::Sample(Way::Forward) => {
                if !past.forward(watched)? {
                    return self.at_the_end();
                }
            }
            Go::Seconds(seconds) => {
                let to_ns = at_ns.saturating_add(seconds.saturating_mul(SECOND_NS));
                if seconds > 0 && (was_live || to_ns > past.extent().thru_ns) {
                    return self.at_the_end();
                }
                past.jump(to_ns, watched)?;
            }
            Go::Event(way) => match event(past, was_live.then_some(at_ns), way)? {
                Some((event_ns, text)) => {
                    past.jump(event_ns, watched)?;
                    self.is_live = false;
                    self.say(&text);
                    return Ok(());
                }
                None => return Err("no event on that side".into()),
            },
            Go::Worst => match worst_ns {
                Some(worst_ns) => past.jump(worst_ns, watched)?,
                None => return Err("the range is still being read".into()),
            },
            Go::First => past.jump(past.extent().from_ns, watched)?,
            Go::Live => past.jump(past.extent().thru_ns, watched)?,
            Go::To(to_ns) => past.jump(to_ns, watched)?,
        }
        self.is_live = false;
        Ok(())
    }

    fn at_the_end(&mut self) -> Result<(), String> {
        match &self.live {
            Some(_) => {
                self.is_live = true;
                Ok(())
            }
            None => Err("the recording ends here".into()),
        }
    }

    /// Goes to a time that was typed. A time without a day is of the day that is shown, or of the day before.
    pub fn jump(&mut self, text: &str) -> Result<(), String> {
        let at_ns = self.at_ns();
        let context = self
            .with(|readings| readings.context.clone())
            .unwrap_or_default();
        // The present of a recording is its end.
        let latest_ns = match &self.past {
            Some(past) if self.live.is_none() => past.extent().thru_ns,
            _ => self.now_ns,
        };
        let to_ns = moment_of(
            text,
            self.zone.borrow_mut().of(&context),
            (at_ns, latest_ns),
        )?;
        self.go(Go::To(to_ns))?;
        self.say_if_beyond(to_ns, &context);
        Ok(())
    }

    /// Says that a time is not within the recording.
    fn say_if_beyond(&mut self, to_ns: i64, context: &Context) {
        let Some(past) = &self.past else { return };
        let extent = past.extent();
        let slack_ns = past.interval_ns();
        let (edge_ns, word) = match to_ns {
            _ if to_ns < extent.from_ns - slack_ns => (extent.from_ns, "begins"),
            _ if to_ns > extent.thru_ns + slack_ns => (extent.thru_ns, "ends"),
            _ => return,
        };
        let (day, time) = self.local(context, edge_ns);
        self.say(&format!("the recording {word} at {day} {time}"));
    }

    /// The moment at which the slider's meter is greatest in the range.
    fn worst_ns(&self) -> Result<Option<i64>, String> {
        let meter = self.screen.meter;
        if self.is_live {
            return Ok(self.trail.worst_ns(meter));
        }
        let (Some((_, window)), Some(past)) = (&self.around, &self.past) else {
            return Ok(None);
        };
        let Some(worst_ns) = window.worst_ns(meter) else {
            return Ok(None);
        };
        // A point may have several samples.
        let samples = window.step_ns / past.interval_ns();
        let range = Range {
            from_ns: worst_ns - window.step_ns,
            thru_ns: worst_ns,
            points: usize::try_from(samples).unwrap_or(1).max(1),
        };
        let point = Window::of_meters(&**past.archive(), range)?;
        Ok(point.worst_ns(meter).or(Some(worst_ns)))
    }

    /// Readings that are wanted and have not been asked for.
    pub fn questions(&mut self) -> Vec<Question> {
        let Some(past) = &self.past else {
            return Vec::new();
        };
        let (at_ns, extent_from_ns) = (self.at_ns(), past.extent().from_ns);
        let mut wanted = Vec::new();
        let span_ns = self.screen.span_s() * SECOND_NS;
        let extent_thru_ns = past.extent().thru_ns.max(at_ns) + past.interval_ns();
        // As much of the recording as there is room for, with the moment in its middle where that is possible.
        let range = |from_ns: i64, length_ns: i64, points| {
            let thru_ns = from_ns.saturating_add(length_ns).min(extent_thru_ns);
            Range {
                from_ns: thru_ns.saturating_sub(length_ns).max(extent_from_ns),
                thru_ns,
                points,
            }
        };
        if self.is_live {
            let length_ns = BEFORE_S * SECOND_NS;
            let before = range(at_ns.saturating_sub(length_ns), length_ns, BEFORE_POINTS);
            if !self.began && extent_from_ns > 0 && before.from_ns < at_ns {
                self.began = true;
                wanted.push(Question::Before(before));
            }
        } else if !holds(self.around.as_ref().map(|(range, _)| range), at_ns) {
            let from_ns = at_ns.saturating_sub(span_ns / 2);
            wanted.push(Question::Around(range(from_ns, span_ns, POINTS)));
        }
        let day = self.with(|readings| self.slider_range(at_ns, &readings.context));
        let day = day.unwrap_or_else(|| self.slider_range(at_ns, &Context::default()));
        let is_fresh = |now_ns: i64| {
            let known = self.day.as_ref().filter(|(range, ..)| *range == day);
            known.is_some_and(|(_, _, read_ns)| {
                now_ns < *read_ns + DAY_FRESH_NS || day.thru_ns < *read_ns
            })
        };
        if !is_fresh(self.now_ns) {
            wanted.push(Question::Day(day));
        }
        if let Some(one) = &self.screen.details {
            let pid = pid_of(&one.name);
            let known = self.life.as_ref().filter(|(_, known, _)| *known == pid);
            let from_ns = at_ns.saturating_sub(span_ns * 3 / 4);
            if !holds(known.map(|(range, ..)| range), at_ns) {
                wanted.push(Question::Life(range(from_ns, span_ns, POINTS), pid));
            }
        }
        if let (Some(Overlay::Why), Some((from_ns, thru_ns, lines))) =
            (self.screen.overlay, &self.why)
            && lines.is_empty()
        {
            wanted.push(Question::Why(*from_ns, *thru_ns));
        }
        let is_known = self
            .programs
            .as_ref()
            .is_some_and(|(known, _)| *known == at_ns);
        if self.screen.table.content == Content::Programs && !is_known {
            wanted.push(Question::Programs(at_ns));
        }
        wanted.retain(|question| {
            let is_asked = |asked: &Question| {
                std::mem::discriminant(asked) == std::mem::discriminant(question)
            };
            !self.asked.iter().any(is_asked)
        });
        self.asked.extend(&wanted);
        wanted
    }

    /// Takes in an answer.
    pub fn answered(&mut self, question: Question, answer: Result<Reply, String>) {
        self.asked.retain(|asked| *asked != question);
        let (window, lines) = match answer {
            Ok(Reply::Window(window)) => (window, Vec::new()),
            Ok(Reply::Lines(lines)) => (Window::default(), lines),
            Err(why) => {
                self.say(&why);
                (Window::default(), vec![why])
            }
        };
        match question {
            Question::Around(range) => self.around = Some((range, window)),
            Question::Before(_) => self.trail.begin(&window),
            Question::Day(range) => self.day = Some((range, window, self.now_ns)),
            Question::Life(range, pid) => self.life = Some((range, pid, window)),
            Question::Programs(at_ns) => self.programs = Some((at_ns, lines)),
            Question::Why(from_ns, thru_ns) => {
                // Another moment may have been asked about meanwhile.
                if let Some((from, thru, known)) = &mut self.why
                    && (*from, *thru) == (from_ns, thru_ns)
                {
                    *known = lines;
                }
            }
        }
    }

    /// The slider's range: the hours of a short recording, else the day of a moment in the zone of the recorded machine.
    fn slider_range(&self, at_ns: i64, context: &Context) -> Range {
        let mut played = self.zone.borrow_mut();
        let zone = played.of(context);
        let past = self.past.as_ref().filter(|_| self.live.is_none());
        let hours = past.map(|past| {
            let extent = past.extent();
            let from_ns = begin_of(zone, extent.from_ns, HOUR_S);
            let end_ns = begin_of(zone, extent.thru_ns, HOUR_S);
            (from_ns, end_ns.saturating_add(HOUR_S * SECOND_NS))
        });
        match hours {
            Some((from_ns, thru_ns)) if thru_ns.saturating_sub(from_ns) <= SHORT_NS => Range {
                from_ns,
                thru_ns,
                points: DAY_POINTS,
            },
            _ => day_around(zone, at_ns, DAY_POINTS),
        }
    }

    pub(crate) fn around(&self) -> Option<&Window> {
        self.around.as_ref().map(|(_, window)| window)
    }

    pub(crate) fn day(&self) -> Option<(&Range, &Window)> {
        self.day.as_ref().map(|(range, window, _)| (range, window))
    }

    pub(crate) fn life(&self) -> Option<&Window> {
        let pid = pid_of(&self.screen.details.as_ref()?.name);
        let (_, known, window) = self.life.as_ref()?;
        (*known == pid).then_some(window)
    }

    /// Local time of a moment: day and time.
    pub(crate) fn local(&self, context: &Context, real_ns: i64) -> (String, String) {
        local(self.zone.borrow_mut().of(context), real_ns)
    }
}

/// The moment of a time that was typed. A time without a day is of the day that is shown, or of the day before. Times: the moment that
/// is shown, and the latest one that there is, from which relative ones count.
pub(crate) fn moment_of(
    text: &str,
    zone: &mut Zone,
    (at_ns, latest_ns): (i64, i64),
) -> Result<i64, String> {
    let mut bound = Bound::parse("the time", text.trim(), latest_ns)?;
    let day = zone.local(at_ns).day;
    let before = zone.local(at_ns.saturating_sub(DAY_S * SECOND_NS)).day;
    let mut to_ns = None;
    for day in [day, before] {
        if let Some(wall) = bound.of_every_day() {
            wall.day = Some(day);
            to_ns = bound.moment(zone);
            if to_ns.is_some_and(|to_ns| to_ns <= latest_ns) {
                break;
            }
            bound = Bound::parse("the time", text.trim(), latest_ns)?;
        } else {
            to_ns = bound.moment(zone);
        }
    }
    to_ns.ok_or_else(|| format!("cannot go to {text}: there is no such time"))
}

/// Begin of the day or the hour of a moment, by its length.
fn begin_of(zone: &mut Zone, at_ns: i64, length_s: i64) -> i64 {
    let second = i64::from(zone.local(at_ns).second).rem_euclid(length_s);
    let whole_s = at_ns.div_euclid(SECOND_NS).saturating_sub(second);
    whole_s.saturating_mul(SECOND_NS)
}

/// The day of a moment.
pub(crate) fn day_around(zone: &mut Zone, at_ns: i64, points: usize) -> Range {
    let from_ns = begin_of(zone, at_ns, DAY_S);
    Range {
        from_ns,
        thru_ns: from_ns.saturating_add(DAY_S * SECOND_NS),
        points,
    }
}

/// Local time of a moment: day and time.
pub(crate) fn local(zone: &mut Zone, real_ns: i64) -> (String, String) {
    let local = zone.local(real_ns);
    let (mut day, mut time) = (Vec::new(), Vec::new());
    local.put_day(&mut day);
    local.put_time(&mut time);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(day), text(time))
}

fn holds(range: Option<&Range>, at_ns: i64) -> bool {
    range.is_some_and(|range| range.holds(at_ns))
}

/// The readings, also behind a thread that failed.
pub(crate) fn lock(live: &SharedReadings) -> MutexGuard<'_, Readings> {
    live.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next event beside the sample that is shown, or before the present moment, with its text.
fn event(past: &Past, now_ns: Option<i64>, way: Way) -> Result<Option<(i64, String)>, String> {
    const DAY_NS: i64 = DAY_S * SECOND_NS;
    let extent = past.extent();
    // A sample covers the time since the one before it: events within are seen there.
    let at_ns = match (way, now_ns) {
        (_, Some(now_ns)) => now_ns,
        (Way::Forward, None) => past.at_ns(),
        (Way::Back, None) => match past.previous()? {
            Some(previous_ns) => previous_ns + 1,
            None => return Ok(None),
        },
    };
    for day in 0..EVENT_DAYS {
        let (from_ns, thru_ns) = match way {
            Way::Forward => (at_ns + 1 + day * DAY_NS, at_ns + (day + 1) * DAY_NS),
            Way::Back => (at_ns - (day + 1) * DAY_NS, at_ns - day * DAY_NS),
        };
        if from_ns > extent.thru_ns || thru_ns < extent.from_ns {
            break;
        }
        let range = Range {
            from_ns: from_ns.max(extent.from_ns),
            thru_ns: thru_ns.min(extent.thru_ns + 1),
            points: DAY_POINTS,
        };
        let marks = exact(past, Window::of_events(&**past.archive(), range)?)?;
        let mark = match way {
            Way::Forward => marks
                .filter(|mark| mark.until_ns > at_ns)
                .min_by_key(|mark| (mark.until_ns, mark.from_ns)),
            Way::Back => marks
                .filter(|mark| mark.until_ns < at_ns)
                .max_by_key(|mark| (mark.until_ns, -mark.from_ns)),
        };
        if let Some(mark) = mark {
            return Ok(Some((mark.until_ns, mark.text)));
        }
    }
    Ok(None)
}

/// Marks, of which those that are counted in points get the moments of their samples.
fn exact(past: &Past, marks: Vec<Mark>) -> Result<impl Iterator<Item = Mark>, String> {
    let mut all = Vec::new();
    for mark in marks {
        if mark.text != KILLED {
            all.push(mark);
            continue;
        }
        let samples = (mark.until_ns - mark.from_ns) / past.interval_ns();
        let range = Range {
            from_ns: mark.from_ns,
            thru_ns: mark.until_ns,
            points: usize::try_from(samples).unwrap_or(1).max(1),
        };
        let found = Window::of_events(&**past.archive(), range)?;
        let found = found.into_iter().filter(|one| one.text == KILLED);
        all.extend(found);
    }
    Ok(all.into_iter())
}
