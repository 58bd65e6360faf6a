//! Backups in a bucket of a real server, also through a proxy that fails: restored values are the served ones, and an error
//! leaves each backup before it whole.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use kymo_backup::ContentHash;
use kymo_tests::s3_server::{BUCKET, S3Fault, S3Proxy, S3Server, write_keys};
use kymo_tests::served::eventually;
use kymo_tests::{Running, kymo, run};

use super::{Place, samples};

/// A served folder, a bucket, and a proxy in between.
struct Kept {
    place: Place,
    server: S3Server,
    proxy: S3Proxy,
    to: String,
}

/// Exit code and text of a command.
fn text_of(output: Output) -> (Option<i32>, String) {
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

impl Kept {
    /// `None`: there is no server of S3, which is counted.
    fn new(name: &str) -> Option<Kept> {
        let place = Place::new(name);
        let server = S3Server::start(&place.scratch)?;
        Some(Kept {
            proxy: S3Proxy::before(&server),
            place,
            server,
            to: format!("s3://{BUCKET}/web-1"),
        })
    }

    /// Options that lead to the bucket.
    fn options(&self) -> [String; 4] {
        let keys = self.server.keys.display().to_string();
        let [endpoint, credentials] = ["--endpoint", "--credentials"].map(String::from);
        [endpoint, self.proxy.url(), credentials, keys]
    }

    fn run(&self, words: &[&str]) -> (Option<i32>, String) {
        let options = self.options();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        text_of(run(&[words, &options].concat()))
    }

    fn try_to_back_up(&self, more: &[&str]) -> (Option<i32>, String) {
        let data = self.place.text("data");
        self.run(&[&["backup", "--data", &data, &self.to], more].concat())
    }

    fn back_up(&self, more: &[&str]) -> String {
        let (code, text) = self.try_to_back_up(more);
        assert_eq!(code, Some(0), "{text}");
        text
    }

    fn restore(&self, name: &str) -> PathBuf {
        let (code, text) = self.run(&["restore", &self.to, &self.place.text(name)]);
        assert_eq!(code, Some(0), "{text}");
        self.place.scratch.path(name)
    }

    fn verify(&self) -> (Option<i32>, String) {
        self.run(&["verify", "--backup", &self.to])
    }

    fn live(&self) -> Vec<Vec<String>> {
        samples("--data", &self.place.scratch.path("data"))
    }
}

#[test]
fn a_bucket_takes_backups_and_gives_them_back() {
    let Some(kept) = Kept::new("s3-real") else {
        return;
    };
    let mut stream = kept.place.writer();
    let (code, text) = kept.run(&["restore", &kept.to, &kept.place.text("none")]);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains(&format!("cannot find a backup in {}", kept.to)),
        "{text}"
    );
    kept.place.write(&mut stream, 0..300);
    kept.back_up(&[]);
    kept.place.write(&mut stream, 300..400);
    kept.back_up(&[]);
    let live = kept.live();
    assert_eq!(samples("--open", &kept.restore("restored")), live);
    let (code, text) = kept.verify();
    assert!(
        code == Some(0) && text.contains("no damage: backups 2,"),
        "{text}"
    );
    let text = kept.back_up(&["--keep", "1h"]);
    assert!(text.contains("kymo: removed 2 old backups, "), "{text}");
    let (code, text) = kept.verify();
    assert!(
        code == Some(0) && text.contains("no damage: backups 1,"),
        "{text}"
    );
    assert_eq!(samples("--open", &kept.restore("again")), live);
    // Two at a time.
    kept.proxy.slow(Some(100_000));
    let (data, options) = (kept.place.text("data"), kept.options());
    let before = kept.proxy.requests();
    let child = Command::new(kymo())
        .args(["backup", "--data", &data, &kept.to])
        .args(&options)
        .stderr(Stdio::null())
        .spawn();
    let _first = Running(child.expect("kymo runs"));
    eventually(|| (kept.proxy.requests() > before).then_some(())).expect("a request");
    let (code, text) = kept.try_to_back_up(&[]);
    assert!(
        code == Some(2) && text.contains("another backup of it runs"),
        "{text}"
    );
}

