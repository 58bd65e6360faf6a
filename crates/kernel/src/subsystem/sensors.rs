//! `E`: temperatures, fans, voltages, power and clocks, from the kernel's hwmon, thermal, powercap and cpufreq in /sys. No
//! program is run, and no device file is needed.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::reading::Row;
use kymo_base::template::{Piece, Template};

use super::exposed::{self, Each, Exposed, Family, Scale, text_of};
use super::{
    Lines, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, at, field, number, plot,
    text, value,
};
use crate::layout::{Cell, Label, Layout, RowLayout, Word};
use crate::source::kind;

// Labels of a row.
const CHIP: usize = 0;
const LABEL: usize = 1;
const DEVICE: usize = 2;
const SENSOR: usize = 3;

const fn level(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Gauge, Unit::None, help)
}

/// Fields of a sensor, which has one of them, or several of power and frequency.
const FIELDS: &[Field] = &[
    level("temp", "Temperature in 0.001 °C"),
    level("fan", "Fan speed in revolutions a minute"),
    level("in", "Voltage in mV"),
    level("curr", "Current in mA"),
    level("power_average", "Power over a while in µW"),
    level("power", "Power in µW"),
    level("humidity", "Relative humidity in 0.001 %"),
    level("frequency", "Clock of CPUs in kHz"),
    level(
        "frequency_min",
        "Least clock of CPUs that is allowed, in kHz",
    ),
    level(
        "frequency_max",
        "Highest clock of CPUs that is allowed, in kHz",
    ),
    field("energy", Rule::Counter64, Unit::None, "Energy used in µJ"),
];

const AVERAGE: usize = at(FIELDS, "power_average");
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
    text(
        "sensor",
        "DEVICE/LABEL, which stay the same over boots; of a chip without a device NUMBER/SENSOR",
        |c, out| out.extend_from_slice(c.name),
    ),
    text("chip", "Name of the chip, zone or driver", |c, out| {
        out.extend_from_slice(&c.labels[CHIP])
    }),
    text(
        "device",
        "The chip's device, behind the chip's name if the device's does not begin with that; else the number behind the chip's name",
        |c, out| match &c.labels[DEVICE][..] {
            // Several zones can have the same type, and all CPUs have the same driver.
            b"" => put_device(&c.labels[CHIP], folder_and_sensor(c.name).0, out),
            device => put_device(&c.labels[CHIP], device, out),
        },
    ),
    text(
        "label",
        "What is measured, as the driver calls it",
        put_label,
    ),
    amount("celsius", Unit::Celsius, "Temperature in °C", |c| {
        c.now[at(FIELDS, "temp")] / 1e3
    }),
    amount(
        "rpm",
        Unit::Revolutions,
        "Fan speed in revolutions a minute",
        |c| c.now[at(FIELDS, "fan")],
    ),
    amount("volts", Unit::Volts, "Voltage", |c| {
        c.now[at(FIELDS, "in")] / 1e3
    }),
    amount("amperes", Unit::Amperes, "Current", |c| {
        c.now[at(FIELDS, "curr")] / 1e3
    }),
    amount(
        "watts",
        Unit::Watts,
        "Power, or energy used a second",
        |c| match (c.now[AVERAGE].is_nan(), c.now[POWER].is_nan()) {
            (false, _) => c.now[AVERAGE] / 1e6,
            (_, false) => c.now[POWER] / 1e6,
            _ => c.delta[ENERGY] / c.elapsed / 1e6,
        },
    ),
    amount("humidity", Unit::Percent, "Relative humidity", |c| {
        c.now[at(FIELDS, "humidity")] / 1e3
    }),
    amount("mhz", Unit::Megahertz, "Clock of CPUs in MHz", |c| {
        c.now[at(FIELDS, "frequency")] / 1e3
    }),
];

