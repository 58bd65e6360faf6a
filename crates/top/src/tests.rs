//! The whole screen without a terminal: recorded samples, keys, pictures.

mod fleet;

use std::path::Path;
use std::sync::{Arc, Mutex};

use kymo_base::context::Context;
use kymo_base::track::Tracks;
use kymo_kernel::source::{self, kind};
use kymo_kernel::subsystem::process::PROCESS;
use kymo_query::archive::{Archive, RecordingSource};
use kymo_query::source::{Moment, Source, Step};
use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::terminal::Terminal;

use crate::app::{App, Task};
use crate::draw::{draw, text};
use crate::help;
use crate::key::{Key, Mouse};
use crate::palette::{Colours, Letters, Palette};
use crate::past::Past;
use crate::screen::Go;

const SECOND_NS: u64 = 1_000_000_000;
const ASCII: Palette = Palette {
    colours: Colours::None,
    letters: Letters::Ascii,
};

/// A file of collectl's with processes: 11 samples.
fn recorded(palette: Palette) -> App {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/vm-20261121-215607.raw.gz");
    let archive = Arc::new(Archive::new(RecordingSource::Files(vec![path]), None));
    let past = Past::open(archive, &PROCESS).unwrap();
    let now_ns = past.extent().thru_ns + 60_000_000_000;
    let mut app = App::new(None, Some(past), palette, now_ns);
    app.go(Go::Live).unwrap();
    app
}

/// A machine of `count` processes, each of which uses the CPU.
struct Crowd {
    tracks: Tracks,
    context: Context,
    names: Vec<Vec<u8>>,
}

impl Crowd {
    fn new(names: impl Iterator<Item = Vec<u8>>) -> Crowd {
        Crowd {
            tracks: Tracks::default(),
            context: Context::default(),
            names: names.collect(),
        }
    }

    fn sample(&mut self, second: u64) -> Moment {
        self.tracks.begin_sample();
        for (slot, name) in self.names.iter().enumerate() {
            let pid = slot + 1;
            let ticks = second * (pid as u64 % 7);
            let mut stat = format!("{pid} (").into_bytes();
            stat.extend_from_slice(name);
            stat.extend_from_slice(
                format!(
                    ") D {} 1 1 0 -1 0 1 0 2 0 {ticks} 4 0 0 20 0 1 0 99 8192 5",
                    pid / 2
                )
                .as_bytes(),
            );
            let instance = pid.to_string();
            for (kind, text) in [(kind::PID_STAT, &stat), (kind::PID_CMDLINE, name)] {
                let grammar = source::of(kind).unwrap().grammar;
                let track = self.tracks.get_mut(kind);
                track.put_text(slot, instance.as_bytes(), text, grammar);
            }
        }
        Moment {
            seq: second,
            real_ns: (second * SECOND_NS) as i64,
            mono_ns: second * SECOND_NS,
            boot_ns: second * SECOND_NS,
            ..Moment::default()
        }
    }
}

impl Source for Crowd {
    fn next(&mut self) -> Result<Option<Step>, String> {
        Ok(None)
    }

    fn tracks(&self) -> &Tracks {
        &self.tracks
    }

    fn context(&self) -> &Context {
        &self.context
    }
}

fn live(mut crowd: Crowd) -> App {
    let readings = Arc::new(Mutex::new(App::readings()));
    let mut app = App::new(Some(readings.clone()), None, ASCII, 0);
    for second in 1000..1003 {
        let moment = crowd.sample(second);
        App::advance(&readings, &crowd, &moment);
        app.tick();
    }
    app
}

fn picture(app: &mut App, width: u16, height: u16) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    draw(app, &mut buffer);
    let archive = app.archive();
    for question in app.questions() {
        app.answered(question, question.answer(&**archive.as_ref().unwrap()));
    }
    buffer.reset();
    draw(app, &mut buffer);
    text(&buffer)
}

fn press(app: &mut App, keys: &str) {
    for key in keys.chars() {
        app.press(match key {
            '\n' => Key::Enter,
            key => Key::Char(key),
        });
    }
}

#[test]
fn each_screen_fits_each_size() {
    for keys in [
        "", "m", "d", "v", "t", "u", "p", "G", "H", "c", "2", "3", "4", "5", "6", "7", "?", "\n",
        "/rcu", "b03", "=", "=<>I", "s+", "---",
    ] {
        for (width, height) in [(80, 24), (120, 40), (300, 80), (40, 12), (20, 5), (1, 1)] {
            let mut app = recorded(ASCII);
            picture(&mut app, width, height);
            press(&mut app, keys);
            let shown = picture(&mut app, width, height);
            let widest = shown.lines().map(str::len).max().unwrap_or(0);
            assert!(widest <= usize::from(width), "{keys}: {shown}");
            assert!(
                shown.lines().count() <= usize::from(height),
                "{keys}: {shown}"
            );
            assert!(shown.is_ascii(), "{keys}: {shown}");
            if width >= 80 && !"?".contains(keys) {
                assert!(shown.starts_with("vm  20261121 21:56:"), "{keys}: {shown}");
            }
        }
    }
}

