//! `E`: temperatures, fans, voltages, power and clocks, from what the kernel's hwmon, thermal, powercap and cpufreq say
//! in /sys. Nothing is run and no device is needed.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::template::{Piece, Template};

use super::exposed::Exposed;
use super::{
    Lines, Place, Plot, Shape, Subsystem, Summary, Text, Unused, at, field, number, plot, text,
    value,
};
use crate::layout::{Cell, Label, Layout, RowLayout, Word};
use crate::source::kind;

// Labels of a row.
const CHIP: usize = 0;
const LABEL: usize = 1;

const fn level(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Gauge, Unit::None, help)
}

/// A sensor has one of them.
const FIELDS: &[Field] = &[
    level("temp", "Temperature in 0.001 °C"),
    level("fan", "Fan speed in revolutions a minute"),
    level("in", "Voltage in mV"),
    level("curr", "Current in mA"),
    level("power", "Power in µW"),
    level("humidity", "Relative humidity in 0.001 %"),
    level("frequency", "Clock of CPUs in kHz"),
    field("energy", Rule::Counter64, Unit::None, "Energy used in µJ"),
];

const POWER: usize = at(FIELDS, "power");
const ENERGY: usize = at(FIELDS, "energy");

const fn amount(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    value: fn(&Cells) -> f64,
) -> Column {
    number(name, unit, help, value)
}

const DETAIL: &[Column] = &[
    text("sensor", "FOLDER/SENSOR", |c, out| {
        out.extend_from_slice(c.name)
    }),
    text("chip", "Name of the chip, zone or driver", |c, out| {
        out.extend_from_slice(&c.labels[CHIP])
    }),
    text(
        "label",
        "What is measured, as the driver calls it",
        put_label,
    ),
    amount("celsius", Unit::None, "Temperature in °C", |c| {
        c.now[at(FIELDS, "temp")] / 1e3
    }),
    amount(
        "rpm",
        Unit::None,
        "Fan speed in revolutions a minute",
        |c| c.now[at(FIELDS, "fan")],
    ),
    amount("volts", Unit::None, "Voltage", |c| {
        c.now[at(FIELDS, "in")] / 1e3
    }),
    amount("amperes", Unit::None, "Current", |c| {
        c.now[at(FIELDS, "curr")] / 1e3
    }),
    amount(
        "watts",
        Unit::None,
        "Power, or energy used a second",
        |c| match c.now[POWER].is_nan() {
            true => c.delta[ENERGY] / c.elapsed / 1e6,
            false => c.now[POWER] / 1e6,
        },
    ),
    amount("humidity", Unit::Percent, "Relative humidity", |c| {
        c.now[at(FIELDS, "humidity")] / 1e3
    }),
    amount("mhz", Unit::None, "Clock of CPUs in MHz", |c| {
        c.now[at(FIELDS, "frequency")] / 1e3
    }),
];

/// The driver's word, else the sensor's name.
fn put_label(cells: &Cells, out: &mut Vec<u8>) {
    let name = cells.name.rsplit(|&b| b == b'/').next().unwrap_or_default();
    match &cells.labels[LABEL][..] {
        b"" => out.extend_from_slice(name),
        label => out.extend_from_slice(label),
    }
}

const PLOT_DETAIL: &[Place] = &[
    plot("Temp", "celsius"),
    plot("Fan", "rpm"),
    plot("Volts", "volts"),
    plot("Amps", "amperes"),
    plot("Watts", "watts"),
    plot("MHz", "mhz"),
];

/// Sensors.
pub static SENSORS: Subsystem = Subsystem {
    letter: 'e',
    name: "sensors",
    help: "Temperatures, fans, voltages, power and clocks",
    sources: &[kind::HWMON, kind::THERMAL, kind::POWERCAP, kind::CPUFREQ],
    beside: None,
    spread: false,
    globals: &[],
    fields: FIELDS,
    labels: &["chip", "label"],
    layout,
    summary: Summary::None,
    in_service: false,
    columns: &[],
    detail: DETAIL,
    born: None,
    unused: Unused::Shown,
    text: Text {
        brief: Lines::NONE,
        verbose: Lines::NONE,
        detail: Lines {
            title: "ENVIRONMENTAL STATISTICS",
            heads: &[
                "Chip            Sensor                     °C    RPM   Volt    Amp   Watt  Humid%    MHz",
            ],
            row: "{chip:-15s15} {label:-22s22} {celsius:6.1} {rpm:6d} {volts:6.2} {amperes:6.2} {watts:6.2}  {humidity:6.1} {mhz:6d}",
        },
    },
    plot: Plot {
        tag: "ENV",
        order: 14,
        file: "env",
        summary: &[],
        detail: PLOT_DETAIL,
        shape: Shape::Wide,
    },
    exposed: Exposed::NONE,
};

/// A sensor under way: its name, its label and its number.
#[derive(Default)]
struct Sensor {
    name: Vec<u8>,
    label: Vec<u8>,
    cell: Option<Cell>,
}