/// The driver's label, else the sensor's name.
fn put_label(cells: &Cells, out: &mut Vec<u8>) {
    match &cells.labels[LABEL][..] {
        b"" => out.extend_from_slice(&cells.labels[SENSOR]),
        label => out.extend_from_slice(label),
    }
}

/// Appends a name such as `coretemp.0` or `k10temp@0000:00:18.3`: the driver's name shows the kind of device, the device's
/// name which one of several it is. The number of a hwmon folder changes with each boot.
fn put_device(chip: &[u8], device: &[u8], out: &mut Vec<u8>) {
    let device = device.rsplit(|&b| b == b'/').next().unwrap_or_default();
    if !device.starts_with(chip) || device.is_empty() {
        out.extend_from_slice(chip);
        if !device.is_empty() {
            out.push(b'@');
        }
    }
    out.extend_from_slice(device);
}

/// Text as a part of a name: blanks and `/` become `_`.
fn part_of_name(text: &[u8]) -> Vec<u8> {
    let plain = |&b: &u8| match b {
        b' ' | b'/' => b'_',
        b => b,
    };
    text.iter().map(plain).collect()
}

const PLOT_DETAIL: &[PlotColumn] = &[
    plot("Temp", "celsius"),
    plot("Fan", "rpm"),
    plot("Volts", "volts"),
    plot("Amps", "amperes"),
    plot("Watts", "watts"),
    plot("MHz", "mhz"),
];

const CHIP_LABEL: exposed::MetricLabel = exposed::MetricLabel {
    name: "chip",
    may_lack: false,
    put: put_chip,
};
const SENSOR_LABEL: exposed::MetricLabel = exposed::MetricLabel {
    name: "sensor",
    may_lack: false,
    put: |row, out| out.extend_from_slice(text_of(row, SENSOR)),
};
const ZONE_LABELS: &[exposed::MetricLabel] = &[
    exposed::MetricLabel {
        name: "index",
        may_lack: false,
        put: put_index,
    },
    exposed::MetricLabel {
        name: "path",
        may_lack: false,
        put: |row, out| {
            out.extend_from_slice(b"/sys/class/powercap/");
            out.extend_from_slice(folder_and_sensor(&row.name).0);
        },
    },
];

/// A metric of a sensor in its base unit.
const fn level_of(name: &'static str, help: &'static str, field: &str, scale: Scale) -> Family {
    exposed::gauge(name, at(FIELDS, field))
        .scaled(scale)
        .meant(help)
}

const fn joules(name: &'static str) -> Family {
    exposed::counter(name, ENERGY)
        .scaled(Scale::Over(1e6))
        .meant("Energy used")
}

/// Metrics of the energy zones of Intel's and AMD's processors.
macro_rules! zones {
    ($($zone:literal)*) => {
        const ZONES: &[&[u8]] = &[$($zone.as_bytes()),*];
        const EXPOSED: Exposed = Exposed::each(&[
            HWMON,
            CHIPS,
            LABELS,
            THERMAL,
            CPUFREQ,
            OTHER_ZONES,
            $(Each {
                labels: ZONE_LABELS,
                shows: |row| is_zone(row) && zone_name(row) == $zone.as_bytes(),
                families: &[joules(concat!("node_rapl_", $zone, "_joules_total"))],
            }),*
        ]);
    };
}

zones! { "package" "core" "uncore" "dram" "psys" }

const HWMON: Each = Each {
    labels: &[CHIP_LABEL, SENSOR_LABEL],
    shows: is_of_chip,
    families: &[
        level_of(
            "node_hwmon_temp_celsius",
            "Temperature",
            "temp",
            Scale::Times(0.001),
        ),
        level_of(
            "node_hwmon_fan_rpm",
            "Revolutions a minute",
            "fan",
            Scale::Raw,
        ),
        level_of("node_hwmon_in_volts", "Voltage", "in", Scale::Times(0.001)),
        level_of(
            "node_hwmon_curr_amps",
            "Current",
            "curr",
            Scale::Times(0.001),
        ),
        level_of(
            "node_hwmon_power_average_watt",
            "Power over a while",
            "power_average",
            Scale::Over(1e6),
        ),
        level_of("node_hwmon_power_watt", "Power", "power", Scale::Over(1e6)),
        level_of(
            "node_hwmon_humidity",
            "Relative humidity, in 1000 %",
            "humidity",
            Scale::Over(1e6),
        ),
        joules("node_hwmon_energy_joule_total"),
    ],
};

