//! State of the screen, and its change by keys: state and key make the next state, and a wish that others fulfil.

use crate::areas::Drawn;
use crate::key::Key;
use crate::lines::{Identity, Shape};
use crate::tables::{Order, TABLES, Table};

/// Lengths of the range around the moment, in seconds; `+` and `-` go through them.
pub const SPANS_S: [i64; 7] = [60, 300, 900, 3600, 6 * 3600, 86_400, 7 * 86_400];
/// Longest text that is typed.
const TYPED_MAX: usize = 120;

/// A place in time to go to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Go {
    /// A sample back or forward.
    Sample(Way),
    /// By a number of seconds.
    Seconds(i64),
    /// The next event, or the one before.
    Event(Way),
    /// The moment of the range at which a meter is greatest.
    Worst,
    /// The first sample.
    First,
    /// The last sample, and on with each that comes.
    Live,
    /// A moment, in nanoseconds since 1970.
    To(i64),
}

/// A direction in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Back.
    Back,
    /// Forward.
    Forward,
}

/// Wish of a key beyond the screen's own state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wish {
    /// Nothing.
    Nothing,
    /// End.
    Quit,
    /// Stop until the shell says to go on.
    Suspend,
    /// Draw everything.
    Redraw,
    /// Another moment.
    Go(Go),
    /// A moment by its text.
    Jump(String),
    /// Another table, whose instances are needed.
    Show,
    /// Hold or release the moment for a comparison.
    Hold,
    /// Stand still, or go on.
    Pause,
    /// The selected process in detail.
    Details,
    /// The table again, in place of a process in detail.
    Leave,
    /// Another length of the range.
    Span,
    /// Threads are wanted, or not any more.
    Threads,
    /// The unusual values at the moment.
    Why,
}

/// A text in the place of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overlay {
    /// The keys.
    Help,
    /// The unusual values at a moment, and the processes behind them.
    Why,
}

/// Meaning of typed text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Typing {
    /// A filter.
    Filter,
    /// A time.
    Time,
}

/// State of the screen.
pub struct Screen {
    /// Table.
    pub table: &'static Table,
    /// Key of the set of columns.
    pub set: char,
    /// Order of each table.
    pub orders: Vec<Order>,
    /// Arrangement of processes.
    pub shape: Shape,
    /// True if threads have lines.
    pub threads: bool,
    /// True if whole command lines are shown, else the kernel's names.
    pub commands: bool,
    /// Filter.
    pub filter: String,
    /// Meaning of typed text, and the text so far.
    pub typing: Option<(Typing, String)>,
    /// The selected line.
    pub selected: Option<Identity>,
    /// Position of the selected line.
    pub cursor: usize,
    /// First line that is shown.
    pub top: usize,
    /// First line of the overlay or the details.
    pub scroll: usize,
    /// Text in the place of the table.
    pub overlay: Option<Overlay>,
    /// Process that is shown in detail.
    pub details: Option<Identity>,
    /// Position in [`SPANS_S`].
    pub span: usize,
    /// Meter of the slider.
    pub meter: usize,
    /// True if the live picture stands still.
    pub paused: bool,
    /// Lines of the table that fit, from the last picture.
    pub page: usize,
    /// Message on the last line.
    pub message: String,
    /// True if the screen is one host's, to which a table of hosts leads back.
    pub nested: bool,
}

impl Default for Screen {
    fn default() -> Screen {
        let order = Order {
            at: 0,
            turned: false,
        };
        Screen {
            table: &TABLES[0],
            set: 'g',
            orders: vec![order; TABLES.len()],
            shape: Shape::Flat,
            threads: false,
            commands: true,
            filter: String::new(),
            typing: None,
            selected: None,
            cursor: 0,
            top: 0,
            scroll: 0,
            overlay: None,
            details: None,
            span: 2,
            meter: 0,
            paused: false,
            page: 10,
            message: String::new(),
            nested: false,
        }
    }
}

impl Screen {
    /// Order of the present table.
    pub fn order(&self) -> Order {
        self.orders[self.table_at()]
    }

    fn table_at(&self) -> usize {
        let key = self.table.key;
        TABLES
            .iter()
            .position(|table| table.key == key)
            .unwrap_or(0)
    }

    /// Seconds of the range around the moment.
    pub fn span_s(&self) -> i64 {
        SPANS_S[self.span]
    }

