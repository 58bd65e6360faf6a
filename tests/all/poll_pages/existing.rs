//! Files that are there before a run, of both programs side by side: their permissions and owners, a log of the future.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use kymo_poll::pages::comments;
use kymo_tests::machine;

use super::sides::Sides;
use crate::poll_logs::case::{Random, log};

const CONFIG: &str = "WorkDir: WORK\nWriteExpires: yes\nTarget[t]: `echo 100; echo 200`\nMaxBytes[t]: 1000\nTitle[t]: T\n\
                      Options[t]: gauge\nCloneDirectory[t]: copies\n";

/// Files with other permissions; true where MRTG keeps them.
const CHANGED: [(&str, u32, bool); 4] = [
    ("t.html", 0o600, true),
    ("t.html.meta", 0o660, true),
    ("t-day.png", 0o604, false),
    ("t.log", 0o666, false),
];

/// Permissions and owners of files by name, but for those of one program alone.
fn access(work: &Path) -> BTreeMap<String, (u32, u32, u32)> {
    let folders = [work.to_path_buf(), work.join("copies")];
    let entries = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("a folder"));
    let files = entries.map(|entry| entry.expect("a name").path());
    let files = files.filter(|path| path.is_file());
    let of = files.map(|path| {
        let name = path.strip_prefix(work).expect("a path");
        let stat = path.metadata().expect("a file");
        let access = (stat.mode() & 0o7777, stat.uid(), stat.gid());
        (name.to_string_lossy().into_owned(), access)
    });
    of.filter(|(name, _)| !name.starts_with(['.', 'm']))
        .collect()
}

#[test]
fn files_keep_their_owners_and_follow_the_umask() {
    if machine::must_skip(&["mrtg", "rateup"]) {
        return;
    }
    let sides = Sides::run("poll-pages-access", CONFIG, |work| {
        std::fs::create_dir(work.join("copies")).expect("a folder");
    });
    let both = || [&sides.ours, &sides.theirs].map(|work| access(work));
    let [ours, theirs] = both();
    assert_eq!(ours, theirs);
    assert_eq!(ours["t.html"].0, 0o640);
    assert!(ours.len() > 15, "{ours:?}");
    // Only root may give files to others.
    let own = std::fs::metadata(&sides.ours).expect("a folder");
    let others = match own.uid() {
        0 => (Some(1), Some(2)),
        _ => (None, None),
    };
    for work in [&sides.ours, &sides.theirs] {
        for (name, mode, _) in CHANGED {
            let path = work.join(name);
            chown(&path, others.0, others.1).expect("another owner");
            let permissions = PermissionsExt::from_mode(mode);
            std::fs::set_permissions(&path, permissions).expect("other permissions");
        }
    }
    for (said, code) in sides.both(CONFIG) {
        assert_eq!(code, Some(0), "{said}");
    }
    let [ours, theirs] = both();
    let [user, group] = [others.0.unwrap_or(own.uid()), others.1.unwrap_or(own.gid())];
    // MRTG keeps those of files that it writes in place, which are pages and their times to expire.
    for (name, mode, both_keep) in CHANGED {
        assert_eq!(ours[name], (mode, user, group), "{name}");
        assert_eq!(theirs[name] == ours[name], both_keep, "{name}");
    }
    assert_eq!(ours["t.old"], ours["t.log"]);
    assert_eq!(ours["t-week.png"], theirs["t-week.png"]);
}

#[test]
fn a_log_of_the_future_stays_and_is_drawn() {
    if machine::must_skip(&["mrtg", "rateup"]) {
        return;
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a time");
    // The clock was set back by a day; graphs are drawn within this second, or the next one.
    let before_s = i64::try_from(now.as_secs()).expect("a time") + 100_000;
    let text = log(&mut Random(5), before_s);
    let config = CONFIG.replace("CloneDirectory[t]: copies\n", "");
    let (sides, [ours, theirs]) = Sides::outcomes("poll-pages-future", &config, |work| {
        std::fs::write(work.join("t.log"), &text).expect("a log");
    });
    assert!(
        ours.0.contains("which is later than") && theirs.0.contains("time warp"),
        "{ours:?} {theirs:?}"
    );
    for work in [&sides.ours, &sides.theirs] {
        let after = std::fs::read_to_string(work.join("t.log")).expect("a log");
        assert!(after == text, "{} was changed", work.display());
    }
    let [ours, theirs] = sides
        .texts("t.html")
        .map(|page| comments::read(page.as_bytes()));
    // The day's newest steps may differ by one, if five minutes passed between both.
    assert_eq!(ours[1..], theirs[1..]);
    assert!(ours[1][0].is_some_and(|max| max > 0), "{ours:?}");
    for name in ["t-day.png", "t-week.png", "t-month.png", "t-year.png"] {
        assert!(
            sides.ours.join(name).is_file() && sides.theirs.join(name).is_file(),
            "{name}"
        );
    }
}