const CHIPS: Each = Each {
    labels: &[
        CHIP_LABEL,
        exposed::MetricLabel {
            name: "chip_name",
            may_lack: false,
            put: |row, out| put_clean(text_of(row, CHIP), out),
        },
    ],
    shows: |row| is_of_chip(row) && !text_of(row, CHIP).is_empty(),
    families: &[exposed::known(
        "node_hwmon_chip_names",
        "Always 1; what the driver calls the chip",
    )],
};

const LABELS: Each = Each {
    labels: &[
        CHIP_LABEL,
        exposed::MetricLabel::text::<LABEL>("label"),
        SENSOR_LABEL,
    ],
    shows: |row| is_of_chip(row) && !text_of(row, LABEL).is_empty(),
    families: &[exposed::known(
        "node_hwmon_sensor_label",
        "Always 1; what the driver calls the sensor",
    )],
};

const THERMAL: Each = Each {
    labels: &[
        exposed::MetricLabel::text::<CHIP>("type"),
        exposed::MetricLabel {
            name: "zone",
            may_lack: false,
            put: |row, out| out.extend_from_slice(folder_and_sensor(&row.name).0),
        },
    ],
    shows: |row| folder_and_sensor(&row.name).1 == b"thermal",
    families: &[level_of(
        "node_thermal_zone_temp",
        "Temperature in °C",
        "temp",
        Scale::Over(1000.0),
    )],
};

/// Metrics of the first CPU of those with a common clock; node_exporter repeats them for the others.
const CPUFREQ: Each = Each {
    labels: &[exposed::MetricLabel {
        name: "cpu",
        may_lack: false,
        put: |row, out| out.extend_from_slice(folder_and_sensor(&row.name).0),
    }],
    shows: |row| folder_and_sensor(&row.name).1 == b"frequency",
    families: &[
        level_of(
            "node_cpu_scaling_frequency_hertz",
            "Clock of the CPU",
            "frequency",
            Scale::Times(1000.0),
        ),
        level_of(
            "node_cpu_scaling_frequency_min_hertz",
            "Least clock of the CPU that is allowed",
            "frequency_min",
            Scale::Times(1000.0),
        ),
        level_of(
            "node_cpu_scaling_frequency_max_hertz",
            "Highest clock of the CPU that is allowed",
            "frequency_max",
            Scale::Times(1000.0),
        ),
    ],
};

/// Energy of other zones, under one name with a label, as node_exporter does with `--collector.rapl.enable-zone-label`;
/// without that switch, its names contain the zone.
const OTHER_ZONES: Each = Each {
    labels: &{
        let [index, path] = ZONE_LABELS else {
            panic!("two labels")
        };
        [
            exposed::MetricLabel {
                name: index.name,
                may_lack: false,
                put: index.put,
            },
            exposed::MetricLabel {
                name: path.name,
                may_lack: false,
                put: path.put,
            },
            exposed::MetricLabel {
                name: "rapl_zone",
                may_lack: false,
                put: |row, out| out.extend_from_slice(zone_name(row)),
            },
        ]
    },
    shows: |row| is_zone(row) && !ZONES.contains(&zone_name(row)),
    families: &[joules("node_rapl_joules_total")],
};

