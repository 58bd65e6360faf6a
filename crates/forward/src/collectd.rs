//! A receiver of collectd's datagrams: values of series whose paths are collectd's names.

mod echo;
mod link;
mod packets;

use std::path::Path;

use kymo_keeper_client::TailSink;
use kymo_wire::collectd::{Cdtime, Identifier, NAME_MAX, VALUES_MAX, Value, ValueList};

use super::file_values::{FileSeries, FileValues, value_of};
use super::ledger::Ledger;
use super::order::CollectdWay;
use super::picker::Picker;
use super::receiver::Receiver;
use echo::Echo;
use link::Link;
use packets::Packets;

/// The receiver, and the values for it.
pub(crate) struct CollectdReceiver {
    values: FileValues,
    packets: Packets,
    echo: Echo,
}

impl CollectdReceiver {
    /// A receiver of series that one of the selectors matches.
    pub(crate) fn new(
        way: CollectdWay,
        selectors: &[String],
        keeper: &Path,
    ) -> Result<CollectdReceiver, String> {
        Ok(CollectdReceiver {
            values: FileValues::new(Picker::of_selectors(selectors)?, is_collectds),
            packets: Packets::new(Link::new(way)),
            echo: Echo::new(keeper),
        })
    }
}

impl Receiver for CollectdReceiver {
    fn begin(&mut self) {
        self.values.begin();
    }

    fn sink(&mut self) -> &mut dyn TailSink {
        &mut self.values
    }

    fn series(&self) -> usize {
        self.values.series()
    }

    fn deliver(&mut self, ledger: &mut Ledger) {
        self.echo.look(self.packets.peer());
        let mut cells = Vec::new();
        for (series, t_ms, numbers) in self.values.each() {
            let Some(identifier) = Identifier::of_rrd_path(&series.name) else {
                continue;
            };
            if self.echo.has(identifier.host) || !put_cells(&mut cells, series, numbers) {
                continue;
            }
            let list = ValueList {
                identifier,
                time: time_of(t_ms),
                interval: Cdtime::from_seconds(series.step_s.into()),
                values: &cells,
            };
            self.packets.push(&list, ledger);
        }
        self.packets.flush(ledger);
    }
}

/// True for series that a packet can name: `HOST/PLUGIN[-INSTANCE]/TYPE[-INSTANCE].rrd`, with the kinds of collectd.
fn is_collectds(series: &FileSeries) -> bool {
    let names_fit = Identifier::of_rrd_path(&series.name).is_some_and(|of| {
        let names = [
            of.host,
            of.plugin,
            of.plugin_instance,
            of.type_name,
            of.type_instance,
        ];
        names.iter().all(|name| name.len() <= NAME_MAX)
    });
    let kinds = &series.kinds;
    names_fit && (1..=VALUES_MAX).contains(&kinds.len()) && kinds.iter().all(Option::is_some)
}

/// Makes the cells of a packet. False: one of them has no form there, as an unknown count has none.
fn put_cells(cells: &mut Vec<Value>, series: &FileSeries, numbers: &[f64]) -> bool {
    cells.clear();
    let kinds = series.kinds.iter().flatten();
    let made = kinds.zip(numbers);
    cells.extend(made.map_while(|(&kind, &number)| value_of(kind, number)));
    cells.len() == numbers.len()
}

fn time_of(t_ms: i64) -> Cdtime {
    let t_ms = u64::try_from(t_ms).unwrap_or(0);
    Cdtime::from_nanoseconds(t_ms.saturating_mul(1_000_000))
}
