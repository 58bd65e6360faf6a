//! Series of the store, as the hub has them from the keeper: what there is, and their rows as lines beside those of the
//! recording.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kymo_base::field::Unit;
use kymo_base::labels;
use kymo_base::name::DisplayName;
use kymo_query::marks::Mark;
use kymo_query::series::{Grid, Series};
use kymo_query::sheet::Line;
use kymo_query::stored::{Keeper, mark, points, seconds_of};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_wire::keeper::{Accounts, EventRange, Range, Rows, SeriesInfo};

/// What a field of a stored series begins with: `@host/plugin/type.rrd:column`.
pub(crate) const MARK: char = '@';
/// How long a list of all series holds.
const FRESH: Duration = Duration::from_secs(10);

/// A column of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredField {
    /// As it was asked for.
    pub id: String,
    name: Vec<u8>,
    column: Vec<u8>,
}

impl StoredField {
    /// Reads an id without its mark.
    pub(crate) fn parse(id: &str) -> Result<StoredField, String> {
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
}

/// All series.
pub(crate) type Listed = Arc<Vec<SeriesInfo>>;

/// The store as the hub sees it.
pub(crate) struct Stored {
    keeper: Keeper,
    listed: Mutex<Option<(u64, Listed)>>,
}

impl Stored {
    /// That of the keeper which answers on this socket.
    pub(crate) fn new(socket: PathBuf) -> Stored {
        Stored {
            keeper: Keeper::at(socket),
            listed: Mutex::new(None),
        }
    }

    /// All series, by name.
    pub(crate) fn list(&self) -> Result<Listed, String> {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ns = RealClock.mono_ns();
        if let Some((at_ns, list)) = &*listed
            && now_ns - at_ns < FRESH.as_nanos() as u64
        {
            return Ok(list.clone());
        }
        let list = Arc::new(self.keeper.select(&[])?);
        *listed = Some((RealClock.mono_ns(), list.clone()));
        Ok(list)
    }

    /// Rows of some series, or why one has none.
    pub(crate) fn range(&self, range: &Range) -> Result<Vec<Result<Rows, String>>, String> {
        self.keeper.range(range)
    }

    /// A list that has these series, however old: what a series consists of does not change.
    fn list_with(&self, names: &[Vec<u8>]) -> Result<Listed, String> {
        let kept = {
            let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
            listed.as_ref().map(|(_, list)| list.clone())
        };
        let has_all = |list: &Listed| names.iter().all(|name| find(list, name).is_some());
        match kept.filter(has_all) {
            Some(list) => Ok(list),
            None => self.list(),
        }
    }

    /// Who sends.
    pub(crate) fn accounts(&self) -> Result<Accounts, String> {
        self.keeper.accounts()
    }

    /// What senders wanted to be heard, by its time; no hosts: all.
    pub(crate) fn marks(
        &self,
        range: (i64, i64),
        hosts: Vec<Vec<u8>>,
    ) -> Result<Vec<Mark>, String> {
        let (from, thru) = range;
        let events = self.keeper.events(&EventRange {
            from,
            thru,
            events_max: u32::MAX,
            hosts,
        })?;
        Ok(events.iter().map(mark).collect())
    }

    /// Adds the lines of these fields, and what their hosts wanted to be heard; with the seconds of the finest row that was read. A field that is not there has no
    /// line, as one of the recording that has no values.
    pub(crate) fn add(
        &self,
        fields: &[StoredField],
        series: &mut Series,
    ) -> Result<Option<u32>, String> {
        let mut names: Vec<Vec<u8>> = fields.iter().map(|field| field.name.clone()).collect();
        names.sort();
        names.dedup();
        let grid = series.grid;
        let (from, thru) = seconds_of(&grid);
        let answers = self.keeper.range(&Range {
            names: names.clone(),
            from,
            thru,
            rows_max: u32::try_from(grid.count).unwrap_or(u32::MAX),
        })?;
        let listed = self.list_with(&names)?;
        let mut finest = None;
        for (pick, field) in fields.iter().enumerate() {
            let rows = names.binary_search(&field.name).ok().map(|at| &answers[at]);
            let Some(Ok(rows)) = rows else {
                continue;
            };
            let Some(column) = rows.columns.iter().position(|name| *name == field.column) else {
                continue;
            };
            finest = Some(finest.map_or(rows.step, |finest: u32| finest.min(rows.step)));
            series.points.push(points(rows, column, &grid));
            series.lines.push(Line {
                id: field.id.clone(),
                unit: unit(&field.name, kind(&listed, field)),
                help: "",
                pick,
            });
        }
        let mut hosts: Vec<Vec<u8>> = names
            .iter()
            .map(|name| labels::value(name, "host").to_vec())
            .collect();
        hosts.dedup();
        series.marks.extend(self.marks((from, thru), hosts)?);
        series.marks.sort_by_key(|mark| mark.from_ns);
        Ok(finest)
    }
}

/// The series of a name, in a list that is sorted by them.
fn find<'a>(listed: &'a [SeriesInfo], name: &[u8]) -> Option<&'a SeriesInfo> {
    let at = listed.binary_search_by(|info| info.name.as_slice().cmp(name));
    at.ok().map(|at| &listed[at])
}

/// GAUGE, DERIVE ... ; empty: not known.
fn kind<'a>(listed: &'a [SeriesInfo], field: &StoredField) -> &'a [u8] {
    let columns = find(listed, &field.name).map_or(&[][..], |info| &info.columns[..]);
    let column = columns.iter().find(|(name, _)| *name == field.column);
    column.map_or(b"", |(_, kind)| kind)
}

/// What a column counts, as far as collectd's type or rrdtool's kind says it.
pub(crate) fn unit(name: &[u8], kind: &[u8]) -> Unit {
    let is_rate = !matches!(kind, b"GAUGE" | b"COMPUTE" | b"");
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

/// A grid for stored series alone.
pub(crate) fn grid(from_ns: i64, thru_ns: i64, points: usize) -> Grid {
    Grid::new(from_ns, thru_ns, points, 1_000_000_000)
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
