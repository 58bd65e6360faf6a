//! Assigns curves to graphs: the standard ones of [`crate::standard`], and fields that are requested by their ids.
//! [`crate::svg`] draws the graphs.

use kymo_base::context::Context;
use kymo_base::field::Unit;
use kymo_query::series::{Point, Series};
use kymo_query::sheet::{Line, Of, Pick};
use kymo_query::stored::MARK;

use crate::standard::{STANDARD, Topmost, When};
use crate::svg::{self, Curve, Graph, Picture, Shape, Style, Top};
use crate::time::Zone;

/// Letters of the graphs drawn by default.
pub const DEFAULT_LETTERS: &str = "cpmdn";

/// Most curves in a graph, because more are hard to distinguish; the largest ones are drawn.
const CURVES_MAX: usize = 24;

/// Most lines that are read for a picture.
pub const LINES_MAX: usize = 1000;

/// The letters with standard graphs, as `c C p P`.
pub fn letters() -> String {
    let letters = STANDARD.iter().filter_map(|standard| standard.letter);
    let mut letters: Vec<char> = letters.collect();
    letters.dedup();
    let letters: Vec<String> = letters.into_iter().map(String::from).collect();
    letters.join(" ")
}

/// The graphs to draw, and the fields that they need.
#[derive(Clone, Default)]
pub struct Plan {
    picks: Vec<Pick>,
    graphs: Vec<Planned>,
}

#[derive(Clone)]
struct Planned {
    title: String,
    unit: Unit,
    top: AxisEnd,
    layers: Vec<Layered>,
    when: When,
    standard: bool,
}

/// End of a vertical axis: fixed, or the largest value of a pick.
#[derive(Clone, Copy)]
enum AxisEnd {
    Top(Top),
    Of(usize),
}

/// Label of a curve.
#[derive(Clone, Copy)]
enum Label {
    /// This word, preceded by an instance's name.
    Word(&'static str),
    /// The instance's name; for the machine the column's name.
    Instance,
    /// The column's name and the instance's name.
    Column,
    /// The field's id.
    Id,
    /// Name and column of a stored series without the parts that its graph's series share: bytes to drop at both ends.
    Part(usize, usize),
}

#[derive(Clone)]
struct Layered {
    pick: usize,
    label: Label,
    hue: usize,
    shape: Shape,
}

impl Plan {
    /// Plans graphs from words. A word with a dot is the id of a field; fields of one unit share a graph. The letters of any
    /// other word are subsystems with their standard graphs.
    pub fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Plan, String> {
        let mut plan = Plan::default();
        let mut fields = Vec::new();
        for word in words.into_iter().filter(|word| !word.is_empty()) {
            match word.contains('.') {
                true => fields.push(Pick::parse(word)?),
                false => word.chars().try_for_each(|letter| plan.standard(letter))?,
            }
        }
        plan.fields(fields);
        match plan.graphs.is_empty() {
            true => Err("cannot draw nothing: no letters and no fields".into()),
            false => Ok(plan),
        }
    }

    /// Adds graphs for stored series, one per unit.
    pub fn stored(&mut self, lines: &[Line]) {
        let mut groups: Vec<(Unit, Vec<&Line>)> = Vec::new();
        for line in lines {
            match groups.iter_mut().find(|(unit, _)| *unit == line.unit) {
                Some((_, group)) => group.push(line),
                None => groups.push((line.unit, vec![line])),
            }
        }
        for (unit, group) in groups {
            let texts = group.iter().map(|line| stored_text(&line.id));
            let texts: Vec<String> = texts.collect();
            let (before, behind) = common(&texts);
            let first = &texts[0];
            let title = match (texts.len(), before + behind) {
                (1, _) => first.clone(),
                (_, 0) => "Stored series".into(),
                _ => format!("{}*{}", &first[..before], &first[first.len() - behind..]),
            };
            let label = match texts.len() {
                1 => Label::Part(first.rfind('/').map_or(0, |at| at + 1), 0),
                _ => Label::Part(before, behind),
            };
            let layers = group.iter().enumerate().map(|(n, line)| Layered {
                pick: line.pick,
                label,
                hue: n + 1,
                shape: Shape::Line,
            });
            self.graphs.push(Planned {
                title,
                unit,
                top: AxisEnd::Top(Top::Least(0.0)),
                layers: layers.collect(),
                when: When::Always,
                standard: false,
            });
        }
    }

