//! Neighbours of a device by LLDP-MIB, as a metric: each row of lldpRemTable with the name of the device's own port, which is that of its interface.

use std::collections::{BTreeMap, BTreeSet};

use super::cell::Cell;
use super::layout::TableLayout;
use super::scrape_text::put_label;
use super::table_walk::Rows;
use crate::asked_agent::ROWS_MAX;
use crate::neighbours::{PortInterfaces, Row, neighbour, text_of};

/// Appends a sample for each neighbour, from the name of the device, its neighbours, its ports and its interfaces. Returns their number.
pub(super) fn put_neighbours<'t>(
    out: &mut String,
    tables: impl Iterator<Item = (&'t TableLayout, Rows)>,
) -> usize {
    let mut tables = tables.map(|(layout, rows)| rows_of(layout, rows));
    let [system, remote, local, interfaces] = [(); 4].map(|()| tables.next().unwrap_or_default());
    let system = system.into_values().next().unwrap_or_default();
    let system = match system.into_values().next() {
        Some(Ok(name)) => text_of(&name),
        Some(Err(_)) | None => String::new(),
    };
    let interfaces = PortInterfaces::of(&interfaces);
    let mut samples = BTreeSet::new();
    for (index, row) in remote.iter().take(ROWS_MAX) {
        let found = neighbour(index, row, &local, &interfaces);
        let mut labels = String::new();
        for (name, text) in [
            ("ifName", &found.port),
            ("lldpRemChassisId", &found.chassis),
            ("lldpRemPortDesc", &found.remote_descr),
            ("lldpRemPortId", &found.remote_port),
            ("lldpRemSysName", &found.system),
            ("sysName", &system),
        ] {
            put_label(&mut labels, name, text);
        }
        samples.insert(labels);
    }
    if !samples.is_empty() {
        out.push_str("# TYPE lldpRemSysName gauge\n");
    }
    for labels in &samples {
        out.push_str(&format!("lldpRemSysName{{{labels}}} 1\n"));
    }
    samples.len()
}

/// Rows by the last number of each column's OID.
fn rows_of(layout: &TableLayout, rows: Rows) -> BTreeMap<Vec<u32>, Row> {
    let number = |column: usize| layout.columns.get(column)?.last().copied().map(u32::from);
    let row_of = |cells: Vec<Option<Cell>>| -> Row {
        let cells = cells.into_iter().enumerate();
        let known = cells.filter_map(|(column, cell)| {
            let value = match cell? {
                Cell::Text(text) => Ok(text.into_vec()),
                number => Err(number.text()?.parse().ok()?),
            };
            Some((number(column)?, value))
        });
        known.collect()
    };
    let rows = rows.into_iter();
    rows.map(|(index, cells)| (index.into_vec(), row_of(cells)))
        .collect()
}