#[test]
fn passing_failures_are_tried_again_and_others_are_errors() {
    let Some(kept) = Kept::new("s3-failures") else {
        return;
    };
    let mut stream = kept.place.writer();
    kept.place.write(&mut stream, 0..100);
    kept.proxy.fail_next("GET", S3Fault::SlowDown, 1);
    kept.proxy.fail_next("PUT", S3Fault::SlowDown, 2);
    kept.proxy.fail_next("PUT", S3Fault::WrongEtag, 1);
    kept.back_up(&[]);
    assert_eq!(kept.proxy.waiting(), 0);
    kept.proxy.fail_next("GET", S3Fault::CutShort, 2);
    let first = samples("--open", &kept.restore("first"));
    assert_eq!(kept.proxy.waiting(), 0);
    assert_eq!(first, kept.live());
    kept.place.write(&mut stream, 100..200);
    for (fault, says) in [
        (
            ("PUT", S3Fault::WrongEtag),
            "it has stored other bytes than were sent: its ETag is aaaaaaaa",
        ),
        (
            ("PUT", S3Fault::SlowDown),
            "it answers 503 Service Unavailable: SlowDown: Please reduce your request rate.",
        ),
        (("GET", S3Fault::CutShort), "cannot read the answer: "),
    ] {
        kept.proxy.fail_always(Some(fault));
        let (code, text) = kept.try_to_back_up(&[]);
        assert!(
            code == Some(2) && text.contains(says) && text.contains(&kept.to),
            "{fault:?}: {text}"
        );
        kept.proxy.fail_always(None);
        let (code, text) = kept.verify();
        assert!(code == Some(0) && text.contains("backups 1,"), "{text}");
    }
    assert_eq!(samples("--open", &kept.restore("still")), first);
    kept.back_up(&[]);
    assert_eq!(samples("--open", &kept.restore("last")), kept.live());
}

/// Objects that were cut and changed behind the back of all.
#[test]
fn damaged_objects_are_found_and_what_was_cut_is_sent_again() {
    let Some(kept) = Kept::new("s3-damage") else {
        return;
    };
    let mut stream = kept.place.writer();
    kept.place.write(&mut stream, 0..100);
    kept.back_up(&[]);
    // A first backup has one content for each file.
    let files = super::files(&kept.restore("first").join("store"));
    let bytes_of = |path: &PathBuf| fs::read(path).expect("a file");
    let longest = files.iter().max_by_key(|path| bytes_of(path).len());
    let whole = bytes_of(longest.expect("a file"));
    let hash = ContentHash::of(&whole).to_string();
    let below = format!("objects/{}/{hash}", &hash[..2]);
    let prefix = kept.to.split('/').next_back().expect("a prefix");
    let half = &whole[..whole.len() / 2];
    kept.server.replace(&format!("{prefix}/{below}"), half);
    let (code, text) = kept.verify();
    let says = format!(
        "{}/{below}: has {} bytes instead of {}",
        kept.to,
        half.len(),
        whole.len()
    );
    assert!(code == Some(1) && text.contains(&says), "{text}");
    let (code, text) = kept.run(&["restore", &kept.to, &kept.place.text("broken")]);
    assert!(
        code == Some(2) && text.contains("cannot restore store/"),
        "{text}"
    );
    assert!(super::files(&kept.place.scratch.path("broken")).is_empty());
    kept.back_up(&[]);
    assert_eq!(kept.verify().0, Some(0));
    // An object of the same length is found by its hash alone.
    let mut other = whole.clone();
    other[whole.len() / 3] ^= 1;
    kept.server.replace(&format!("{prefix}/{below}"), &other);
    let (code, text) = kept.verify();
    let says = format!("{}/{below}: is damaged", kept.to);
    assert!(code == Some(1) && text.contains(&says), "{text}");
    let text = kept.back_up(&["--check"]);
    assert!(text.contains(", 1 content had changed"), "{text}");
    assert_eq!(kept.verify().0, Some(0));
    assert_eq!(samples("--open", &kept.restore("restored")), kept.live());
}

