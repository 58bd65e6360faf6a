//! The definition of a series, as INFO tells it in `key type value` lines.

use std::collections::BTreeMap;

/// Step and words of a definition, as CREATE takes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Definition {
    /// Seconds of a primary data point.
    pub(super) step: String,
    /// `DS:` and `RRA:` words.
    pub(super) words: Vec<String>,
}

/// Values of one source or archive, by their keys.
type Keys = BTreeMap<String, String>;

impl Definition {
    /// Reads the lines of INFO. `None`: words of CREATE cannot say it, as COMPUTE and predictions.
    pub(super) fn of_info(lines: &[Vec<u8>]) -> Option<Definition> {
        let mut step = None;
        // INFO has sources and archives in their order, each with all of its keys together.
        let (mut sources, mut archives) = (Vec::new(), Vec::new());
        for line in lines {
            let line = String::from_utf8_lossy(line);
            let mut parts = line.splitn(3, ' ');
            let (key, _, value) = (parts.next()?, parts.next()?, parts.next()?.trim());
            if key == "step" {
                step = Some(value.to_string());
            }
            for (word, all) in [("ds[", &mut sources), ("rra[", &mut archives)] {
                if let Some((name, key)) = key.strip_prefix(word).and_then(|it| it.split_once("]."))
                {
                    put(all, name, key, value);
                }
            }
        }
        let sources = sources.iter().map(|(name, keys)| source(name, keys));
        let words = sources.chain(archives.iter().map(|(_, keys)| archive(keys)));
        Some(Definition {
            step: step?,
            words: words.collect::<Option<_>>()?,
        })
    }
}

fn put(all: &mut Vec<(String, Keys)>, name: &str, key: &str, value: &str) {
    if all.last().is_none_or(|(last, _)| last != name) {
        all.push((name.into(), Keys::new()));
    }
    if let Some((_, keys)) = all.last_mut() {
        keys.insert(key.into(), value.into());
    }
}

fn source(name: &str, keys: &Keys) -> Option<String> {
    let kind = keys.get("type").filter(|&kind| kind != "COMPUTE")?;
    let heartbeat = keys.get("minimal_heartbeat")?;
    let [min, max] = ["min", "max"].map(|key| {
        let number: f64 = keys.get(key)?.parse().ok()?;
        Some(match number.is_nan() {
            true => "U".into(),
            false => number.to_string(),
        })
    });
    Some(format!("DS:{name}:{kind}:{heartbeat}:{}:{}", min?, max?))
}

fn archive(keys: &Keys) -> Option<String> {
    let cf = keys.get("cf")?;
    let is_plain = ["AVERAGE", "MIN", "MAX", "LAST"].contains(&cf.as_str());
    let xff: f64 = keys.get("xff").filter(|_| is_plain)?.parse().ok()?;
    Some(format!(
        "RRA:{cf}:{xff}:{}:{}",
        keys.get("pdp_per_row")?,
        keys.get("rows")?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Vec<u8>> {
        text.lines().map(|line| line.into()).collect()
    }

    const INFO: &str = "filename 2 a b.rrd\nrrd_version 2 0003\nstep 1 10\n\
                        ds[rx].index 1 0\nds[rx].type 2 DERIVE\nds[rx].minimal_heartbeat 1 20\n\
                        ds[rx].min 0 0.0000000000e+00\nds[rx].max 0 1.2500000000e+08\n\
                        ds[v].index 1 1\nds[v].type 2 GAUGE\nds[v].minimal_heartbeat 1 600\n\
                        ds[v].min 0 -1.5000000000e+00\nds[v].max 0 NaN\n\
                        rra[0].cf 2 AVERAGE\nrra[0].rows 1 1200\nrra[0].pdp_per_row 1 7\n\
                        rra[0].xff 0 1.0000000000e-01\nrra[0].cdp_prep[0].value 0 NaN\n\
                        rra[1].cf 2 MAX\nrra[1].rows 1 5\nrra[1].pdp_per_row 1 1\nrra[1].xff 0 0.0\n";

    #[test]
    fn info_becomes_words() {
        let read = Definition::of_info(&lines(INFO)).unwrap();
        assert_eq!(read.step, "10");
        assert_eq!(
            read.words,
            [
                "DS:rx:DERIVE:20:0:125000000",
                "DS:v:GAUGE:600:-1.5:U",
                "RRA:AVERAGE:0.1:7:1200",
                "RRA:MAX:0:1:5",
            ]
        );
        for (from, to) in [
            ("GAUGE", "COMPUTE"),
            ("MAX", "HWPREDICT"),
            ("step 1 10\n", ""),
            ("step 1 10\n", "step\n"),
            ("0.0000000000e+00", "?"),
            ("rra[1].rows 1 5\n", ""),
        ] {
            let other = lines(&INFO.replacen(from, to, 1));
            assert_eq!(Definition::of_info(&other), None, "{from} {to}");
        }
    }
}
