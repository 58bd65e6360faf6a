//! Columns of stored series as fields: their ids, their units, and their rows as lines beside those of a recording.

use std::collections::BTreeMap;

use kymo_base::field::Unit;
use kymo_base::labels;
use kymo_base::name::DisplayName;
use kymo_keeper_client::Keeper;
use kymo_wire::keeper::{Range, Rows, SeriesInfo};

use super::{marks, points, seconds_of};
use crate::marks::Origin;
use crate::series::Series;
use crate::sheet::Line;

/// First byte of a field of a stored series: `@host/plugin/type.rrd:column`.
pub const MARK: char = '@';

/// A column of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredField {
    /// As it was asked for.
    pub id: String,
    /// The series.
    pub name: Vec<u8>,
    /// Column of the field.
    pub column: Vec<u8>,
}

impl StoredField {
    /// Reads an id with its mark.
    pub fn parse(id: &str) -> Result<StoredField, String> {
        let parts = id.strip_prefix(MARK).and_then(|rest| rest.rsplit_once(':'));
        let (name, column) = parts
            .filter(|(name, column)| !name.is_empty() && !column.is_empty())
            .ok_or_else(|| {
                let shown = DisplayName(id.as_bytes());
                format!("cannot find {shown}: a stored field is @NAME:COLUMN")
            })?;
        Ok(StoredField {
            id: id.into(),
            name: name.into(),
            column: column.into(),
        })
    }

    /// All columns of a series.
    pub fn all_of(info: &SeriesInfo) -> impl Iterator<Item = StoredField> {
        info.columns.iter().map(|(column, _)| StoredField {
            id: format!("{MARK}{}:{}", DisplayName(&info.name), DisplayName(column)),
            name: info.name.clone(),
            column: column.clone(),
        })
    }

    /// Unit of the field, by a list that is sorted by name.
    fn unit(&self, listed: &[SeriesInfo]) -> Unit {
        let columns = find(listed, &self.name).map_or(&[][..], |info| &info.columns[..]);
        let column = columns.iter().find(|(name, _)| *name == self.column);
        unit(&self.name, column.map_or(b"", |(_, kind)| kind))
    }
}

/// Rows of series, or why one has none, by name.
pub struct Answered(BTreeMap<Vec<u8>, Result<Rows, String>>);

impl Answered {
    /// Asks for the rows that these fields need for the grid of `series`.
    pub fn ask(
        keeper: &Keeper,
        fields: &[StoredField],
        series: &Series,
    ) -> Result<Answered, String> {
        let mut names: Vec<Vec<u8>> = fields.iter().map(|field| field.name.clone()).collect();
        names.sort();
        names.dedup();
        let (from, thru) = seconds_of(&series.grid);
        let answers = keeper.range(&Range {
            names: names.clone(),
            from,
            thru,
            rows_max: u32::try_from(series.grid.count).unwrap_or(u32::MAX),
        })?;
        Ok(Answered(names.into_iter().zip(answers).collect()))
    }

    /// Adds what the hosts of these series wanted to be heard.
    pub fn add_marks(&self, keeper: &Keeper, series: &mut Series) -> Result<(), String> {
        let hosts = self
            .0
            .keys()
            .map(|name| labels::value(name, "host").into_owned());
        let mut hosts: Vec<Vec<u8>> = hosts.collect();
        hosts.dedup();
        let marks = marks(keeper, seconds_of(&series.grid), hosts)?.into_iter();
        // A device that is polled may have the name of a host that sends.
        let of_hosts = marks.filter(|mark| matches!(mark.origin, Origin::Host(_)));
        series.marks.extend(of_hosts);
        series.marks.sort_by_key(|mark| mark.from_ns);
        Ok(())
    }