    /// Takes in a key; `lines`: number of lines of the table.
    pub fn press(&mut self, key: Key, lines: usize) -> Wish {
        self.message.clear();
        if self.typing.is_some() {
            return self.typed(key);
        }
        if self.overlay.is_some() {
            return self.read(key);
        }
        if let Some(wish) = self.travel(key) {
            return wish;
        }
        if self.details.is_some() && self.in_details(key) {
            return match self.details.is_some() {
                true => Wish::Nothing,
                false => Wish::Leave,
            };
        }
        if let Some(wish) = self.choose(key) {
            return wish;
        }
        self.other(key, lines)
    }

    /// Keys of time.
    fn travel(&mut self, key: Key) -> Option<Wish> {
        let go = match key {
            Key::Left => Go::Sample(Way::Back),
            Key::Right => Go::Sample(Way::Forward),
            Key::ShiftLeft | Key::Char('[') => Go::Seconds(-60),
            Key::ShiftRight | Key::Char(']') => Go::Seconds(60),
            Key::CtrlLeft | Key::Char('{') => Go::Seconds(-3600),
            Key::CtrlRight | Key::Char('}') => Go::Seconds(3600),
            Key::Char('n') => Go::Event(Way::Forward),
            Key::Char('N') => Go::Event(Way::Back),
            Key::Char('x') => Go::Worst,
            Key::Char('L' | 'l') => Go::Live,
            Key::Char('B') => Go::First,
            Key::Char('b') => {
                self.typing = Some((Typing::Time, String::new()));
                return Some(Wish::Nothing);
            }
            Key::Char('+' | '-') => {
                self.span = match key == Key::Char('+') {
                    true => self.span.saturating_sub(1),
                    false => (self.span + 1).min(SPANS_S.len() - 1),
                };
                return Some(Wish::Span);
            }
            Key::Char('s') => {
                self.meter = (self.meter + 1) % crate::meters::COUNT;
                return Some(Wish::Nothing);
            }
            Key::Char('=') => return Some(Wish::Hold),
            Key::Char(' ' | 'z') => {
                self.paused = !self.paused;
                return Some(Wish::Pause);
            }
            _ => return None,
        };
        Some(Wish::Go(go))
    }

    /// Keys of tables, columns, orders and arrangements.
    fn choose(&mut self, key: Key) -> Option<Wish> {
        match key {
            Key::Char(digit @ '1'..='9') => {
                let table = TABLES.iter().find(|table| table.key == digit);
                return table.map(|table| self.show(table));
            }
            Key::Tab | Key::BackTab => {
                let step = match key == Key::Tab {
                    true => 1,
                    false => TABLES.len() - 1,
                };
                let at = (self.table_at() + step) % TABLES.len();
                return Some(self.show(&TABLES[at]));
            }
            Key::Char(set @ ('g' | 'm' | 'd' | 'v')) => {
                self.set = set;
                let order = match set {
                    'm' => "rss",
                    'd' => "iokb",
                    'v' => "vctx",
                    _ => "time",
                };
                self.order_by(order);
            }
            Key::Char('P' | 'C') => self.order_by_any(&["time", "cpu"]),
            Key::Char('M') => self.order_by_any(&["rss", "memory_kb", "memory"]),
            Key::Char('T') => self.order_by_any(&["accum"]),
            Key::Char('D') => self.order_by_any(&["iokb", "read_kb", "disk"]),
            Key::Char('I' | 'R') => {
                let at = self.table_at();
                self.orders[at].turned = !self.orders[at].turned;
            }
            Key::Char('<' | ',') => self.next_order(-1),
            Key::Char('>' | '.') | Key::Function(6) => self.next_order(1),
            Key::Char('t') | Key::Function(5) => self.toggle(Shape::Tree),
            Key::Char('u') => self.toggle(Shape::By("user")),
            Key::Char('p') => self.toggle(Shape::By("comm")),
            Key::Char('G') => self.toggle(Shape::By("cgroup")),
            Key::Char('c') => self.commands = !self.commands,
            Key::Char('H' | 'y') => {
                self.threads = !self.threads;
                return Some(Wish::Threads);
            }
            _ => return None,
        }
        Some(Wish::Nothing)
    }

