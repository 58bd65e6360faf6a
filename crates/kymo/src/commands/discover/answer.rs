//! The text of a device's scrape, as far as an mrtg.cfg or a comment needs it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use kymo_wire::exposition_text::{ExposedLine, ExposedSample, ExpositionFormat, ExpositionReader};

/// Texts and speeds of a device.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Texts of the device itself, such as sysName.
    pub(super) system: BTreeMap<String, String>,
    /// ifName by ifIndex.
    pub(super) names: BTreeMap<String, String>,
    /// Hardware addresses by ifIndex.
    pub(super) macs: BTreeMap<String, String>,
    /// Addresses by ifIndex.
    pub(super) addresses: BTreeMap<String, String>,
    /// ifMtu by ifIndex.
    pub(super) mtus: BTreeMap<String, String>,
    /// ifIndex of interfaces that have counters of 64 bits.
    pub(super) has_large: BTreeSet<String>,
    /// ifSpeed and ifHighSpeed by ifIndex.
    speeds: BTreeMap<String, [f64; 2]>,
}

impl Answer {
    /// Reads the text of a scrape.
    pub(super) fn read(text: &[u8]) -> Result<Answer> {
        let mut answer = Answer::default();
        let mut reader = ExpositionReader::new(ExpositionFormat::Prometheus, text);
        while let Some(line) = reader
            .read()
            .map_err(|fault| anyhow::Error::msg(fault.to_string()))?
        {
            if let ExposedLine::Sample(sample) = line {
                answer.take(&sample);
            }
        }
        Ok(answer)
    }

    fn take(&mut self, sample: &ExposedSample) {
        let label = |name: &str| {
            let mut labels = sample.labels.iter();
            let found = labels.find(|label| label.name.text() == name);
            found.map(|label| label.value.text().into_owned())
        };
        let name = sample.name.text();
        let index = label("ifIndex").unwrap_or_default();
        if let Some(name) = label("ifName").filter(|name| !name.is_empty()) {
            self.names.insert(index.clone(), name);
        }
        match &*name {
            "ifSpeed" => self.speeds.entry(index).or_default()[0] = sample.value,
            "ifHighSpeed" => self.speeds.entry(index).or_default()[1] = sample.value,
            "ifMtu" => drop(self.mtus.insert(index, sample.value.to_string())),
            "ifHCInOctets" => drop(self.has_large.insert(index)),
            "ifPhysAddress" => {
                let mac = label("ifPhysAddress").unwrap_or_default();
                self.macs.insert(index, mac);
            }
            "ipAdEntIfIndex" => {
                let address = label("ipAdEntAddr").unwrap_or_default();
                let place = self.addresses.entry(sample.value.to_string());
                place.or_insert(address);
            }
            name if name.starts_with("sys") => {
                if let Some(text) = label(name) {
                    self.system.insert(name.into(), text);
                }
            }
            _ => {}
        }
    }

    /// Speed of an interface, bits a second: ifHighSpeed where ifSpeed has too few bits.
    pub(super) fn speed_bits(&self, index: &str) -> u64 {
        let [speed, mbit] = self.speeds.get(index).copied().unwrap_or_default();
        let bits = match (1.0..4_294_967_295.0).contains(&speed) {
            true => speed,
            false => mbit * 1e6,
        };
        bits.to_string().parse().unwrap_or(0)
    }
}