    /// The rows of a field, and which column it is; why not, for people.
    pub fn rows(&self, field: &StoredField) -> Result<(&Rows, usize), String> {
        let rows = self.0.get(&field.name);
        let rows = rows.ok_or("it was not asked for")?.as_ref()?;
        let column = rows.columns.iter().position(|name| *name == field.column);
        let column = column.ok_or_else(|| {
            let id = DisplayName(field.id.as_bytes());
            let columns = rows
                .columns
                .iter()
                .map(|name| DisplayName(name).to_string());
            let columns = columns.collect::<Vec<_>>().join(", ");
            format!("cannot find {id}: it has no such column, only {columns}")
        })?;
        Ok((rows, column))
    }

    /// Adds the lines of these fields, with the numbers from `first` on as their picks; with the seconds of the finest row. A
    /// field that is not there has no line, as one of the recording that has no values.
    pub fn add(
        &self,
        fields: &[StoredField],
        listed: &[SeriesInfo],
        first: usize,
        series: &mut Series,
    ) -> Option<u32> {
        let mut finest = None;
        for (pick, field) in (first..).zip(fields) {
            let Ok((rows, column)) = self.rows(field) else {
                continue;
            };
            finest = Some(finest.map_or(rows.step, |finest: u32| finest.min(rows.step)));
            series.points.push(points(rows, column, &series.grid));
            series.lines.push(Line {
                id: field.id.clone(),
                unit: field.unit(listed),
                help: "",
                pick,
            });
        }
        finest
    }
}

/// The series of a name, in a list that is sorted by them.
pub fn find<'a>(listed: &'a [SeriesInfo], name: &[u8]) -> Option<&'a SeriesInfo> {
    let at = listed.binary_search_by(|info| info.name.as_slice().cmp(name));
    at.ok().map(|at| &listed[at])
}

/// Unit of a column, as far as collectd's type or rrdtool's kind tells it.
pub fn unit(name: &[u8], kind: &[u8]) -> Unit {
    let is_rate = !matches!(kind, b"GAUGE" | b"COMPUTE" | b"");
    // Fields of label sets end in their units.
    let field = labels::value(name, "field");
    match is_rate {
        true if field.ends_with(b"_bytes") || field.ends_with(b"_bytes_total") => {
            return Unit::BytesPerSecond;
        }
        false if field.ends_with(b"_seconds") => return Unit::Seconds,
        _ => {}
    }
    match (&*labels::value(name, "type"), is_rate) {
        (b"percent" | b"percent_bytes" | b"percent_inodes", _) => Unit::Percent,
        // Ticks of USER_HZ, of which there are 100 a second.
        (b"cpu", true) => Unit::Percent,
        (
            b"memory" | b"swap" | b"df_complex" | b"df" | b"bytes" | b"file_size" | b"ps_vm"
            | b"ps_rss",
            false,
        ) => Unit::Bytes,
        (
            b"if_octets" | b"disk_octets" | b"io_octets" | b"total_bytes" | b"swap_io"
            | b"derive_octets",
            true,
        ) => Unit::BytesPerSecond,
        (b"uptime" | b"duration" | b"delay" | b"time_offset", false) => Unit::Seconds,
        (b"ping" | b"latency", false) => Unit::Milliseconds,
        (_, true) => Unit::PerSecond,
        (_, false) => Unit::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_stored_fields() {
        let field = StoredField::parse("@web1/cpu-0/a:b.rrd:value").expect("a field");
        assert_eq!(field.name, b"web1/cpu-0/a:b.rrd");
        assert_eq!(field.column, b"value");
        for id in ["@", "@a", "@:b", "@a:", "cpu.user"] {
            assert!(StoredField::parse(id).is_err(), "{id}");
        }
    }

    #[test]
    fn units_by_type() {
        for (name, kind, symbol) in [
            ("h/cpu-0/cpu-idle.rrd", "DERIVE", "%"),
            ("h/interface-eth0/if_octets.rrd", "DERIVE", "B/s"),
            ("h/memory/memory-used.rrd", "GAUGE", "B"),
            ("h/load/load.rrd", "GAUGE", ""),
            ("h/port-1.rrd", "COUNTER", "1/s"),
        ] {
            assert_eq!(
                unit(name.as_bytes(), kind.as_bytes()).symbol(),
                symbol,
                "{name}"
            );
        }
    }
}
