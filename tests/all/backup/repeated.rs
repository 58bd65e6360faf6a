//! `[backup]`: a process of `kymo serve` backs up again and again, to a folder and to a bucket; its outcomes are on the page, in
//! `/metrics` and in `kymo status`. Whatever becomes of it costs backups alone.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kymo_tests::machine::{Tmpfs, must_skip, skipped};
use kymo_tests::s3_server::{BUCKET, S3Server};
use kymo_tests::served::{Served, ask, eventually, kill, status_of};
use kymo_tests::{Scratch, run, stdout_of};
use serde_json::Value;

use super::{Place, files};

/// Word of the process.
const WORD: &str = "backup-every";

/// A `kymo serve` with a table `[backup]`.
struct BackedUp {
    place: Place,
}

impl BackedUp {
    fn start(scratch: Scratch, table: &str) -> BackedUp {
        let place = Place::with(scratch, &format!("[backup]\n{table}"));
        BackedUp { place }
    }

    fn to_folder(name: &str) -> BackedUp {
        let scratch = Scratch::new(name);
        let table = format!("to = \"{}\"", scratch.text("to"));
        BackedUp::start(scratch, &table)
    }

    fn served(&mut self) -> &mut Served {
        self.place.served.as_mut().expect("kymo serve")
    }

    fn restart(&mut self) {
        self.place.served = None;
        self.place.start();
    }

    fn text(&self, path: &str) -> String {
        let answer = ask(&self.place.address, "GET", path, "", "");
        answer.map_or_else(String::new, |(_, body)| body)
    }

    fn status(&self) -> Option<Value> {
        serde_json::from_str(&self.text("/kymo/v1/status")).ok()
    }

    /// `backup` of the status, once it is so.
    fn has(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        let backup = || Some(self.status()?["backup"].clone()).filter(|backup| is_so(backup));
        eventually(backup).unwrap_or_else(|| {
            let said = self.place.served.as_ref().map(|served| &served.said);
            panic!("{} {said:?}", self.text("/kymo/v1/status"))
        })
    }

    fn has_made_one(&self) -> Value {
        self.has(|backup| backup["backups"].as_u64() >= Some(1))
    }

    fn state(&self) -> PathBuf {
        self.place.scratch.path("data/backup/state")
    }
}

/// Restored files, with some of the store and of the recording.
fn restored_files(from: &[&str], to: &Path) -> Vec<PathBuf> {
    let to_text = to.display().to_string();
    let output = run(&[&["restore"], from, &[&to_text]].concat());
    assert!(output.status.success(), "{output:?}");
    let files = files(to);
    for part in ["/store/journal-", "/tail-"] {
        let has = files
            .iter()
            .any(|path| path.to_string_lossy().contains(part));
        assert!(has, "{part} {files:?}");
    }
    files
}

fn has_text(path: &Path, text: &str) -> bool {
    let bytes = fs::read(path).expect("a file");
    String::from_utf8_lossy(&bytes).contains(text)
}

#[test]
fn a_folder_is_backed_up_and_failures_are_told() {
    let scratch = Scratch::new("backup-every");
    let to = scratch.text("to");
    // A file is no folder.
    fs::write(&to, "").expect("a file");
    let table = format!("to = \"{to}\"\nevery = \"1m\"\nkeep = \"2h\"");
    let mut hub = BackedUp::start(scratch, &table);
    let failed = hub.has(|backup| backup["failures"].as_u64() >= Some(1));
    assert_eq!(
        (&failed["failed"], &failed["newest"]),
        (&Value::Bool(true), &Value::Null)
    );
    assert_eq!(
        (&failed["error"], &failed["to"]),
        (&Value::Null, &Value::Null),
        "whoever asks without a token sees no places"
    );
    let status = stdout_of(&["status", &hub.place.text("data")]);
    assert!(
        status.contains(&format!("backup: newest - in {to}, every 60 s, 0 made, "))
            && status.contains("; the last failed: cannot "),
        "{status}"
    );
    fs::remove_file(&to).expect("removed");
    fs::create_dir(&to).expect("a folder");
    let made = hub.has_made_one();
    assert_eq!(made["failed"], Value::Bool(false));
    assert!(made["age"].as_f64() < Some(60.0) && made["sent_bytes"].as_u64() > Some(0));
    hub.served().has_said("kymo: backups are made again");
    let metrics = hub.text("/metrics");
    for line in [
        "kymo_backup_age_seconds ",
        "kymo_backups_total 1\n",
        "kymo_backup_sent_bytes_total ",
        "kymo_backup_left_out_files 0\n",
    ] {
        assert!(metrics.contains(line), "{line}");
    }
    let restored = hub.place.scratch.path("restored");
    restored_files(&[&to], &restored);
    assert_eq!(hub.place.verify().0, Some(0));
}

#[test]
fn the_process_has_no_rights_and_no_token_is_in_its_backups() {
    let mut hub = BackedUp::to_folder("backup-every-rights");
    hub.has_made_one();
    let line = hub.served().has_said("backup: ");
    assert!(line.contains("seccomp ("), "{line}");
    let child = hub.served().child(WORD).expect("a process");
    assert_eq!(status_of(child, "CapEff"), ["0000000000000000"]);
    let owner = fs::metadata(hub.place.scratch.path("data")).expect("a folder");
    let user = owner.uid().to_string();
    assert_eq!(status_of(child, "Uid"), [&*user; 4]);
    let data = hub.place.scratch.path("data");
    let token = fs::read_to_string(data.join("token")).expect("a token");
    let copied = files(&hub.place.scratch.path("to"));
    restored_files(
        &[&hub.place.text("to")],
        &hub.place.scratch.path("restored"),
    );
    for path in copied {
        assert!(!has_text(&path, token.trim()), "{}", path.display());
    }
}

