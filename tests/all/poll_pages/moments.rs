//! Pages at the wrong moment: a poller is killed while it writes, a configuration names other folders while it runs, `kymo serve`
//! polls.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kymo_agentfarm::{Farm, Settings};
use kymo_tests::served::{Served, eventually};
use kymo_tests::{Scratch, kymo};

/// Targets of the configuration that is interrupted.
const TARGETS: usize = 20;
/// Runs that are killed.
const KILLS: u32 = 30;

fn farm() -> Farm {
    let farm = Farm::start(Settings {
        first: [127, 0, 21, 90].into(),
        port: 0,
        devices: 1,
        interfaces: 4,
        community: b"public".to_vec(),
    });
    farm.expect("a farm")
}

fn configuration(farm: &Farm, [logs, pages, images]: [&Path; 3], targets: usize) -> String {
    for folder in [logs, pages, images] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    let mut text = format!(
        "LogDir: {}\nHtmlDir: {}\nImageDir: {}\n",
        logs.display(),
        pages.display(),
        images.display()
    );
    for number in 0..targets {
        text += &format!(
            "Target[t{number}]: {}:public@{}:{}::::2\nTitle[t{number}]: T\nMaxBytes[t{number}]: 1000\n",
            1 + number % 4,
            farm.address(0),
            farm.settings().port
        );
    }
    text
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("a name").path()).collect()
}

/// Panics if a file is a part of one; returns the number of unfinished ones, which no web server may read.
fn judge(folder: &Path) -> usize {
    use std::os::unix::fs::PermissionsExt as _;
    let mut unfinished = 0;
    for path in files(folder) {
        let bytes = std::fs::read(&path).expect("a file");
        let is_whole = match path.extension().and_then(|end| end.to_str()) {
            Some("png") => bytes.ends_with(b"IEND\xaeB`\x82"),
            Some("html") => bytes.ends_with(b"</html>\n"),
            Some("log" | "old") => bytes.ends_with(b"\n"),
            _ if path
                .file_name()
                .is_some_and(|name| name.as_encoded_bytes()[0] == b'.') =>
            {
                true
            }
            _ => {
                unfinished += 1;
                let mode = std::fs::metadata(&path)
                    .expect("a file")
                    .permissions()
                    .mode();
                // A whole file has its mode before it has its name; a log's former one goes by this name to `.old`.
                let is_log = path.to_string_lossy().contains(".log.");
                mode & 0o077 == 0
                    || is_log && bytes.ends_with(b"\n")
                    || bytes.ends_with(b"</html>\n")
                    || bytes.ends_with(b"IEND\xaeB`\x82")
            }
        };
        assert!(is_whole, "{} has {} bytes", path.display(), bytes.len());
    }
    unfinished
}

#[test]
fn a_killed_poller_leaves_no_part_of_a_page() {
    let scratch = Scratch::new("poll-pages-killed");
    let work = scratch.path("w");
    let config = scratch.path("mrtg.cfg");
    let farm = farm();
    std::fs::write(&config, configuration(&farm, [&work; 3], TARGETS)).expect("written");
    let poll = || {
        let mut command = Command::new(kymo());
        command.arg("poll").arg(&config).stderr(Stdio::null());
        command.spawn().expect("it is started")
    };
    let began = Instant::now();
    assert!(poll().wait().expect("its end").success());
    let whole = began.elapsed();
    for round in 0..KILLS {
        // All graphs are due.
        for path in files(&work) {
            if path.extension().is_some_and(|end| end == "png") {
                std::fs::remove_file(path).expect("removed");
            }
        }
        let mut child = poll();
        std::thread::sleep(whole * (round + 1) / KILLS);
        child.kill().expect("killed");
        child.wait().expect("its end");
        judge(&work);
    }
    // A file that was left by a kill goes, and those of others stay.
    std::fs::write(work.join("t3-week.png.0123abcd"), "part").expect("written");
    std::fs::write(work.join("t3.log.fedcba98"), "part").expect("written");
    std::fs::write(work.join("other.png.0123abcd"), "part").expect("written");
    assert!(poll().wait().expect("its end").success());
    judge_whole(&work);
}

fn judge_whole(work: &Path) {
    std::fs::remove_file(work.join("other.png.0123abcd")).expect("it has stayed");
    assert_eq!(judge(work), 0, "{:?}", files(work));
    for number in 0..TARGETS {
        for end in ["-day.png", "-week.png", "-month.png", "-year.png", ".html"] {
            assert!(
                work.join(format!("t{number}{end}")).exists(),
                "t{number}{end}"
            );
        }
    }
}