/// Folder and sensor of a name: `0` and `temp1` for `0/temp1`.
fn folder_and_sensor(name: &[u8]) -> (&[u8], &[u8]) {
    match name.iter().rposition(|&b| b == b'/') {
        Some(at) => (&name[..at], &name[at + 1..]),
        None => (name, b""),
    }
}

/// Returns true if the sensor belongs to a chip: only those have numbers.
fn is_of_chip(row: &Row) -> bool {
    text_of(row, SENSOR).last().is_some_and(u8::is_ascii_digit)
}

fn is_zone(row: &Row) -> bool {
    folder_and_sensor(&row.name).1 == b"energy"
}

/// node_exporter's name of a chip: its device, which stays the same
/// if the order of chips changes; else its driver; else its folder.
fn put_chip(row: &Row, out: &mut Vec<u8>) {
    let mut device = text_of(row, DEVICE).splitn(2, |&b| b == b'/');
    match (device.next(), device.next(), text_of(row, CHIP)) {
        (Some(kind), Some(name), _) => {
            put_clean(kind, out);
            out.push(b'_');
            put_clean(name, out);
        }
        (_, _, b"") => {
            out.extend_from_slice(b"hwmon");
            out.extend_from_slice(folder_and_sensor(&row.name).0);
        }
        (_, _, name) => put_clean(name, out),
    }
}

/// Appends the name in lower case, with any character but letters,
/// digits, `_` and `:` as `_`, and without `_` at the ends.
fn put_clean(name: &[u8], out: &mut Vec<u8>) {
    let clean = name.iter().map(|b| match b.to_ascii_lowercase() {
        b if b.is_ascii_alphanumeric() || b == b':' => b,
        _ => b'_',
    });
    let clean: Vec<u8> = clean.collect();
    let text = String::from_utf8_lossy(&clean);
    out.extend_from_slice(text.trim_matches('_').as_bytes());
}

/// The zone's name without its number: `package` for `package-1`.
fn zone_name(row: &Row) -> &[u8] {
    zone_name_and_index(row).0
}

/// Appends the zone's number, which is in its name or in that of its package.
fn put_index(row: &Row, out: &mut Vec<u8>) {
    let mut of_folder = folder_and_sensor(&row.name).0.split(|&b| b == b':');
    let index = match (
        zone_name_and_index(row).1,
        of_folder.nth(1),
        of_folder.next(),
    ) {
        (Some(index), _, _) | (None, Some(index), Some(_)) => index,
        _ => b"0",
    };
    out.extend_from_slice(index);
}

fn zone_name_and_index(row: &Row) -> (&[u8], Option<&[u8]>) {
    let name = text_of(row, CHIP);
    let parts = name
        .iter()
        .rposition(|&b| b == b'-')
        .map(|at| (&name[..at], &name[at + 1..]));
    match parts {
        Some((name, index)) if !index.is_empty() && index.iter().all(u8::is_ascii_digit) => {
            (name, Some(index))
        }
        _ => (name, None),
    }
}

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
    labels: &["chip", "label", "device", "sensor"],
    layout,
    fills: None,
    summary: Summary::None,
    sum: None,
    ceiling: None,
    count: None,
    in_service: true,
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
                "Chip                  Sensor                     °C    RPM   Volt    Amp   Watt  Humid%    MHz",
            ],
            row: "{device:-21s21} {label:-22s22} {celsius:6.1} {rpm:6d} {volts:6.2} {amperes:6.2} {watts:6.2}  {humidity:6.1} {mhz:6d}",
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
    exposed: EXPOSED,
};

/// A sensor that is being read: its name, its label and its numbers.
#[derive(Default)]
struct Sensor {
    name: Vec<u8>,
    label: Vec<u8>,
    cells: Vec<Cell>,
}