    /// All other keys.
    fn other(&mut self, key: Key, lines: usize) -> Wish {
        match key {
            Key::Char('q') | Key::Function(10) | Key::Ctrl('c') => return Wish::Quit,
            Key::Ctrl('z') => return Wish::Suspend,
            Key::Ctrl('l') => return Wish::Redraw,
            Key::Char('?' | 'h') | Key::Function(1) => self.read_on(Overlay::Help),
            Key::Char('w') => {
                self.read_on(Overlay::Why);
                return Wish::Why;
            }
            Key::Char('/' | '\\') | Key::Function(3 | 4) => {
                self.typing = Some((Typing::Filter, self.filter.clone()));
            }
            Key::Escape if self.nested && self.filter.is_empty() => return Wish::Quit,
            Key::Escape => self.filter.clear(),
            Key::Up | Key::Char('k') => self.select(self.cursor.saturating_sub(1), lines),
            // Without a selected line the first key shows where the selection is.
            Key::Down | Key::Char('j') => {
                let step = usize::from(self.selected.is_some());
                self.select(self.cursor + step, lines);
            }
            Key::PageUp => self.select(self.cursor.saturating_sub(self.page), lines),
            Key::PageDown => self.select(self.cursor + self.page, lines),
            Key::Home => self.select(0, lines),
            Key::End => self.select(usize::MAX, lines),
            Key::Enter => {
                if self.selected.is_none() {
                    self.select(self.cursor, lines);
                }
                return Wish::Details;
            }
            _ => {}
        }
        Wish::Nothing
    }

    /// Shows a table.
    pub fn show(&mut self, table: &'static Table) -> Wish {
        self.table = table;
        self.details = None;
        (self.cursor, self.top, self.selected) = (0, 0, None);
        Wish::Show
    }

    /// Orders the table by a name that it knows; false if it does not.
    pub fn order_by(&mut self, name: &str) -> bool {
        let at = self.table_at();
        let names = self.table.order_names();
        let found = names.iter().position(|known| *known == name);
        if let Some(found) = found {
            let turned = self.orders[at].at == found && self.orders[at].turned;
            self.orders[at] = Order { at: found, turned };
        }
        found.is_some()
    }

    /// Orders the table by the first name that it knows.
    fn order_by_any(&mut self, names: &[&str]) {
        if !names.iter().any(|name| self.order_by(name)) {
            let table = self.table.name.to_lowercase();
            self.message = format!("{table} have no such order; < and > go through theirs");
        }
    }

    fn next_order(&mut self, step: isize) {
        let at = self.table_at();
        let count = self.table.order_names().len();
        let next = self.orders[at].at.checked_add_signed(step);
        self.orders[at].at = next.unwrap_or(count - 1) % count;
    }

    fn toggle(&mut self, shape: Shape) {
        self.shape = match self.shape == shape {
            true => Shape::Flat,
            false => shape,
        };
        (self.cursor, self.top, self.selected) = (0, 0, None);
    }

    /// Selects the line at a position.
    pub fn select(&mut self, at: usize, lines: usize) {
        self.cursor = at.min(lines.saturating_sub(1));
        // The picture knows which line is there.
        self.selected = Some(Identity::default());
    }

    /// Selects the line at a height of the table; true if it was selected before.
    pub(crate) fn clicked(&mut self, height: usize, lines: usize) -> bool {
        let line = self.top + height;
        let is_again = self.selected.is_some() && self.cursor == line;
        self.select(line, lines);
        is_again
    }

    /// Takes notice of a picture.
    pub(crate) fn drawn(&mut self, drawn: &Drawn) {
        (self.cursor, self.top, self.page) = (drawn.cursor, drawn.top, drawn.page);
        self.scroll = drawn.scroll;
        self.selected = self.selected.take().map(|_| drawn.selected.clone());
    }

    fn typed(&mut self, key: Key) -> Wish {
        let Some((typing, mut text)) = self.typing.take() else {
            return Wish::Nothing;
        };
        match key {
            Key::Enter if typing == Typing::Time => return Wish::Jump(text),
            Key::Enter => return Wish::Nothing,
            Key::Escape | Key::Ctrl('c') => {
                if typing == Typing::Filter {
                    self.filter.clear();
                }
                return Wish::Nothing;
            }
            Key::Backspace => {
                text.pop();
            }
            Key::Char(typed) if text.len() < TYPED_MAX => text.push(typed),
            _ => {}
        }
        if typing == Typing::Filter {
            self.filter.clone_from(&text);
            (self.cursor, self.top, self.selected) = (0, 0, None);
        }
        self.typing = Some((typing, text));
        Wish::Nothing
    }

    fn read_on(&mut self, overlay: Overlay) {
        (self.overlay, self.scroll) = (Some(overlay), 0);
    }

    fn read(&mut self, key: Key) -> Wish {
        match key {
            Key::Ctrl('c') => return Wish::Quit,
            Key::Ctrl('z') => return Wish::Suspend,
            _ if self.scrolls(key) => {}
            _ => self.overlay = None,
        }
        Wish::Nothing
    }

    fn in_details(&mut self, key: Key) -> bool {
        match key {
            Key::Escape | Key::Enter | Key::Char('q') => {
                self.details = None;
                self.scroll = 0;
                true
            }
            _ => self.scrolls(key),
        }
    }