/// A process that is killed is started again; a process that stops delays neither values, page nor the end of kymo serve.
#[test]
fn a_process_that_dies_or_stops_costs_backups_alone() {
    let mut hub = BackedUp::to_folder("backup-every-dies");
    let newest = hub.has_made_one()["newest"].clone();
    let child = hub.served().child(WORD).expect("a process");
    kill("-KILL", child);
    let next = hub.served().next_child(WORD, child);
    kill("-STOP", next);
    let mut stream = hub.place.writer();
    hub.place.write(&mut stream, 0..100);
    let edge = || hub.status()?["thru"].as_f64();
    let before = edge();
    eventually(|| edge().filter(|&now| Some(now) > before)).expect("samples");
    assert_eq!(hub.has(|_| true)["newest"], newest);
    hub.restart();
    let again = hub.served().child(WORD);
    assert_ne!(again, Some(next));
}

#[test]
fn the_newest_backup_is_known_after_a_restart() {
    let mut hub = BackedUp::to_folder("backup-every-again");
    let newest = hub.has_made_one()["newest"].clone();
    assert!(newest.is_f64());
    let noted = |hub: &BackedUp| fs::metadata(hub.state()).map(|file| file.ino()).ok();
    let before = noted(&hub);
    hub.restart();
    eventually(|| noted(&hub).filter(|now| Some(*now) != before)).expect("a note");
    let backup = hub.has(Value::is_object);
    assert_eq!(
        (&backup["newest"], &backup["backups"]),
        (&newest, &Value::from(1))
    );
    // Backups that are gone are no backups.
    hub.place.served = None;
    fs::remove_dir_all(hub.place.scratch.path("to")).expect("removed");
    hub.place.start();
    let made = hub.has(|backup| backup["backups"].as_u64() == Some(2));
    assert_ne!(made["newest"], newest);
}

#[test]
fn a_full_folder_is_a_failure_until_it_has_room() {
    if must_skip(&["mount", "umount"]) {
        return;
    }
    let scratch = Scratch::new("backup-every-full");
    let Some(_disk) = Tmpfs::mount(&scratch.path("to"), "8m") else {
        return skipped("nothing can be mounted here");
    };
    let filler = scratch.path("to/filler");
    assert!(fs::write(&filler, vec![1; 9 << 20]).is_err());
    let table = format!("to = \"{}\"\nevery = \"1m\"", scratch.text("to"));
    let hub = BackedUp::start(scratch, &table);
    hub.has(|backup| backup["failures"].as_u64() >= Some(1));
    let status = stdout_of(&["status", &hub.place.text("data")]);
    assert!(status.contains("No space left on device"), "{status}");
    fs::remove_file(&filler).expect("room");
    assert_eq!(hub.has_made_one()["failed"], Value::Bool(false));
    assert_eq!(hub.place.verify().0, Some(0));
}

#[test]
fn a_bucket_is_backed_up_without_files_or_rights() {
    let scratch = Scratch::new("backup-every-s3");
    let Some(server) = S3Server::start(&scratch) else {
        return;
    };
    let keys = server.keys.display().to_string();
    let endpoint = format!("http://127.0.0.1:{}", server.port);
    let table =
        format!("to = \"s3://{BUCKET}/a\"\nendpoint = \"{endpoint}\"\ncredentials = \"{keys}\"");
    let mut hub = BackedUp::start(scratch, &table);
    let line = hub.served().has_said("backup: ");
    assert!(
        line.contains("seccomp (no listening, no programs)"),
        "{line}"
    );
    let newest = hub.has_made_one()["newest"].clone();
    let place = format!("s3://{BUCKET}/a");
    let from = ["--endpoint", &endpoint, "--credentials", &keys, &place];
    let restored = restored_files(&from, &hub.place.scratch.path("restored"));
    let secret = fs::read_to_string(&server.keys).expect("keys");
    let secret = secret.lines().last().expect("a line");
    let secret = secret.split(" = ").nth(1).expect("a secret");
    for path in restored.into_iter().chain([hub.state()]) {
        assert!(!has_text(&path, secret), "{}", path.display());
    }
    // A server that does not answer may still have the newest backup.
    drop(server);
    let noted = |hub: &BackedUp| fs::metadata(hub.state()).map(|file| file.ino()).ok();
    let before = noted(&hub);
    hub.restart();
    eventually(|| noted(&hub).filter(|now| Some(*now) != before)).expect("a note");
    assert_eq!(hub.has(Value::is_object)["newest"], newest);
}

#[test]
fn a_store_elsewhere_is_refused() {
    let scratch = Scratch::new("backup-every-elsewhere");
    let config = format!(
        "user = \"\"\n[store]\nfolder = \"{}\"\n[backup]\nto = \"{}\"\n",
        scratch.text("store"),
        scratch.text("to")
    );
    fs::write(scratch.path("kymo.toml"), config).expect("a file");
    let (config, data) = (scratch.text("kymo.toml"), scratch.text("data"));
    let output = run(&["serve", "--config", &config, "--data", &data]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("cannot use [backup]: [store] folder is "),
        "{said}"
    );
}
