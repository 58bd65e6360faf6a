//! Files and values for tests.

use crate::consolidation::schema::{Schema, SeriesState};
use kymo_rrd::create::{Create, create};
use kymo_rrd::{Rows, Rrd};

/// A file with these definitions that begins at
/// 1,000,000,000 and has a step of ten seconds.
pub(crate) fn rrd(definitions: &[&str], random: u64) -> Rrd {
    let definitions: Vec<&[u8]> = definitions.iter().map(|text| text.as_bytes()).collect();
    let request = Create {
        file_name: b"sample.rrd",
        step: 10,
        start: Some(1_000_000_000),
        definitions: &definitions,
    };
    create(&request, 1_000_000_000, &mut { random }, None, &[]).unwrap()
}

/// Several kinds of sources and archives.
pub(crate) const DEFINITIONS: &[&[&str]] = &[
    &[
        "DS:x:GAUGE:60:U:U",
        "RRA:AVERAGE:0.5:1:9",
        "RRA:MIN:0.5:1:9",
        "RRA:MAX:0.5:3:5",
    ],
    &[
        "DS:in:COUNTER:40:0:U",
        "DS:out:DERIVE:40:0:1000",
        "RRA:AVERAGE:0.1:1:20",
        "RRA:LAST:0.9:4:3",
        "RRA:AVERAGE:0.5:7:11",
    ],
    &[
        "DS:x:GAUGE:60:U:U",
        "RRA:AVERAGE:0.5:1:40",
        "RRA:HWPREDICT:30:0.1:0.0035:6",
    ],
];

pub(crate) fn rrds() -> Vec<Rrd> {
    let each = DEFINITIONS.iter().enumerate();
    each.map(|(i, definitions)| rrd(definitions, i as u64 + 1))
        .collect()
}

/// The state of a whole file.
pub(crate) fn series(schema: &Schema, rrd: &Rrd) -> SeriesState {
    let seasonal = schema.archives.iter().filter(|archive| archive.seasonal);
    let seasons = seasonal.map(|archive| {
        let mut cells = vec![0.0; archive.row_cnt as usize * schema.width];
        rrd.cells.clone().read(archive.base, &mut cells).unwrap();
        cells
    });
    SeriesState {
        header: rrd.header.clone(),
        seasons: seasons.collect(),
    }
}