    fn scrolls(&mut self, key: Key) -> bool {
        self.scroll = match key {
            Key::Up | Key::Char('k') => self.scroll.saturating_sub(1),
            Key::Down | Key::Char('j') => self.scroll.saturating_add(1),
            Key::PageUp => self.scroll.saturating_sub(self.page),
            Key::PageDown => self.scroll.saturating_add(self.page),
            Key::Home => 0,
            _ => return false,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_make_wishes() {
        for (key, wish) in [
            (Key::Left, Wish::Go(Go::Sample(Way::Back))),
            (Key::Right, Wish::Go(Go::Sample(Way::Forward))),
            (Key::ShiftLeft, Wish::Go(Go::Seconds(-60))),
            (Key::CtrlRight, Wish::Go(Go::Seconds(3600))),
            (Key::Char('n'), Wish::Go(Go::Event(Way::Forward))),
            (Key::Char('x'), Wish::Go(Go::Worst)),
            (Key::Char('L'), Wish::Go(Go::Live)),
            (Key::Char('q'), Wish::Quit),
            (Key::Ctrl('z'), Wish::Suspend),
            (Key::Char('2'), Wish::Show),
            (Key::Char('H'), Wish::Threads),
            (Key::Char('='), Wish::Hold),
            (Key::Char('w'), Wish::Why),
            (Key::Enter, Wish::Details),
        ] {
            assert_eq!(Screen::default().press(key, 3), wish, "{key:?}");
        }
    }

    #[test]
    fn a_filter_counts_while_it_is_typed() {
        let mut screen = Screen::default();
        for key in "/ssq".chars() {
            screen.press(Key::Char(key), 9);
        }
        screen.press(Key::Backspace, 9);
        assert_eq!(
            (screen.filter.as_str(), screen.typing.is_some()),
            ("ss", true)
        );
        assert_eq!(screen.press(Key::Enter, 9), Wish::Nothing);
        assert_eq!(
            (screen.filter.as_str(), screen.typing.is_some()),
            ("ss", false)
        );
        screen.press(Key::Escape, 9);
        assert_eq!(screen.filter, "");
    }

    #[test]
    fn a_time_is_typed() {
        let mut screen = Screen::default();
        for key in "b03:12".chars() {
            assert_eq!(screen.press(Key::Char(key), 0), Wish::Nothing);
        }
        assert_eq!(screen.press(Key::Enter, 0), Wish::Jump("03:12".into()));
    }

    #[test]
    fn details_are_left() {
        for key in [Key::Escape, Key::Enter, Key::Char('q')] {
            let mut screen = Screen {
                details: Some(Identity::default()),
                ..Screen::default()
            };
            assert_eq!(screen.press(key, 3), Wish::Leave, "{key:?}");
            assert!(screen.details.is_none(), "{key:?}");
        }
        let mut screen = Screen {
            details: Some(Identity::default()),
            ..Screen::default()
        };
        assert_eq!(screen.press(Key::Char('2'), 3), Wish::Show);
        assert!(screen.details.is_none());
    }

    #[test]
    fn keys_of_orders_mean_the_same_in_each_table() {
        let mut screen = Screen::default();
        for (key, order) in [('M', "memory_kb"), ('D', "read_kb"), ('P', "cpu")] {
            screen.press(Key::Char('2'), 3);
            screen.press(Key::Char(key), 3);
            assert_eq!(screen.table.order_names()[screen.order().at], order);
        }
        screen.press(Key::Char('M'), 3);
        screen.press(Key::Char('5'), 3);
        screen.press(Key::Char('M'), 3);
        assert!(screen.message.starts_with("cpus have no such order"));
    }

    #[test]
    fn orders_go_round() {
        let mut screen = Screen::default();
        let count = screen.table.order_names().len();
        screen.press(Key::Char('<'), 0);
        assert_eq!(screen.order().at, count - 1);
        screen.press(Key::Char('>'), 0);
        assert_eq!(screen.order().at, 0);
        screen.press(Key::Char('M'), 0);
        let name = screen.table.order_names()[screen.order().at];
        assert_eq!(name, "rss");
        screen.press(Key::Char('I'), 0);
        assert!(screen.order().turned);
    }

    #[test]
    fn the_selection_stays_within_the_table() {
        let mut screen = Screen::default();
        for (key, lines, expect) in [
            (Key::Down, 3, 0),
            (Key::Down, 3, 1),
            (Key::PageDown, 3, 2),
            (Key::Home, 3, 0),
            (Key::End, 5, 4),
            (Key::Up, 5, 3),
            (Key::Down, 0, 0),
        ] {
            screen.press(key, lines);
            assert_eq!(screen.cursor, expect, "{key:?}");
        }
    }
}