    /// The fields that the graphs need.
    pub fn picks(&self) -> &[Pick] {
        &self.picks
    }

    /// Adds the standard graphs of a letter, unless they are there already.
    fn standard(&mut self, letter: char) -> Result<(), String> {
        let mut known = false;
        for standard in STANDARD.iter().filter(|each| each.letter == Some(letter)) {
            known = true;
            if self
                .graphs
                .iter()
                .any(|graph| graph.title == standard.title)
            {
                continue;
            }
            let layers = standard.layers.iter().map(|layer| {
                Ok(Layered {
                    pick: self.pick(Pick::parse(layer.field)?),
                    label: Label::Word(layer.label),
                    hue: layer.hue,
                    shape: layer.shape,
                })
            });
            let layers = layers.collect::<Result<Vec<_>, String>>()?;
            let top = match standard.top {
                Topmost::At(top) => AxisEnd::Top(Top::Fixed(top)),
                Topmost::Least(least) => AxisEnd::Top(Top::Least(least)),
                Topmost::Of(field) => AxisEnd::Of(self.pick(Pick::parse(field)?)),
            };
            self.graphs.push(Planned {
                title: standard.title.into(),
                unit: layers
                    .first()
                    .map_or(Unit::None, |layer| self.picks[layer.pick].column.unit),
                top,
                layers,
                when: standard.when,
                standard: true,
            });
        }
        match known {
            true => Ok(()),
            false => Err(format!(
                "cannot draw {}: no such graphs; there are {} and ids of fields",
                letter.escape_debug(),
                letters()
            )),
        }
    }

    /// Adds graphs of fields, one per unit.
    fn fields(&mut self, fields: Vec<Pick>) {
        let mut groups: Vec<(Unit, Vec<Pick>)> = Vec::new();
        let mut known = Vec::new();
        for field in fields {
            let unit = field.column.unit;
            let number = self.pick(field.clone());
            if known.contains(&number) {
                continue;
            }
            known.push(number);
            match groups.iter_mut().find(|(known, _)| *known == unit) {
                Some((_, group)) => group.push(field),
                None => groups.push((unit, vec![field])),
            }
        }
        for (unit, group) in groups {
            let title = title(&group);
            let label = match (&group[..], subsystems(&group).len()) {
                ([_], _) => Label::Instance,
                (_, 1) => Label::Column,
                _ => Label::Id,
            };
            let layers = group.into_iter().enumerate().map(|(n, pick)| Layered {
                label,
                pick: self.pick(pick),
                hue: n + 1,
                shape: Shape::Line,
            });
            let layers = layers.collect();
            let least = if unit == Unit::Percent { 1.0 } else { 0.0 };
            self.graphs.push(Planned {
                title,
                unit,
                top: AxisEnd::Top(Top::Least(least)),
                layers,
                when: When::Always,
                standard: false,
            });
        }
    }

    /// The index of a pick. A pick that several graphs draw is read once.
    fn pick(&mut self, pick: Pick) -> usize {
        let known = self.picks.iter().position(|known| {
            known.subsystem.name == pick.subsystem.name
                && known.column.name == pick.column.name
                && known.of == pick.of
        });
        known.unwrap_or_else(|| {
            self.picks.push(pick);
            self.picks.len() - 1
        })
    }