#[test]
fn a_terminal_shows_it_and_another_size() {
    let mut app = recorded(ASCII);
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    for (width, height) in [(80, 24), (120, 40), (80, 24)] {
        terminal.backend_mut().resize(width, height);
        terminal
            .draw(|frame| draw(&mut app, frame.buffer_mut()))
            .unwrap();
        let shown = text(terminal.backend().buffer());
        assert!(
            shown.contains("CPU") && shown.contains("1:Processes"),
            "{shown}"
        );
        assert_eq!(
            terminal.backend().buffer().area,
            Rect::new(0, 0, width, height)
        );
    }
}

#[test]
fn the_past_is_gone_through_in_both_directions() {
    let mut app = recorded(ASCII);
    let last_ns = app.at_ns();
    let mut moments = vec![last_ns];
    loop {
        app.press(Key::Left);
        if Some(&app.at_ns()) == moments.last() {
            break;
        }
        moments.push(app.at_ns());
        assert!(moments.len() < 100);
    }
    assert!(moments.len() >= 5, "{moments:?}");
    assert!(moments.is_sorted_by(|a, b| a > b), "{moments:?}");
    for expect in moments.iter().rev().skip(1) {
        app.press(Key::Right);
        assert_eq!(app.at_ns(), *expect);
    }
    app.press(Key::Right);
    assert_eq!(app.at_ns(), last_ns);
    let shown = picture(&mut app, 80, 24);
    assert!(shown.contains("the recording ends here"), "{shown}");
    app.press(Key::Char('B'));
    assert_eq!(Some(&app.at_ns()), moments.last());
    app.press(Key::Char('L'));
    assert_eq!(app.at_ns(), last_ns);
    press(&mut app, "b21:56:12\n");
    let shown = picture(&mut app, 80, 24);
    assert!(shown.starts_with("vm  20261121 21:56:12"), "{shown}");
    press(&mut app, "bnonsense\n");
    let shown = picture(&mut app, 80, 24);
    assert!(shown.contains("cannot use the time nonsense"), "{shown}");
}

/// The worst moment of the range is where the line is highest, or within two hundredths of it.
#[test]
fn the_worst_moment_is_found() {
    let mut app = recorded(ASCII);
    picture(&mut app, 80, 24);
    app.press(Key::Char('x'));
    let window = app.around().unwrap();
    let most = window.lines[0].iter().copied().fold(0.0, f64::max);
    let there = app.with(|readings| readings.number("cpu.total")).unwrap();
    assert!(
        (most * 0.98..most + 1e-6).contains(&there),
        "{most} {there}"
    );
}

/// Esc opened the details again that it had closed.
#[test]
fn details_are_left() {
    for key in [Key::Escape, Key::Enter, Key::Char('q')] {
        let mut app = recorded(ASCII);
        picture(&mut app, 80, 24);
        app.press(Key::Enter);
        assert!(picture(&mut app, 80, 24).contains("ancestors:"));
        assert_eq!(app.press(key), Task::Nothing);
        assert!(picture(&mut app, 80, 24).contains("1:Processes"), "{key:?}");
    }
}

#[test]
fn two_moments_are_compared() {
    let mut app = recorded(ASCII);
    press(&mut app, "=");
    app.press(Key::Left);
    let shown = picture(&mut app, 80, 24);
    assert!(
        shown.contains("against 21:56:") && shown.contains("Change"),
        "{shown}"
    );
    assert!(shown.contains("then "), "{shown}");
    press(&mut app, "=");
    assert!(!picture(&mut app, 80, 24).contains("against"));
}

#[test]
fn names_from_outside_are_no_terminal_bytes() {
    let name = b"\x1b]0;x\x07\x9b31m\xff\ny".to_vec();
    for keys in ["", "c", "p", "t", "6", "\n", "/x"] {
        let mut app = live(Crowd::new([name.clone()].into_iter()));
        press(&mut app, keys);
        let shown = picture(&mut app, 120, 40);
        let is_safe = |letter: char| letter == '\n' || !letter.is_control();
        assert!(shown.chars().all(is_safe), "{keys:?}: {shown:?}");
        assert!(shown.contains("\\x1b") || keys == "\n", "{keys:?}: {shown}");
    }
}

