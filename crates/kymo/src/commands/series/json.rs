//! The lists of `kymo series` as JSON, an object a line.

use kymo_query::stored;
use kymo_wire::keeper::{Event, SeriesInfo};
use serde_json::{Value as Json, json};

/// A series as JSON. Unknown values are `null`; a name that is not UTF-8 is followed by its bytes.
pub(super) fn series(info: &SeriesInfo) -> Json {
    let columns = info.columns.iter();
    let columns = columns.map(|(name, kind)| json!({"name": text(name), "kind": text(kind)}));
    let mut object = json!({
        "name": text(&info.name),
        "step": Some(info.step).filter(|&step| step > 0),
        "last": Some(info.last).filter(|&last| last > 0.0),
        "columns": columns.collect::<Vec<Json>>(),
    });
    if std::str::from_utf8(&info.name).is_err() {
        object["bytes"] = json!(info.name);
    }
    object
}

/// An event as JSON; its time is in seconds since 1970.
pub(super) fn event(event: &Event) -> Json {
    json!({
        "time": event.time_ns as f64 / 1e9,
        "kind": stored::mark(event).kind.name(),
        "host": text(&event.host),
        "plugin": text(&event.plugin),
        "plugin_instance": text(&event.plugin_instance),
        "type": text(&event.type_name),
        "type_instance": text(&event.type_instance),
        "message": text(&event.message),
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_wire::collectd::Severity;

    #[test]
    fn a_series_as_json() {
        let mut info = SeriesInfo {
            name: b"web1/load/lo\"ad.rrd".to_vec(),
            last: 1e9 + 0.25,
            step: 10,
            columns: vec![(b"shortterm".to_vec(), b"GAUGE".to_vec())],
        };
        let columns = r#"[{"kind":"GAUGE","name":"shortterm"}]"#;
        let want = format!(
            r#"{{"columns":{columns},"last":1000000000.25,"name":"web1/load/lo\"ad.rrd","step":10}}"#
        );
        assert_eq!(series(&info).to_string(), want);
        info.name = b"\xff\n".to_vec();
        (info.last, info.step, info.columns) = (0.0, 0, Vec::new());
        let want = r#"{"bytes":[255,10],"columns":[],"last":null,"name":"\ufffd\n","step":null}"#;
        let want = want.replace("\\ufffd", "\u{fffd}");
        assert_eq!(series(&info).to_string(), want);
    }

    #[test]
    fn an_event_as_json() {
        let one = Event {
            time_ns: 1_000_000_000_500_000_000,
            severity: Severity::Failure,
            host: b"core1".to_vec(),
            plugin: b"poll".to_vec(),
            plugin_instance: Vec::new(),
            type_name: Vec::new(),
            type_instance: Vec::new(),
            message: b"does not answer\n".to_vec(),
        };
        let want = r#"{"host":"core1","kind":"failure","message":"does not answer\n","plugin":"poll","plugin_instance":"","time":1000000000.5,"type":"","type_instance":""}"#;
        assert_eq!(event(&one).to_string(), want);
    }
}