    /// The graphs of a series read for [`Plan::picks`].
    pub fn graphs<'a>(&self, series: &'a Series) -> Vec<Graph<'a>> {
        let drawn = |planned: &Planned| {
            let graph = graph(planned, series);
            let something = graph.curves.iter().any(|curve| largest(curve.points) > 0.0);
            (planned.when == When::Always || something).then_some(graph)
        };
        self.graphs.iter().filter_map(drawn).collect()
    }

    /// A picture of a series read for [`Plan::picks`], as SVG.
    pub fn svg(&self, series: &Series, context: &Context, style: &Style) -> String {
        let picture = Picture {
            host: context.get("host").unwrap_or("?"),
            grid: series.grid,
            marks: &series.marks,
            graphs: self.graphs(series),
        };
        let mut out = String::new();
        svg::draw(&picture, &mut Zone::of(context), style, &mut out);
        out
    }
}

/// A stored field's id for people: `web1/load/load shortterm`. The column `value` is left out.
fn stored_text(id: &str) -> String {
    let text = id.strip_prefix(MARK).unwrap_or(id);
    let (name, column) = text.rsplit_once(':').unwrap_or((text, "value"));
    let name = name.strip_suffix(".rrd").unwrap_or(name);
    match column {
        "value" => name.to_string(),
        column => format!("{name} {column}"),
    }
}

/// Lengths of the common prefix and suffix of all texts, in bytes. Both end at slashes, dashes and blanks.
fn common(texts: &[String]) -> (usize, usize) {
    let is_cut = |byte: u8| b"/- ".contains(&byte);
    let Some((first, others)) = texts.split_first() else {
        return (0, 0);
    };
    let same = |a: &mut dyn Iterator<Item = u8>, b: &mut dyn Iterator<Item = u8>| {
        a.zip(b).take_while(|(a, b)| a == b).count()
    };
    let before = others
        .iter()
        .map(|other| same(&mut first.bytes(), &mut other.bytes()));
    let before = before.min().unwrap_or(0);
    let before = first.as_bytes()[..before]
        .iter()
        .rposition(|&byte| is_cut(byte));
    let before = before.map_or(0, |at| at + 1);
    let behind = others
        .iter()
        .map(|other| same(&mut first.bytes().rev(), &mut other.bytes().rev()));
    let shortest = texts.iter().map(|text| text.len() - before).min();
    let behind = behind.chain(shortest).min().unwrap_or(0);
    let from = first.len() - behind;
    let behind = first.as_bytes()[from..]
        .iter()
        .position(|&byte| is_cut(byte));
    (before, behind.map_or(0, |at| first.len() - from - at))
}

fn subsystems(group: &[Pick]) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for pick in group {
        if !names.contains(&pick.subsystem.name) {
            names.push(pick.subsystem.name);
        }
    }
    names
}

/// The id and meaning of a single field, or the names of the subsystems.
fn title(group: &[Pick]) -> String {
    match group {
        [pick] => {
            let id = format!("{}.{}", pick.subsystem.name, pick.column.name);
            let help = pick.column.help;
            match &pick.of {
                Of::One(name) => format!("{id}:{name} – {help}"),
                _ => format!("{id} – {help}"),
            }
        }
        _ => subsystems(group).join(" + "),
    }
}

fn graph<'a>(planned: &Planned, series: &'a Series) -> Graph<'a> {
    let mut curves = Vec::new();
    let mut split = false;
    for layer in &planned.layers {
        for (line, points) in series.lines.iter().zip(&series.points) {
            if line.pick != layer.pick {
                continue;
            }
            split |= line.id.contains(':');
            curves.push(Curve {
                label: label(layer.label, &line.id),
                hue: layer.hue,
                shape: layer.shape,
                points,
            });
        }
    }
    // Standard graphs drop curves without data, such as counters that this kernel lacks. Requested fields stay.
    let known = |curve: &Curve| curve.points.iter().any(|point| point.seconds > 0.0);
    if planned.standard && curves.iter().any(known) {
        curves.retain(known);
    }
    let note = match split {
        true => leave_out(&mut curves),
        false => String::new(),
    };
    Graph {
        title: planned.title.clone(),
        unit: planned.unit,
        top: top(planned.top, series),
        curves,
        note,
    }
}

