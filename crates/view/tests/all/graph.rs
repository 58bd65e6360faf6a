//! Pictures of invented series: comparison with golden files (`UPDATE_GOLDEN=1` rewrites them;
//! check the result before committing it), and properties of all pictures.

use std::path::Path;

use kymo_base::context::Context;
use kymo_base::field::Unit;
use kymo_query::marks::{Kind, Mark, Origin};
use kymo_query::series::{Grid, Point, Series};
use kymo_query::sheet::{Line, Of, id};
use kymo_view::graphs::Plan;
use kymo_view::svg::{self, Curve, Graph, Picture, Shape, Style, Theme, Top};
use kymo_view::time::Zone;
use proptest::prelude::*;

const SECOND_NS: i64 = 1_000_000_000;
/// Sat Nov 21 22:50:00 2026 UTC, ten minutes before midnight in the zone of the pictures.
const BEGIN_NS: i64 = 1_795_301_400 * SECOND_NS;
const COUNT: usize = 40;

/// Values of the n-th line: triangles of different lengths, and two minutes without values.
fn point(line: usize, n: usize) -> Point {
    let mut point = Point::NONE;
    if (12..16).contains(&n) {
        return point;
    }
    let length = 7 + 2 * line;
    let height = (n % length).min(length - n % length) as f64 * 16.0 / (line + 1) as f64;
    point.add(height, 15.0);
    if n % 10 == 3 {
        point.add(height * 1.5, 15.0);
    }
    point
}

/// Series for all picks of a plan, with instances `a0` and `<b&"1'`.
fn series(plan: &Plan) -> Series {
    let grid = Grid {
        from_ns: BEGIN_NS,
        step_ns: 30 * SECOND_NS,
        count: COUNT,
    };
    let mut series = Series::new(grid, usize::MAX);
    for (n, pick) in plan.picks().iter().enumerate() {
        let instances: &[Option<&str>] = match &pick.of {
            Of::Machine => &[None],
            Of::One(name) => &[Some(&name[..])],
            Of::Each => &[Some("a0"), Some("<b&\"1'"), Some("idle")],
        };
        for instance in instances {
            let place = series.place(&Line {
                id: id(pick.subsystem, pick.column, *instance),
                unit: pick.column.unit,
                help: pick.column.help,
                pick: n,
            });
            let place = place.expect("room");
            let points = 0..COUNT;
            series.points[place] = match instance {
                Some("idle") => points.map(|_| zero()).collect(),
                _ => points.map(|n| point(place, n)).collect(),
            };
        }
    }
    series.marks = marks();
    series
}

fn zero() -> Point {
    let mut point = Point::NONE;
    point.add(0.0, 30.0);
    point
}

fn marks() -> Vec<Mark> {
    let mark = |from_s: i64, until_s: i64, kind, text: &str| Mark {
        from_ns: BEGIN_NS + from_s * SECOND_NS,
        until_ns: BEGIN_NS + until_s * SECOND_NS,
        kind,
        text: text.into(),
        origin: Origin::Machine,
    };
    vec![
        mark(360, 480, Kind::Gap, "the recorder was not running"),
        mark(480, 480, Kind::Start, "recorder starts"),
        mark(700, 700, Kind::Slow, "slow <proc/stat>: 12 ms"),
        mark(702, 702, Kind::Slow, "slow proc/stat: 11 ms"),
        mark(900, 902, Kind::Missed, "2 samples were not taken in time"),
        mark(-50, -40, Kind::Boot, "before all of it"),
    ]
}

fn context() -> Context {
    let mut context = Context::default();
    context.set("host", "web-1");
    context.set("tz", "+0100");
    context
}

#[test]
fn pictures_are_as_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graphs");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let style = |width, height, theme| Style {
        width,
        height,
        theme,
    };
    let mut stale = Vec::new();
    for (name, words, style) in [
        ("cpu", &["c"][..], Style::default()),
        ("memory-dark", &["m"], style(700, 100, Theme::Dark)),
        ("disks", &["dD"], style(900, 120, Theme::Light)),
        ("pressure-narrow", &["p"], style(300, 80, Theme::Light)),
        (
            "fields",
            &["net.rx_kb:*", "disk.wait:*", "disk.read_kb"],
            style(640, 100, Theme::Dark),
        ),
    ] {
        let plan = Plan::new(words.iter().copied()).expect(name);
        let drawn = plan.svg(&series(&plan), &context(), &style);
        check(&drawn);
        let path = folder.join(format!("{name}.svg"));
        if update {
            std::fs::write(&path, &drawn).expect("golden file");
        }
        if std::fs::read_to_string(&path).unwrap_or_default() != drawn {
            stale.push(name);
        }
    }
    assert!(
        stale.is_empty(),
        "not as they were, see UPDATE_GOLDEN=1: {stale:?}"
    );
}

