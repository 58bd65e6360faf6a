//! A device that answered, as a table `[[device]]`.

use anyhow::Result;
use kymo_base::name::DisplayName;
use kymo_poll::devices::{DeviceAsker, FoundInterface};

use super::answer::Answer;
use crate::config::{DeviceTable, ListedInterface, interfaces_text, quoted};

/// A device that answered.
pub(super) struct Found {
    /// The table that it had before, or that it was asked by.
    pub(super) table: DeviceTable,
    /// All of its interfaces.
    pub(super) all: Vec<ListedInterface>,
    /// Interfaces that the table's filter chooses.
    pub(super) chosen: Vec<ListedInterface>,
    /// The interfaces, with all that is known of them.
    pub(super) interfaces: Vec<FoundInterface>,
    /// Texts of the device.
    pub(super) answer: Answer,
    profiles: Vec<String>,
}

impl Found {
    /// Result of a poll.
    pub(super) fn new(table: &DeviceTable, text: &[u8], asker: &DeviceAsker) -> Result<Found> {
        let mut filter = table.filter();
        filter.listed.clear();
        let chosen = filter.chosen(asker.interfaces());
        let chosen = chosen.map_err(anyhow::Error::msg)?;
        Ok(Found {
            table: table.clone(),
            all: asker.interfaces().iter().map(listed).collect(),
            chosen: chosen.into_iter().map(listed).collect(),
            profiles: asker.answered().map(str::to_string).collect(),
            interfaces: asker.interfaces().to_vec(),
            answer: Answer::read(text)?,
        })
    }

    /// The address, to be shown.
    pub(super) fn shown_address(&self) -> String {
        DisplayName(self.table.address.as_bytes()).to_string()
    }

    /// The name and what there is.
    pub(super) fn summary(&self) -> String {
        let (count, all) = (self.chosen.len(), self.all.len());
        let name = self.answer.system.get("sysName");
        let name = DisplayName(name.map_or("no name", |name| name).as_bytes());
        format!("{name}, {count} of {all} interfaces")
    }

    /// The table.
    pub(super) fn text(&self) -> String {
        let table = &self.table;
        let mut text = format!("# {}\n[[device]]\n", self.summary());
        let mut put = |name: &str, value: &str| text += &format!("{name} = {value}\n");
        put("address", &quoted(&table.address));
        let usual = DeviceTable::default();
        if table.version != usual.version {
            put("version", &quoted(table.version.word()));
        }
        for (name, path) in [
            ("community_file", &table.community_file),
            ("auth_file", &table.auth_file),
            ("privacy_file", &table.privacy_file),
        ] {
            if let Some(path) = path {
                put(name, &quoted(&path.to_string_lossy()));
            }
        }
        for (name, value, usual) in [
            ("user", &table.user, &usual.user),
            ("auth", &table.auth, &usual.auth),
            ("privacy", &table.privacy, &usual.privacy),
        ] {
            if value != usual {
                put(name, &quoted(value));
            }
        }
        let profiles: Vec<String> = self.profiles.iter().map(|name| quoted(name)).collect();
        put("profiles", &format!("[{}]", profiles.join(", ")));
        if table.interfaces != usual.interfaces {
            put("interfaces", "\"all\"");
        }
        if table.not_types != usual.not_types {
            put("not_types", "[]");
        }
        put("interface", &interfaces_text(&self.chosen));
        text
    }
}

fn listed(found: &FoundInterface) -> ListedInterface {
    ListedInterface {
        name: found.name.clone(),
        alias: found.alias.clone(),
        mbit: whole(found.mbit.unwrap_or(0.0)),
    }
}

/// A speed, which is never negative and has 32 bits.
fn whole(mbit: f64) -> u64 {
    mbit.to_string().parse().unwrap_or(0)
}
