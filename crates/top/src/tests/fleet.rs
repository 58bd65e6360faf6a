//! The screen of several hosts without a terminal: rows, keys, pictures.

use std::sync::Arc;

use kymo_base::context::Context;
use kymo_query::feed::ClockOffset;
use kymo_query::marks::{Kind, Mark, Origin};
use kymo_view::time::Zone;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use crate::draw::{draw_fleet, text};
use crate::fleet::{Fleet, FleetTask};
use crate::help::HOST_KEYS;
use crate::hosts::{HostColumn, HostRow, LinkState, Strip, StripRange};
use crate::key::{Key, Mouse};
use crate::palette::{Colours, Letters, Palette};
use crate::window::Window;

const SECOND_NS: i64 = 1_000_000_000;
const NOW_NS: i64 = 1_800_000_000 * SECOND_NS;
const ASCII: Palette = Palette {
    colours: Colours::None,
    letters: Letters::Ascii,
};

fn row(name: &str, cpu: f64, ahead_ns: i64) -> HostRow {
    let mut row = HostRow::new(name);
    (row.state, row.values[0]) = (LinkState::Up, cpu);
    (row.sample_ns, row.first_ns) = (NOW_NS + ahead_ns, NOW_NS - 3600 * SECOND_NS + ahead_ns);
    row.offset = Some(ClockOffset {
        ahead_ns,
        doubt_ns: 1000,
    });
    row
}

/// The end of a second.
fn end(ns: i64) -> i64 {
    ns - ns % SECOND_NS + SECOND_NS - 1
}

/// Three hosts that answer, and one that does not.
fn fleet() -> Fleet {
    let zone = Zone::of(&Context::default());
    let mut fleet = Fleet::new(ASCII, zone, NOW_NS, None, HostColumn::Cpu);
    let mut down = HostRow::new("web\u{1b}[2J");
    down.state = LinkState::Down("it does not answer".into());
    fleet.take(vec![
        row("a1", 10.0, 0),
        row("b2", 90.0, -5 * SECOND_NS),
        row("a3", 50.0, 0),
        down,
    ]);
    fleet
}

fn picture(fleet: &mut Fleet, width: u16, height: u16) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    draw_fleet(fleet, &mut buffer);
    text(&buffer)
}

fn press(fleet: &mut Fleet, keys: &str) {
    for key in keys.chars() {
        fleet.press(match key {
            '\n' => Key::Enter,
            key => Key::Char(key),
        });
    }
}

/// The first words of the rows.
fn names(shown: &str) -> Vec<String> {
    let rows = shown.lines().skip_while(|line| !line.starts_with("HOST"));
    let rows = rows.skip(1).take_while(|line| !line.contains("?: keys"));
    let names = rows.filter_map(|line| line.split_whitespace().next());
    names.map(String::from).collect()
}

#[test]
fn each_screen_fits_each_size() {
    for keys in ["", "?", "/a", "b03", "=", "<>I", "s+", "---", "[", "1tuw"] {
        for (width, height) in [(80, 24), (200, 50), (40, 12), (20, 5), (1, 1)] {
            let mut fleet = fleet();
            picture(&mut fleet, width, height);
            press(&mut fleet, keys);
            let shown = picture(&mut fleet, width, height);
            let widest = shown.lines().map(str::len).max().unwrap_or(0);
            assert!(widest <= usize::from(width), "{keys}: {shown}");
            assert!(shown.lines().count() <= usize::from(height), "{shown}");
            assert!(shown.is_ascii() && !shown.contains('\u{1b}'), "{shown:?}");
        }
    }
}

#[test]
fn rows_are_ordered_and_filtered_by_keys_and_mouse() {
    let mut fleet = fleet();
    let shown = picture(&mut fleet, 80, 24);
    assert_eq!(names(&shown), ["b2", "a3", "a1", "web\\x1b[2J"], "{shown}");
    assert!(shown.contains("3 of 4 hosts") && shown.contains("does not answer"));
    press(&mut fleet, "I");
    let shown = picture(&mut fleet, 80, 24);
    assert_eq!(names(&shown), ["a1", "a3", "b2", "web\\x1b[2J"], "{shown}");
    let head = shown.lines().position(|line| line.starts_with("HOST"));
    let head = u16::try_from(head.unwrap()).unwrap();
    fleet.mouse(Mouse::Click, 1, head);
    press(&mut fleet, "/A\n");
    assert_eq!(names(&picture(&mut fleet, 80, 24)), ["a1", "a3"]);
    fleet.press(Key::Escape);
    assert_eq!(names(&picture(&mut fleet, 80, 24)).len(), 4);
}