#[test]
fn a_backup_killed_in_any_request_changes_no_backup_before_it() {
    let Some(kept) = Kept::new("s3-kill") else {
        return;
    };
    let mut stream = kept.place.writer();
    kept.place.write(&mut stream, 0..100);
    kept.back_up(&[]);
    let first = samples("--open", &kept.restore("first"));
    let (data, options) = (kept.place.text("data"), kept.options());
    let mut killed = 0;
    loop {
        // The keeper takes values meanwhile.
        let n = 100 + 20 * i64::try_from(killed).expect("a small number");
        kept.place.write(&mut stream, n..n + 20);
        kept.proxy.hold_after(Some(killed));
        let child = Command::new(kymo())
            .args(["backup", "--data", &data, &kept.to])
            .args(&options)
            .stderr(Stdio::null())
            .spawn();
        let mut child = Running(child.expect("kymo runs"));
        let mut end = None;
        eventually(|| {
            end = child.0.try_wait().expect("a state");
            (end.is_some() || kept.proxy.held() > 0).then_some(())
        })
        .expect("a held request or an end");
        if let Some(status) = end {
            assert_eq!(status.code(), Some(0));
            break;
        }
        child.signal("-KILL");
        child.0.wait().expect("an end");
        kept.proxy.hold_after(None);
        let (code, text) = kept.verify();
        assert!(
            code == Some(0) && text.contains("backups 1,"),
            "request {killed}: {text}"
        );
        killed += 1;
    }
    kept.proxy.hold_after(None);
    assert!(killed > 2, "{killed}");
    assert_eq!(samples("--open", &kept.restore("last")), kept.live());
    assert!(first[0].len() < kept.live()[0].len());
}

#[test]
fn keys_and_buckets_that_are_wrong_are_explained() {
    let Some(kept) = Kept::new("s3-words") else {
        return;
    };
    let (data, keys) = (
        kept.place.text("data"),
        kept.server.keys.display().to_string(),
    );
    let open = kept.place.scratch.path("open-keys");
    fs::copy(&kept.server.keys, &open).expect("a copy");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).expect("a mode");
    let wrong = kept.place.scratch.path("wrong-keys");
    write_keys(&wrong, "another");
    let (open, wrong) = (open.display().to_string(), wrong.display().to_string());
    let url = kept.proxy.url();
    for (to, endpoint, keys, says) in [
        (
            kept.to.as_str(),
            url.as_str(),
            wrong.as_str(),
            "403 Forbidden: SignatureDoesNotMatch",
        ),
        (
            &kept.to,
            &url,
            &open,
            "others can read it, or its group can write it (mode 0644); chmod 600 it",
        ),
        (
            &kept.to,
            &url,
            "/nowhere",
            "cannot read /nowhere: No such file or directory",
        ),
        (
            "s3://nowhere/a",
            &url,
            &keys,
            "cannot list s3://nowhere/a/backups: it answers 404 Not Found: NoSuchBucket",
        ),
        ("s3://../a", &url, &keys, "the name of its bucket has"),
        (&kept.to, "nowhere", &keys, "the endpoint \"nowhere\" "),
        (
            "ftp://a/b",
            &url,
            &keys,
            "backups are in a folder or in s3://BUCKET/PREFIX",
        ),
    ] {
        let words = [
            "backup",
            "--data",
            &data,
            to,
            "--endpoint",
            endpoint,
            "--credentials",
            keys,
        ];
        let (code, text) = text_of(run(&words));
        assert!(code == Some(2) && text.contains(says), "{says}: {text}");
        assert!(
            !text.contains("another\n") && !text.contains("secret"),
            "{text}"
        );
    }
    let (code, text) = text_of(run(&["backup", "--data", &data, &kept.to]));
    assert!(
        code == Some(2) && text.contains("give --credentials, a file with the keys"),
        "{text}"
    );
}
