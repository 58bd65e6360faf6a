//! collectd's notifications become lines of the log: a line has the number of notifications since the last one, and the
//! newest of them. The caller sees to it that there is at most one line a second.

use kymo_base::name::DisplayName;
use kymo_wire::collectd::{Identifier, Notification, escape};
use kymo_wire::keeper::Event;

/// Notifications that were not logged yet.
#[derive(Debug, Default)]
pub(crate) struct Notifications {
    count: u64,
    last: String,
}

impl Notifications {
    /// Adds a notification. Names and text have limits, so the line has one, too.
    pub(crate) fn add(&mut self, event: &Event) {
        self.count += 1;
        let (word, text) = (event.severity.word(), DisplayName(&event.message));
        let name = event.name();
        self.last = match name.is_empty() {
            true => format!("{word}: {text}"),
            false => format!("{word} of {}: {text}", DisplayName(&name)),
        };
    }

    /// The line about the notifications since the last call; `None`: none came.
    pub(crate) fn take(&mut self) -> Option<String> {
        let (count, last) = (self.count, std::mem::take(&mut self.last));
        self.count = 0;
        match count {
            0 => None,
            1 => Some(format!("1 notification: {last}")),
            _ => Some(format!("{count} notifications, the last: {last}")),
        }
    }
}

/// A notification as an event, with names as in series.
pub(super) fn event(notification: &Notification) -> Event {
    let Identifier {
        host,
        plugin,
        plugin_instance,
        type_name,
        type_instance,
    } = *notification.identifier;
    let nanoseconds = notification.time.nanoseconds();
    Event {
        time_ns: i64::try_from(nanoseconds).unwrap_or(i64::MAX),
        severity: notification.severity,
        host: escape(host).into_owned(),
        plugin: escape(plugin).into_owned(),
        plugin_instance: escape(plugin_instance).into_owned(),
        type_name: escape(type_name).into_owned(),
        type_instance: escape(type_instance).into_owned(),
        message: notification.message.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_wire::collectd::{Cdtime, Severity};

    fn line(names: [&str; 5], message: &[u8], count: usize) -> String {
        let [host, plugin, plugin_instance, type_name, type_instance] = names.map(str::as_bytes);
        let identifier = Identifier {
            host,
            plugin,
            plugin_instance,
            type_name,
            type_instance,
        };
        let mut notifications = Notifications::default();
        for _ in 0..count {
            let event = event(&Notification {
                identifier: &identifier,
                time: Cdtime::from_seconds(1),
                severity: Severity::Warning,
                message,
            });
            assert_eq!(event.time_ns, 1_000_000_000);
            notifications.add(&event);
        }
        let line = notifications.take().unwrap();
        assert!(notifications.take().is_none());
        line
    }

    #[test]
    fn the_last_one_is_shown_and_all_are_counted() {
        for (names, message, count, want) in [
            (
                ["web1", "df", "root", "percent_bytes", "free"],
                &b"is 3"[..],
                1,
                "1 notification: warning of web1/df-root/percent_bytes-free: is 3",
            ),
            (
                ["web1", "", "", "", ""],
                b"down",
                3,
                "3 notifications, the last: warning of web1: down",
            ),
            (["", "", "", "", ""], b"?", 1, "1 notification: warning: ?"),
            (
                ["a\n", "", "", "", ""],
                b"\x1b[2J",
                1,
                "1 notification: warning of a\\x0a: \\x1b[2J",
            ),
        ] {
            assert_eq!(line(names, message, count), want);
        }
    }
}