/// The picture is XML with finite numbers, and all texts begin inside it.
fn check(drawn: &str) {
    let document = roxmltree::Document::parse(drawn).expect("XML");
    let root = document.root_element();
    let number = |node: roxmltree::Node, name: &str| -> f64 {
        let text = node.attribute(name).unwrap_or("0");
        let number: f64 = text.parse().expect(text);
        assert!(
            number.is_finite() && !text.contains(char::is_alphabetic),
            "{text}"
        );
        number
    };
    let (width, height) = (number(root, "width"), number(root, "height"));
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        let (x, y) = (number(node, "x"), number(node, "y"));
        let (wide, high) = (number(node, "width"), number(node, "height"));
        assert!(
            (0.0..=width).contains(&x) && (0.0..=height).contains(&y),
            "{x} {y}"
        );
        assert!(
            (0.0..=width).contains(&wide) && (0.0..=height).contains(&high),
            "{wide} {high}"
        );
        let path = node.attribute("d").unwrap_or_default();
        let known = |c: char| c.is_ascii_digit() || "Mlhz-. ".contains(c);
        assert!(path.chars().all(known), "{path}");
    }
}

fn any_point() -> impl Strategy<Value = Point> {
    (any::<f64>(), any::<f64>(), any::<f64>(), -1.0..10.0).prop_map(|(min, max, sum, seconds)| {
        Point {
            min: min.min(max),
            max: max.max(min),
            sum,
            seconds,
        }
    })
}

fn any_unit() -> impl Strategy<Value = Unit> {
    prop::sample::select(vec![
        Unit::Percent,
        Unit::KilobytesPerSecond,
        Unit::Bytes,
        Unit::Count,
        Unit::PerSecond,
        Unit::Milliseconds,
        Unit::None,
    ])
}

fn any_shape() -> impl Strategy<Value = Shape> {
    prop::sample::select(vec![
        Shape::Line,
        Shape::Filled,
        Shape::Stacked,
        Shape::Peak,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_picture_is_sound(
        points in prop::collection::vec(prop::collection::vec(any_point(), 5), 0..12),
        labels in prop::collection::vec(".*", 12),
        (host, title, note) in (".*", ".*", ".*"),
        (unit, shape, top) in (any_unit(), any_shape(), any::<f64>()),
        (fixed, dark) in (any::<bool>(), any::<bool>()),
        (width, height) in (0u32..3000, 0u32..500),
        (from_ns, step_ns) in (-4_000_000_000_000_000_000i64..4_000_000_000_000_000_000, 1i64..500_000_000_000_000_000),
        (mark_ns, long_ns, kind) in (any::<i64>(), 0i64..i64::MAX, prop::sample::select(Kind::ALL.to_vec())),
    ) {
        let curves = points.iter().zip(&labels).enumerate().map(|(n, (points, label))| Curve {
            label: label.clone(),
            hue: n + 1,
            shape,
            points,
        });
        let graph = Graph {
            title,
            unit,
            top: if fixed { Top::Fixed(top) } else { Top::Least(top) },
            curves: curves.collect(),
            note,
        };
        let marks = [Mark { from_ns: mark_ns, until_ns: mark_ns.saturating_add(long_ns), kind, text: host.clone(), origin: Origin::Machine }];
        let picture = Picture {
            host: &host,
            grid: Grid { from_ns, step_ns, count: 5 },
            marks: &marks,
            graphs: vec![graph.clone(), graph],
        };
        let theme = if dark { Theme::Dark } else { Theme::Light };
        let mut out = String::new();
        svg::draw(&picture, &mut Zone::of(&context()), &Style { width, height, theme }, &mut out);
        check(&out);
    }
}