#[test]
fn lines_are_filtered_ordered_and_added_up() {
    let names = || (0..40).map(|n| format!("job{}", n % 4).into_bytes());
    let pids = |app: &mut App| -> Vec<String> {
        let shown = picture(app, 100, 60);
        let is_of_job = |line: &&str| line.contains("job") && line.starts_with("  ");
        let lines = shown.lines().skip(11).filter(is_of_job);
        lines
            .map(|line| line.split_whitespace().next().unwrap().to_string())
            .collect()
    };
    let mut app = live(Crowd::new(names()));
    let by_time = pids(&mut app);
    assert_eq!(by_time.len(), 40);
    // The pids whose rest by 7 is 6 use most.
    assert_eq!(&by_time[..3], ["6", "13", "20"]);
    press(&mut app, "I");
    assert_eq!(&pids(&mut app)[..3], ["7", "14", "21"]);
    press(&mut app, "I/job3\n");
    assert_eq!(pids(&mut app).len(), 10);
    app.press(Key::Escape);
    press(&mut app, "p");
    assert_eq!(pids(&mut app), ["10"; 4]);
    press(&mut app, "t");
    // Process 1 is the parent of 2 and 3, and so on: it has all totals.
    assert_eq!(pids(&mut app)[0], "1");
}

#[test]
fn the_mouse_selects_orders_and_goes_to_a_moment() {
    let mut app = recorded(ASCII);
    let shown = picture(&mut app, 80, 24);
    let row = |word: &str| shown.lines().position(|line| line.contains(word)).unwrap();
    let head = u16::try_from(row("PID  User")).unwrap();
    let column = shown
        .lines()
        .nth(row("PID  User"))
        .unwrap()
        .find("RSS")
        .unwrap();
    app.mouse(Mouse::Click, u16::try_from(column).unwrap(), head);
    assert!(picture(&mut app, 80, 24).contains("by rss"));
    app.mouse(Mouse::Click, 3, head + 2);
    assert_eq!(app.screen.cursor, 1);
    let before_ns = app.at_ns();
    let (slider, ..) = app.areas.slider.unwrap();
    app.mouse(Mouse::Click, slider.x, slider.y);
    assert!(app.at_ns() < before_ns);
    app.mouse(Mouse::WheelDown, 3, head + 2);
    picture(&mut app, 80, 24);
    assert_eq!(app.screen.cursor, 2);
    assert_eq!(app.press(Key::Char('q')), Task::Quit);
}

#[test]
fn the_document_has_each_key() {
    let document = include_str!("../../../docs/top.md");
    for (keys, what) in help::KEYS.iter().flat_map(|(_, keys)| *keys) {
        let keys: Vec<String> = keys.split(' ').map(|key| format!("`{key}`")).collect();
        let row = format!("| {} | {what} |", keys.join(" "));
        assert!(document.contains(&row), "{row}");
    }
}

/// Milliseconds of the quickest, the usual and the slowest one of many runs.
fn times(runs: usize, mut run: impl FnMut(usize)) -> String {
    let mut all: Vec<f64> = (0..runs)
        .map(|at| {
            let start = std::time::Instant::now();
            run(at);
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    all.sort_by(f64::total_cmp);
    let [least, usual, most] = [all[0], all[runs / 2], all[runs - 1]];
    format!("{least:.1} to {most:.1} ms, usually {usual:.1}")
}

/// The recording in KYMO_TOP_RECORDING: steps to any sample, each with a picture of 200 by 60.
#[test]
#[ignore = "prints times"]
#[allow(clippy::print_stderr, reason = "a person reads it")]
fn steps_of_a_recording() {
    let path = std::env::var("KYMO_TOP_RECORDING").unwrap();
    let what = RecordingSource::Files(vec![path.into()]).keep(&mut |_, _| {});
    let archive = Arc::new(Archive::new(what.unwrap(), None));
    let past = Past::open(archive, &PROCESS).unwrap();
    let (from_ns, thru_ns) = (past.extent().from_ns, past.extent().thru_ns);
    let mut app = App::new(None, Some(past), ASCII, thru_ns);
    let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 60));
    let mut show = |app: &mut App| {
        buffer.reset();
        draw(app, &mut buffer);
    };
    let anywhere = |at: usize| from_ns + (thru_ns - from_ns) / 997 * ((at as i64 * 389) % 997);
    let all = times(200, |at| {
        app.go(Go::To(anywhere(at))).unwrap();
        show(&mut app);
    });
    eprintln!("to any sample: {all}");
    for (key, name) in [(Key::Left, "back"), (Key::Right, "forward")] {
        let all = times(200, |_| {
            app.press(key);
            show(&mut app);
        });
        eprintln!("a sample {name}: {all}");
    }
}

#[test]
#[ignore = "prints times"]
#[allow(clippy::print_stderr, reason = "a person reads it")]
fn pictures_of_5000_processes() {
    let names = (0..5000).map(|n| format!("/usr/bin/job{n} --of={n}").into_bytes());
    let mut app = live(Crowd::new(names));
    let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 60));
    for keys in ["", "t", "u", "p", "/job4"] {
        press(&mut app, keys);
        let all = times(50, |_| {
            buffer.reset();
            draw(&mut app, &mut buffer);
        });
        eprintln!("{keys:?}: {all}");
        press(&mut app, if keys.starts_with('/') { "\n" } else { keys });
    }
}