fn label(label: Label, id: &str) -> String {
    if let Label::Part(before, behind) = label {
        let text = stored_text(id);
        let part = text.get(before..text.len().saturating_sub(behind));
        return match part {
            Some("") | None => text,
            Some(part) => part.to_string(),
        };
    }
    let column = id.split_once('.').map_or(id, |(_, column)| column);
    let (name, instance) = column.split_once(':').unwrap_or((column, ""));
    match label {
        Label::Word(word) if instance.is_empty() || word.is_empty() => format!("{instance}{word}"),
        Label::Word(word) => format!("{instance} {word}"),
        Label::Instance if instance.is_empty() => name.to_string(),
        Label::Instance => instance.to_string(),
        Label::Column => column.to_string(),
        Label::Id | Label::Part(..) => id.to_string(),
    }
}

fn top(wanted: AxisEnd, series: &Series) -> Top {
    match wanted {
        AxisEnd::Top(top) => top,
        AxisEnd::Of(pick) => {
            let lines = series.lines.iter().zip(&series.points);
            let of = lines.filter(|(line, _)| line.pick == pick);
            Top::Fixed(of.map(|(_, points)| largest(points)).fold(0.0, f64::max))
        }
    }
}

fn largest(points: &[Point]) -> f64 {
    points.iter().map(|point| point.max).fold(0.0, f64::max)
}

/// Removes instances that are always 0, and the smallest ones if there are too many; renumbers the colours. Returns a note
/// about the removed ones.
fn leave_out(curves: &mut Vec<Curve>) -> String {
    let idle = |curve: &Curve| largest(curve.points) <= 0.0;
    let mut notes = Vec::new();
    let busy = curves.iter().filter(|curve| !idle(curve)).count();
    if busy > 0 && busy < curves.len() {
        let names = curves.iter().filter(|curve| idle(curve));
        let names: Vec<&str> = names.map(|curve| &curve.label[..]).collect();
        notes.push(format!("always 0: {}", names.join(", ")));
        curves.retain(|curve| !idle(curve));
    }
    notes.extend(leave_out_small(curves));
    notes.join("; ")
}

/// Removes the smallest curves if there are too many; renumbers the colours. Returns a note about the removed ones.
pub fn leave_out_small(curves: &mut Vec<Curve>) -> Option<String> {
    let small = curves.len().saturating_sub(CURVES_MAX);
    if small > 0 {
        let mut sizes: Vec<f64> = curves.iter().map(size).collect();
        sizes.sort_by(|a, b| b.total_cmp(a));
        let least = sizes.get(CURVES_MAX - 1).copied().unwrap_or(0.0);
        curves.retain(|curve| size(curve) >= least);
        curves.truncate(CURVES_MAX);
    }
    for (n, curve) in curves.iter_mut().enumerate() {
        curve.hue = n + 1;
    }
    (small > 0).then(|| format!("{small} smaller ones left out"))
}