fn layout(kind: u8, template: &Template, _: &Context) -> Layout {
    let (mut chip, mut device, mut sensors) = (Vec::new(), Vec::new(), Vec::<Sensor>::new());
    for line in template.lines() {
        let Some((Piece::Text(file), pieces)) = line.split_first() else {
            continue;
        };
        match *file {
            b"name" | b"type" => {
                chip = words(pieces);
                continue;
            }
            b"device" => {
                device = words(pieces);
                continue;
            }
            _ => {}
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
            sensors[at].label = words(pieces);
            continue;
        }
        let quantity = match part {
            b"average" => &[quantity, b"_average"].concat(),
            _ => quantity,
        };
        let field = FIELDS.iter().position(|f| f.name.as_bytes() == quantity);
        if let (Some(field), Some(from)) = (field, pieces.first().and_then(value)) {
            sensors[at].cells.push(Cell { field, from });
        }
    }
    if chip.is_empty() && kind == kind::CPUFREQ {
        chip = b"cpufreq".to_vec();
    }
    sensors.retain(|sensor| !sensor.cells.is_empty());
    Layout {
        rows: rows(&chip, &device, sensors),
        ..Layout::default()
    }
}

/// The rows of a chip, named by its device and by the sensors' labels if these are known and unique.
fn rows(chip: &[u8], device: &[u8], sensors: Vec<Sensor>) -> Vec<RowLayout> {
    let mut instance = None;
    if !device.is_empty() {
        let name: &mut Vec<u8> = instance.insert(Vec::new());
        put_device(chip, device, name);
        *name = part_of_name(name);
    }
    let labels: Vec<Vec<u8>> = sensors.iter().map(|sensor| sensor.label.clone()).collect();
    let is_alone = |label: &[u8]| labels.iter().filter(|other| *other == label).count() == 1;
    let row = |sensor: Sensor| {
        let has_name = instance.is_some() && !sensor.label.is_empty() && is_alone(&sensor.label);
        let fixed = |label, text: Vec<u8>| Label {
            label,
            word: Word::Fixed(text),
        };
        RowLayout {
            name: match has_name {
                true => part_of_name(&sensor.label),
                false => sensor.name.clone(),
            },
            instance: instance.clone(),
            cells: sensor.cells,
            labels: vec![
                fixed(CHIP, chip.to_vec()),
                fixed(LABEL, sensor.label),
                fixed(DEVICE, device.to_vec()),
                fixed(SENSOR, sensor.name),
            ],
            ..RowLayout::default()
        }
    };
    sensors.into_iter().map(row).collect()
}

/// Parts of a file's name: the sensor, the quantity, and `input` or `label`: `temp1`, `temp`, `input` for `temp1_input`.
fn parts(kind: u8, file: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    match (kind, file) {
        (kind::THERMAL, b"temp") => Some((b"thermal", b"temp", b"input")),
        (kind::POWERCAP, b"energy_uj") => Some((b"energy", b"energy", b"input")),
        (kind::CPUFREQ, b"scaling_cur_freq") => Some((b"frequency", b"frequency", b"input")),
        (kind::CPUFREQ, b"scaling_min_freq") => Some((b"frequency", b"frequency_min", b"input")),
        (kind::CPUFREQ, b"scaling_max_freq") => Some((b"frequency", b"frequency_max", b"input")),
        (kind::HWMON, _) => {
            let end = file.iter().position(|&b| b == b'_')?;
            let (name, part) = (&file[..end], &file[end + 1..]);
            let digits = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
            Some((name, &name[..name.len() - digits], part))
        }
        _ => None,
    }
}

