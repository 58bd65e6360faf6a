//! Series about devices themselves, named by label sets: `{device="..",job="poll"}`.

use super::Keeper;
use crate::sink::Report;
use kymo_base::label_set::Labels;
use kymo_wire::keeper::{Answer, KeeperRequest, LabelledSeries, LabelledValues};
use std::collections::HashSet;
use std::io;

/// Columns of a device's series.
const COLUMNS: [&str; 5] = ["round_trip_s", "losses", "retries", "unseen_s", "late_s"];
/// Most devices in one request.
const TOGETHER: usize = 1000;

/// Statistics of a device in a cycle; NaN: unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceReading<'a> {
    /// Address of the device, `host` or `host:port`, without secrets.
    pub device: &'a [u8],
    /// Time of the statistics, milliseconds since 1970.
    pub stamp_ms: i64,
    /// Mean seconds from a request to its reply.
    pub round_trip_s: f64,
    /// Requests of this cycle without an answer.
    pub losses: f64,
    /// Requests of this cycle that were repeated.
    pub retries: f64,
    /// Seconds since the last answer.
    pub unseen_s: f64,
    /// Delay of the poll's beginning, seconds.
    pub late_s: f64,
}

/// Devices whose series the keeper was asked to define.
#[derive(Default)]
pub(super) struct Devices(HashSet<Vec<u8>>);

impl Keeper {
    /// Stores the statistics of devices in a cycle of `interval_s` seconds. They do not wait: those
    /// that cannot be stored are lost.
    pub(in crate::sink) fn write_devices(
        &mut self,
        readings: &[DeviceReading],
        interval_s: u32,
        report: &mut Report,
    ) {
        for readings in readings.chunks(TOGETHER) {
            if let Err(error) = self.send_devices(readings, interval_s) {
                report
                    .troubles
                    .extend(self.connection.lock().failed(&error));
                return;
            }
        }
    }

    fn send_devices(&mut self, readings: &[DeviceReading], interval_s: u32) -> io::Result<()> {
        let new = readings
            .iter()
            .filter(|reading| !self.devices.0.contains(reading.device));
        let new: Vec<&DeviceReading> = new.collect();
        let defined = new.iter().filter_map(|reading| {
            Some(LabelledSeries {
                labels: labels(reading.device)?,
                step: interval_s,
                heartbeat: interval_s.saturating_mul(3),
                start: reading.stamp_ms.div_euclid(1000) - i64::from(interval_s),
                columns: COLUMNS
                    .map(|name| (name.into(), b"GAUGE".to_vec()))
                    .to_vec(),
            })
        });
        let defined: Vec<LabelledSeries> = defined.collect();
        if !defined.is_empty() {
            self.ask_all(&KeeperRequest::Define(defined.clone()), defined.len())?;
            let names = new.iter().map(|reading| reading.device.to_vec());
            self.devices.0.extend(names);
        }
        let values = readings.iter().filter_map(|reading| {
            Some(LabelledValues {
                labels: labels(reading.device)?,
                stamps_ms: vec![reading.stamp_ms],
                cells: vec![
                    reading.round_trip_s,
                    reading.losses,
                    reading.retries,
                    reading.unseen_s,
                    reading.late_s,
                ],
            })
        });
        let values: Vec<LabelledValues> = values.collect();
        let answers = self.ask_all(&KeeperRequest::Write(values.clone()), values.len())?;
        if answers
            .iter()
            .any(|answer| matches!(answer, Answer::Refused(_)))
        {
            // The keeper may have started with an empty store.
            self.devices.0.clear();
        }
        Ok(())
    }

    fn ask_all(&mut self, request: &KeeperRequest, answers: usize) -> io::Result<Vec<Answer>> {
        let mut no_matter = false;
        self.connection.lock().ask(request, answers, &mut no_matter)
    }
}

fn labels(device: &[u8]) -> Option<Labels> {
    Labels::new([("device", device), ("job", b"poll")]).ok()
}