/// The mean over the whole time; 0 without any data.
fn size(curve: &Curve) -> f64 {
    let mut all = Point::NONE;
    curve.points.iter().for_each(|point| all.merge(point));
    if all.seconds > 0.0 { all.mean() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        for standard in STANDARD {
            let mut units = Vec::new();
            for layer in standard.layers {
                let pick = Pick::parse(layer.field).expect(layer.field);
                units.push(pick.column.unit);
                assert_eq!(
                    layer.hue == 0,
                    layer.shape == Shape::Peak,
                    "{}",
                    layer.field
                );
            }
            assert!(
                units.iter().all(|unit| *unit == units[0]),
                "{}",
                standard.title
            );
        }
        assert!(Plan::new([DEFAULT_LETTERS, "CDNP"]).is_ok());
    }

    #[test]
    fn curves_have_short_names() {
        for (of, id, expect) in [
            (Label::Word("read"), "disk.read_kb", "read"),
            (Label::Word("read"), "disk.read_kb:sda", "sda read"),
            (Label::Word(""), "disk.read_kb:sda", "sda"),
            (Label::Instance, "disk.read_kb", "read_kb"),
            (Label::Instance, "net.rx_kb:eth0:1", "eth0:1"),
            (Label::Column, "net.rx_kb:eth0.7", "rx_kb:eth0.7"),
            (Label::Id, "net.rx_kb:eth0", "net.rx_kb:eth0"),
        ] {
            assert_eq!(label(of, id), expect);
        }
    }

    #[test]
    fn stored_series_share_a_graph_by_unit() {
        for (ids, title, labels) in [
            (
                &["@a/load/load.rrd:shortterm"][..],
                "a/load/load shortterm",
                "load shortterm",
            ),
            (&["@a/df-root/df.rrd:value"], "a/df-root/df", "df"),
            (
                &["@a/cpu-0/cpu-idle.rrd:value", "@a/cpu-0/cpu-user.rrd:value"],
                "a/cpu-0/cpu-*",
                "idle|user",
            ),
            (
                &[
                    "@web1/load/load.rrd:shortterm",
                    "@web2/load/load.rrd:shortterm",
                ],
                "*/load/load shortterm",
                "web1|web2",
            ),
            (&["@a.rrd:x", "@a.rrd:x"], "a *", "x|x"),
            (&["@a.rrd:value", "@b/a.rrd:x"], "Stored series", "a|b/a x"),
            (
                &["@\u{e4}/x.rrd:value", "@\u{e5}/x.rrd:value"],
                "*/x",
                "\u{e4}|\u{e5}",
            ),
        ] {
            let line = |(pick, id): (usize, &&str)| Line {
                id: id.to_string(),
                unit: Unit::None,
                help: "",
                pick,
            };
            let lines: Vec<Line> = ids.iter().enumerate().map(line).collect();
            let mut plan = Plan::default();
            plan.stored(&lines);
            let [graph] = &plan.graphs[..] else {
                panic!("one graph");
            };
            let layers = graph.layers.iter().zip(&lines);
            let found: Vec<String> = layers
                .map(|(layer, line)| label(layer.label, &line.id))
                .collect();
            assert_eq!((&*graph.title, &*found.join("|")), (title, labels));
        }
    }

    #[test]
    fn letters_and_fields() {
        for (words, expect) in [
            (&["c"][..], Ok("CPU|Load")),
            (&["cc", "c"], Ok("CPU|Load")),
            (&["dn"], Ok("Disks|Disk requests|Network|Packets")),
            (&["cpu.user"], Ok("cpu.user – User mode, guests included")),
            (&["cpu.user", "cpu.sys", "disk.util:*"], Ok("cpu + disk")),
            (
                &["disk.kb:sda"],
                Err("cannot find field \"disk.kb:sda\": no such column"),
            ),
            (
                &["disk.read_kb:sda", "disk.util:sda"],
                Ok("disk.read_kb:sda – Read|disk.util:sda – Time with requests under way"),
            ),
            (&["c", "net.rx_kb"], Ok("CPU|Load|net.rx_kb – Received")),
            (
                &["q"],
                Err(
                    "cannot draw q: no such graphs; there are c C p P m d D n N t s i and ids of fields",
                ),
            ),
            (
                &["Z"],
                Err(
                    "cannot draw Z: no such graphs; there are c C p P m d D n N t s i and ids of fields",
                ),
            ),
            (
                &["cpu.nothing"],
                Err("cannot find field \"cpu.nothing\": no such column"),
            ),
            (&[""], Err("cannot draw nothing: no letters and no fields")),
        ] {
            let got = Plan::new(words.iter().copied()).map(|plan| {
                let titles: Vec<String> = plan
                    .graphs
                    .iter()
                    .map(|graph| graph.title.clone())
                    .collect();
                titles.join("|")
            });
            let expect = expect.map(str::to_string).map_err(str::to_string);
            assert_eq!(got, expect, "{words:?}");
        }
    }
}