fn is_there(path: PathBuf) {
    let found = eventually(|| path.exists().then_some(()));
    assert!(found.is_some(), "no {}", path.display());
}

#[test]
fn serve_writes_pages_and_moves_with_its_configuration() {
    let scratch = Scratch::new("poll-pages-serve");
    let (logs, config) = (scratch.path("logs"), scratch.path("devices.cfg"));
    let farm = farm();
    let put = |html: &str, images: &str| {
        let text = configuration(
            &farm,
            [&logs, &scratch.path(html), &scratch.path(images)],
            1,
        );
        let beside = scratch.path("devices.cfg.new");
        std::fs::write(&beside, text).expect("a configuration");
        std::fs::rename(&beside, &config).expect("renamed");
    };
    put("html", "images");
    let settings = format!(
        "user = \"\"\n[listen]\ncollectd = []\n[poll]\nmrtg = [\"{}\"]\n",
        config.display()
    );
    let mut served = Served::configured(&scratch, &scratch.path("data"), &settings);
    served.has_said("polling with");
    is_there(scratch.path("html/t0.html"));
    is_there(scratch.path("images/t0-year.png"));
    // The poller has shut itself out of other folders: it begins again.
    put("html2", "images2");
    served.hears("has other folders or servers");
    is_there(scratch.path("images2/t0-day.png"));
    is_there(scratch.path("html2/t0.html"));
    let page = std::fs::read_to_string(scratch.path("html2/t0.html")).expect("a page");
    assert!(page.contains("src=\"../images2/t0-day.png\""), "{page}");
    assert_eq!(
        judge(&scratch.path("html2")) + judge(&scratch.path("images2")),
        0
    );
}

#[test]
fn a_poller_of_its_own_says_that_its_folders_have_moved() {
    let scratch = Scratch::new("poll-pages-moved");
    let (logs, config) = (scratch.path("logs"), scratch.path("devices.cfg"));
    let farm = farm();
    let put = |html: &str| {
        let folders = [&logs, &scratch.path(html), &scratch.path("images")];
        let text = configuration(&farm, folders.map(PathBuf::as_path), 1);
        std::fs::write(&config, text).expect("a configuration");
    };
    put("html");
    let (log, file) = (scratch.text("log"), scratch.text("devices.cfg"));
    let child = Command::new(kymo())
        .args(["poll", "--foreground", "--logging", &log, &file])
        .spawn();
    let running = kymo_tests::Running(child.expect("it is started"));
    is_there(scratch.path("html/t0.html"));
    put("html2");
    running.signal("-HUP");
    let said = eventually(|| {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.contains("start kymo poll again").then_some(())
    });
    assert!(said.is_some(), "{:?}", std::fs::read_to_string(&log));
    std::thread::sleep(Duration::from_millis(200));
    assert!(!scratch.path("html2/t0.html").exists());
}

/// Directory of a target was denied where it is a link out of LogDir, as customers' folders are; after a folder was restored
/// from a copy, a daemon stored nothing any more and did not say why.
#[test]
fn a_directory_may_be_a_link_and_a_restored_folder_is_another_one() {
    let scratch = Scratch::new("poll-pages-linked");
    let (work, real) = (scratch.path("work"), scratch.path("customers/one"));
    for folder in [&work, &real] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    std::os::unix::fs::symlink("../customers/one", work.join("one")).expect("a link");
    let farm = farm();
    let target = format!(
        "Target[a]: 1:public@{}:{}::::2\nTitle[a]: T\nMaxBytes[a]: 1000\nDirectory[a]: one\n",
        farm.address(0),
        farm.settings().port
    );
    let text = format!("WorkDir: {}\n{target}", work.display());
    let (log, file) = (scratch.text("log"), scratch.text("a.cfg"));
    std::fs::write(&file, &text).expect("a configuration");
    let once = Command::new(kymo()).args(["poll", &file]).output();
    let once = once.expect("it is started");
    assert_eq!(once.status.code(), Some(0), "{once:?}");
    for name in ["a.log", "a.html", "a-day.png"] {
        assert!(real.join(name).exists(), "{name}");
    }
    let child = Command::new(kymo())
        .args(["poll", "--foreground", "--logging", &log, &file])
        .spawn();
    let _running = kymo_tests::Running(child.expect("it is started"));
    let says = |wanted: &str| {
        let said = eventually(|| {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            text.contains(wanted).then_some(())
        });
        assert!(said.is_some(), "{:?}", std::fs::read_to_string(&log));
    };
    says("polling with");
    std::fs::rename(&work, scratch.path("before")).expect("renamed");
    std::fs::create_dir_all(&work).expect("a folder");
    says("start kymo poll again");
}