/// The host at the cursor is opened at the moment of the table, by the host's own clock; a second click opens as Enter does.
#[test]
fn a_host_is_opened_at_the_shared_moment() {
    let mut fleet = fleet();
    picture(&mut fleet, 80, 24);
    let open = |name: &str, at_ns| FleetTask::Open(name.into(), at_ns);
    assert_eq!(fleet.press(Key::Enter), open("b2", None));
    fleet.press(Key::Char('['));
    let at_ns = fleet.at_ns().unwrap();
    assert_eq!(at_ns % SECOND_NS, SECOND_NS - 1);
    let late_ns = at_ns - 5 * SECOND_NS;
    picture(&mut fleet, 80, 24);
    assert_eq!(
        fleet.press(Key::Enter),
        open("b2", Some(late_ns - SECOND_NS + 1))
    );
    // Once the row is of that moment, its very sample is opened.
    let mut there = row("b2", 90.0, -5 * SECOND_NS);
    (there.at_ns, there.sample_ns) = (Some(at_ns), late_ns - 7);
    fleet.take(vec![there]);
    let shown = picture(&mut fleet, 80, 24);
    let line = shown.lines().position(|line| line.starts_with("b2"));
    let line = u16::try_from(line.unwrap()).unwrap();
    fleet.press(Key::Escape);
    fleet.screen.selected = None;
    assert_eq!(fleet.mouse(Mouse::Click, 3, line), FleetTask::Nothing);
    picture(&mut fleet, 80, 24);
    assert_eq!(
        fleet.mouse(Mouse::Click, 3, line),
        open("b2", Some(late_ns - 7))
    );
    fleet.show(Some(at_ns - 70 * SECOND_NS));
    assert_eq!(fleet.at_ns(), Some(at_ns - 70 * SECOND_NS));
    fleet.show(Some(NOW_NS));
    assert_eq!(fleet.at_ns(), None);
}

#[test]
fn time_is_gone_through() {
    let mut fleet = fleet();
    let ago = |fleet: &Fleet| (NOW_NS - fleet.at_ns().unwrap_or(NOW_NS)) / SECOND_NS;
    for (key, seconds) in [
        (Key::Left, 2),
        (Key::Left, 3),
        (Key::ShiftLeft, 63),
        (Key::Right, 62),
        (Key::CtrlLeft, 3662),
        (Key::CtrlRight, 62),
        (Key::Char('B'), 3599),
        (Key::Char('L'), 0),
    ] {
        fleet.press(key);
        assert_eq!(ago(&fleet), seconds, "{key:?}");
    }
    press(&mut fleet, "b-10m\n");
    assert_eq!(ago(&fleet), 599);
    press(&mut fleet, "x");
    assert!(picture(&mut fleet, 80, 24).contains("still being read"));
    press(&mut fleet, "bnonsense\n");
    assert!(picture(&mut fleet, 80, 24).contains("cannot use the time"));
}

/// The worst moment is the one of any host, an event too.
#[test]
fn the_slider_is_of_all_hosts() {
    let mut fleet = fleet();
    press(&mut fleet, "b-10m\n");
    let wanted = fleet.wanted();
    let [day, around] = wanted.strips.map(Option::unwrap);
    assert!(day.range.holds(wanted.at_ns.unwrap()) && around.range.holds(wanted.at_ns.unwrap()));
    let strip = |what: StripRange, worst: usize| {
        let mut line = vec![1.0; what.range.points];
        line[worst] = 70.0;
        let points = i64::try_from(what.range.points).unwrap();
        let at_ns = NOW_NS - 1800 * SECOND_NS;
        Some(Arc::new(Strip {
            what,
            window: Window {
                from_ns: what.range.from_ns,
                step_ns: (what.range.thru_ns - what.range.from_ns) / points,
                lines: vec![line],
                marks: vec![Mark {
                    from_ns: at_ns,
                    until_ns: at_ns,
                    kind: Kind::Boot,
                    text: "boot".into(),
                    origin: Origin::Machine,
                }],
            },
        }))
    };
    let (mut one, mut other) = (row("a", 1.0, 0), row("b", 1.0, 0));
    one.strips = [strip(day, 5), strip(around, 30)];
    other.strips[1] = strip(around, 30);
    fleet.take(vec![one, other]);
    let shown = picture(&mut fleet, 80, 24);
    assert!(
        shown.contains("CPU over 15m00s") && shown.contains('B'),
        "{shown}"
    );
    assert!(!shown.contains("reading"), "{shown}");
    press(&mut fleet, "x");
    let step_ns = (around.range.thru_ns - around.range.from_ns) / 240;
    let worst_ns = around.range.from_ns + 31 * step_ns;
    assert_eq!(fleet.at_ns(), Some(end(worst_ns)));
    press(&mut fleet, "N");
    assert_eq!(fleet.at_ns(), Some(end(NOW_NS - 1800 * SECOND_NS)));
    // The strips of later answers are in the next picture.
    let mut one = row("a", 1.0, 0);
    one.strips[1] = strip(around, 60);
    fleet.take(vec![one]);
    picture(&mut fleet, 80, 24);
    press(&mut fleet, "x");
    let worst_ns = around.range.from_ns + 61 * step_ns;
    assert_eq!(fleet.at_ns(), Some(end(worst_ns)));
}

#[test]
fn two_moments_are_compared() {
    let mut fleet = fleet();
    press(&mut fleet, "=");
    fleet.take(vec![row("a1", 30.0, 0), row("a3", 51.0, 0)]);
    let shown = picture(&mut fleet, 80, 24);
    assert!(
        shown.contains("against") && shown.contains("+20.0"),
        "{shown}"
    );
    assert_eq!(names(&shown), ["a1", "a3"], "{shown}");
    press(&mut fleet, "=");
    assert!(!picture(&mut fleet, 80, 24).contains("+20.0"));
}

#[test]
fn the_document_has_each_key() {
    let document = include_str!("../../../../docs/hosts.md");
    for (keys, what) in HOST_KEYS.iter().flat_map(|(_, keys)| *keys) {
        let keys: Vec<String> = keys.split(' ').map(|key| format!("`{key}`")).collect();
        let row = format!("| {} | {what} |", keys.join(" "));
        assert!(document.contains(&row), "{row}");
    }
}