fn layout(kind: u8, template: &Template, _: &Context) -> Layout {
    let (mut chip, mut sensors) = (Vec::new(), Vec::<Sensor>::new());
    for line in template.lines() {
        let Some((Piece::Text(file), said)) = line.split_first() else {
            continue;
        };
        if matches!(*file, b"name" | b"type") {
            chip = words(said);
            continue;
        }
        let Some((name, quantity, part)) = parts(kind, file) else {
            continue;
        };
        let at = sensors.iter().position(|sensor| sensor.name == name);
        let at = at.unwrap_or_else(|| {
            sensors.push(Sensor {
                name: name.to_vec(),
                ..Sensor::default()
            });
            sensors.len() - 1
        });
        if part == b"label" {
            sensors[at].label = words(said);
            continue;
        }
        let field = FIELDS.iter().position(|f| f.name.as_bytes() == quantity);
        if let (Some(field), Some(from)) = (field, said.first().and_then(value)) {
            // `power1_average` stands before `power1_input`: what is there first counts.
            sensors[at].cell.get_or_insert(Cell { field, from });
        }
    }
    if chip.is_empty() && kind == kind::CPUFREQ {
        chip = b"cpufreq".to_vec();
    }
    let row = |sensor: Sensor| {
        let fixed = |label, text: Vec<u8>| Label {
            label,
            word: Word::Fixed(text),
        };
        Some(RowLayout {
            name: sensor.name,
            cells: vec![sensor.cell?],
            labels: vec![fixed(CHIP, chip.clone()), fixed(LABEL, sensor.label)],
            ..RowLayout::default()
        })
    };
    Layout {
        rows: sensors.into_iter().filter_map(row).collect(),
        ..Layout::default()
    }
}

/// Of a file's name: the sensor, what it measures, and `input` or `label`: `temp1`, `temp`, `input` of `temp1_input`.
fn parts(kind: u8, file: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    match (kind, file) {
        (kind::THERMAL, b"temp") => Some((b"thermal", b"temp", b"input")),
        (kind::POWERCAP, b"energy_uj") => Some((b"energy", b"energy", b"input")),
        (kind::CPUFREQ, b"scaling_cur_freq") => Some((b"frequency", b"frequency", b"input")),
        (kind::HWMON, _) => {
            let end = file.iter().position(|&b| b == b'_')?;
            let (name, part) = (&file[..end], &file[end + 1..]);
            let digits = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
            Some((name, &name[..name.len() - digits], part))
        }
        _ => None,
    }
}

fn words(said: &[Piece]) -> Vec<u8> {
    let words = said.iter().filter_map(|piece| match piece {
        Piece::Text(text) => Some(*text),
        Piece::Slot(_) => None,
    });
    words.collect::<Vec<_>>().join(&b' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpret::Interpreter;
    use crate::source;
    use kymo_base::reading::Reading;
    use kymo_base::track::Tracks;

    #[test]
    fn a_chip_has_several_sensors() {
        let mut tracks = Tracks::default();
        for (kind, name, text) in [
            (
                kind::HWMON,
                "0",
                "name coretemp\ntemp1_label Package id 0\ntemp2_label Core 0\ntemp1_input 45000\ntemp2_input -1500\nfan1_input 1200\npower1_average 35500000\npower1_input 99\n",
            ),
            (kind::THERMAL, "0", "type x86_pkg_temp\ntemp 46000\n"),
            (
                kind::POWERCAP,
                "intel-rapl:0",
                "name package-0\nenergy_uj 262143328850\n",
            ),
            (
                kind::CPUFREQ,
                "0",
                "scaling_cur_freq 2100000\nscaling_max_freq 3000000\n",
            ),
        ] {
            let grammar = source::of(kind).expect("a known kind").grammar;
            tracks
                .get_mut(kind)
                .put_text(0, name.as_bytes(), text.as_bytes(), grammar);
        }
        let mut reading = Reading::default();
        assert!(Interpreter::new(&SENSORS).read(&tracks, &Context::default(), &mut reading));
        let rows: Vec<_> = reading
            .rows
            .iter()
            .map(|row| {
                let (name, label) = (
                    String::from_utf8_lossy(&row.name),
                    String::from_utf8_lossy(&row.labels[LABEL]),
                );
                let there = row
                    .values
                    .iter()
                    .position(|&v| v != kymo_base::reading::MISSING)
                    .expect("a number");
                format!(
                    "{name} {label} {} {}",
                    FIELDS[there].name, row.values[there] as i64
                )
            })
            .collect();
        assert_eq!(
            rows,
            [
                "0/temp1 Package id 0 temp 45000",
                "0/temp2 Core 0 temp -1500",
                "0/fan1  fan 1200",
                "0/power1  power 35500000",
                "0/thermal  temp 46000",
                "intel-rapl:0/energy  energy 262143328850",
                "0/frequency  frequency 2100000",
            ]
        );
        assert_eq!(reading.rows[0].labels[CHIP], b"coretemp");
    }
}
