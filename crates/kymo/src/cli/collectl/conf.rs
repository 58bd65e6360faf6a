//! collectl.conf: its settings that have a meaning here, as words of a command line. Settings about paths of other programs,
//! Lustre and InfiniBand are skipped.

use std::path::Path;

/// Longest file that is read.
const SIZE_MAX: u64 = 1 << 20;

/// Settings of a file.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct CollectlConf {
    /// `DaemonCommands`: words before those of the command line, with `-D`.
    pub(crate) daemon_words: Vec<String>,
    /// Switches with values, for a command line that does not have them.
    pub(crate) defaults: Vec<(&'static str, String)>,
}

/// Reads a file, or the `collectl.conf` of a folder.
pub(crate) fn read(path: &Path) -> Result<CollectlConf, String> {
    let path = match path.is_dir() {
        true => path.join("collectl.conf"),
        false => path.to_path_buf(),
    };
    let mut text = String::new();
    std::fs::File::open(&path)
        .and_then(|file| {
            use std::io::Read as _;
            file.take(SIZE_MAX).read_to_string(&mut text)
        })
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Ok(parse(&text))
}

/// Reads lines `Key = value`; `#` at the begin marks a remark.
pub(crate) fn parse(text: &str) -> CollectlConf {
    let mut conf = CollectlConf::default();
    let mut intervals = [None, None, None];
    let mut limits: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        // Text after a number is a remark.
        let first = value
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_string();
        match key {
            "DaemonCommands" => conf.daemon_words = words(value),
            "Interval" => intervals[0] = Some(first),
            "Interval2" => intervals[1] = Some(first),
            "Interval3" => intervals[2] = Some(first),
            "LimSVC" => limits.push(format!("SVC:{first}")),
            "LimIOS" => limits.push(format!("IOS:{first}")),
            "LimBool" => limits.push(if first == "1" { "AND" } else { "OR" }.into()),
            "DiskFilter" => conf.defaults.push(("--dskfilt", of_names(value))),
            // Below 1 there is no limit.
            "DefNetSpeed" => conf.defaults.extend(net_speed(&first)),
            "Passwd" => conf.defaults.push(("--passwd", first)),
            _ => {}
        }
    }
    if intervals.iter().any(Option::is_some) {
        let text: Vec<String> = intervals
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect();
        let text = text.join(":");
        conf.defaults
            .push(("-i", text.trim_end_matches(':').into()));
    }
    if !limits.is_empty() {
        conf.defaults.push(("-l", limits.join("-")));
    }
    conf
}

fn net_speed(text: &str) -> Option<(&'static str, String)> {
    let speed: i64 = text.parse().ok()?;
    Some(("--defnetspeed", speed.max(0).to_string()))
}

/// A pattern for lines of /proc/diskstats, where a blank stands before and after a name, as a pattern for names.
fn of_names(pattern: &str) -> String {
    let pattern = pattern.strip_prefix('/').unwrap_or(pattern);
    let pattern = pattern.strip_suffix('/').unwrap_or(pattern);
    let words = pattern.split('|').map(|word| {
        let begins = if word.starts_with(' ') { "^" } else { "" };
        let ends = if word.ends_with(' ') { "$" } else { "" };
        format!("{begins}{}{ends}", word.trim_matches(' '))
    });
    words.collect::<Vec<_>>().join("|")
}

/// Words between blanks; quotes keep blanks.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (c, quote) {
            (_, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used() {
        let conf = parse(
            "# DaemonCommands = -x\nDaemonCommands = -f /var/log/collectl -r00:00,7 -m -F60 -s+YZ --comment 'two words'\nPQuery = /usr/bin/perfquery\nInterval = 5\nInterval2 = 30\nLimSVC = 40 # ms\nLimBool = 1\nDefNetSpeed=1000\nPasswd = /etc/users\nDiskFilter = /hd[ab] | sd[a-z]+ |dm-\\d+ |xvd/\nnonsense\n",
        );
        assert_eq!(
            conf.daemon_words,
            [
                "-f",
                "/var/log/collectl",
                "-r00:00,7",
                "-m",
                "-F60",
                "-s+YZ",
                "--comment",
                "two words"
            ]
        );
        assert_eq!(
            conf.defaults,
            [
                ("--defnetspeed", "1000".to_string()),
                ("--passwd", "/etc/users".to_string()),
                ("--dskfilt", "hd[ab]$|^sd[a-z]+$|dm-\\d+$|xvd".to_string()),
                ("-i", "5:30".to_string()),
                ("-l", "SVC:40-AND".to_string())
            ]
        );
        assert_eq!(parse(""), CollectlConf::default());
        for (line, value) in [
            ("-1", Some("0")),
            ("0", Some("0")),
            ("100 # Mb", Some("100")),
            ("fast", None),
        ] {
            let conf = parse(&format!("DefNetSpeed = {line}\n"));
            let found = conf.defaults.first().map(|(_, value)| value.as_str());
            assert_eq!(found, value, "{line}");
        }
    }
}