fn words(pieces: &[Piece]) -> Vec<u8> {
    let words = pieces.iter().filter_map(|piece| match piece {
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

    /// Two sockets, each with a core 0, and a chip whose device does not name the driver; the numbers of their folders
    /// change with a boot. A label that a chip has twice is not used in names.
    #[test]
    fn names_stay_the_same_over_boots() {
        let chips = [
            "name coretemp\ndevice platform/coretemp.0\ntemp2_label Core 0\ntemp2_input 1\n",
            "name coretemp\ndevice platform/coretemp.1\ntemp2_label Core 0\ntemp2_input 2\n",
            "name k10temp\ndevice pci0000:00/0000:00:18.3\ntemp1_label Tctl\ntemp1_input 3\ntemp2_label a/b\ntemp2_input 4\ntemp3_label a/b\ntemp3_input 5\n",
        ];
        for numbers in [["0", "1", "2"], ["2", "0", "1"]] {
            let mut tracks = Tracks::default();
            let grammar = source::of(kind::HWMON).expect("a known kind").grammar;
            for (slot, (number, text)) in numbers.iter().zip(chips).enumerate() {
                let track = tracks.get_mut(kind::HWMON);
                track.put_text(slot, number.as_bytes(), text.as_bytes(), grammar);
            }
            let mut reading = Reading::default();
            assert!(Interpreter::new(&SENSORS).read(&tracks, &Context::default(), &mut reading));
            let temp = at(FIELDS, "temp");
            let rows = reading.rows.iter().map(|row| {
                format!(
                    "{} {}",
                    String::from_utf8_lossy(&row.name),
                    row.values[temp]
                )
            });
            assert_eq!(
                rows.collect::<Vec<_>>(),
                [
                    "coretemp.0/Core_0 1",
                    "coretemp.1/Core_0 2",
                    "k10temp@0000:00:18.3/Tctl 3",
                    "k10temp@0000:00:18.3/temp2 4",
                    "k10temp@0000:00:18.3/temp3 5",
                ],
                "{numbers:?}"
            );
        }
    }

    fn sensors_of_four_kinds() -> Tracks {
        let mut tracks = Tracks::default();
        for (kind, name, text) in [
            (
                kind::HWMON,
                "0",
                "name coretemp\ndevice platform/coretemp.0\ntemp1_label Package id 0\ntemp2_label Core 0\ntemp1_input 45000\ntemp2_input -1500\nfan1_input 1200\npower1_average 35500000\npower1_input 99\n",
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
        tracks
    }

    #[test]
    fn a_chip_has_several_sensors() {
        let tracks = sensors_of_four_kinds();
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
                "coretemp.0/Package_id_0 Package id 0 temp 45000",
                "coretemp.0/Core_0 Core 0 temp -1500",
                "coretemp.0/fan1  fan 1200",
                "coretemp.0/power1  power_average 35500000",
                "0/thermal  temp 46000",
                "intel-rapl:0/energy  energy 262143328850",
                "0/frequency  frequency 2100000",
            ]
        );
        assert_eq!(reading.rows[0].labels[CHIP], b"coretemp");
        assert_eq!(reading.rows[0].labels[DEVICE], b"platform/coretemp.0");
        let chips = reading.rows.iter().map(|row| {
            let mut out = Vec::new();
            put_chip(row, &mut out);
            String::from_utf8(out).expect("a name")
        });
        assert!(chips.take(4).all(|chip| chip == "platform_coretemp_0"));
    }

    #[test]
    fn a_zone_of_power_has_a_kind_and_an_index() {
        let zone = |name: &str, what: &str| {
            let row = Row {
                name: [name.as_bytes(), b"/energy"].concat(),
                labels: vec![what.as_bytes().to_vec()],
                ..Row::default()
            };
            let mut out = Vec::new();
            put_index(&row, &mut out);
            (
                String::from_utf8_lossy(zone_name(&row)).into_owned(),
                String::from_utf8(out).expect("a number"),
            )
        };
        for (name, what, kind, index) in [
            ("intel-rapl:1", "package-1", "package", "1"),
            ("intel-rapl:1:0", "core", "core", "1"),
            ("intel-rapl:2", "psys", "psys", "0"),
            ("intel-rapl:0", "package-0-die-1", "package-0-die", "1"),
            ("dtpm", "", "", "0"),
        ] {
            assert_eq!(zone(name, what), (kind.into(), index.into()), "{name}");
        }
    }
}
