//! Pages of a configuration that both programs poll: the same files, elements, comments and numbers.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use kymo_agentfarm::{Farm, Settings};
use kymo_poll::batch::{About, Uptime};
use kymo_poll::pages::{PageFolders, TargetPage, comments};
use kymo_tests::{Scratch, kymo, machine};
use kymo_wire::mrtg_cfg::{self, Config};

use crate::poll_config::Disk;
use crate::poll_logs::case::{Random, log};

/// Keywords of targets, a target a line.
const TARGETS: [&str; 12] = [
    "",
    "Options[t]: growright, bits\nWithPeak[t]: ymw\nPageTop[t]: <h1>Traffic\\n</h1>\n <table><tr><td>System:</td></tr></table>",
    "Options[t]: gauge, nopercent, noinfo, integer\nShortLegend[t]: ms\nLegendI[t]: Round trip\nLegendO[t]:\nSuppress[t]: ym",
    "Options[t]: dorelpercent, avgpeak\nColours[t]: RED#ff0000,BLUE#0000ff,ROSE#800000,SKY#8080ff,GOLD#ffd700",
    "Options[t]: perhour, bits, nolegend, nobanner\nkMG[t]: n,,k\nFactor[t]: 0.5",
    "Options[t]: perminute\nkMG[t]: ,k\nShortLegend[t]: B/m\nkilo[t]: 1024",
    "Background[t]: #102030\nBodyTag[t]: class=\"x\"\nAddHead[t]: <link rel=\"icon\" href=\"a.png\" />\nPageFoot[t]: <hr />\\n<p>foot</p>",
    "BodyTag[t]: <BODY lang=\"de\">\nTextColor[t]: #aabbcc\nTimezone[t]: CET-1CEST",
    "Directory[t]: sub/deeper\nExtension[t]: htm",
    "Options[t]: noo\nLegend1[t]: One\nLegend2[t]: Two\nLegend3[t]: Three\nLegend4[t]: Four\nWithPeak[t]: w",
    "Options[t]: noi, dorelpercent\nLegend5[t]: Share of it",
    "Options[t]: bits\nShortLegend[t]: Bit\nkMG[t]: ,-,M\nSuppress[t]: d",
];

struct Site {
    scratch: Scratch,
    config: PathBuf,
    /// The device, which answers as long as the site is there.
    _farm: Farm,
}

impl Site {
    /// A configuration with logs of some years. `folders`: WorkDir alone, or one folder for each kind of file.
    fn new(name: &str, address: u8, folders: [&str; 3]) -> Site {
        let scratch = Scratch::new(name);
        let [logs, html, images] = folders.map(|folder| scratch.path(folder));
        for folder in [&logs, &html, &images] {
            std::fs::create_dir_all(folder).expect("a folder");
        }
        let farm = Farm::start(Settings {
            first: [127, 0, 21, address].into(),
            port: 0,
            devices: 1,
            interfaces: 4,
            community: b"public".to_vec(),
        });
        let farm = farm.expect("a farm");
        let agent = format!("public@{}:{}::::2", farm.address(0), farm.settings().port);
        let mut text = format!(
            "LogDir: {}\nHtmlDir: {}\nImageDir: {}\nRefresh: 777\n",
            logs.display(),
            html.display(),
            images.display()
        );
        let now_s = now().as_secs() as i64;
        for (number, keywords) in TARGETS.iter().enumerate() {
            let keywords = keywords.replace("[t]", &format!("[t{number}]"));
            let _ = writeln!(
                text,
                "Target[t{number}]: {}:{agent}\nTitle[t{number}]: Line {number} &amp; more\n\
                 MaxBytes[t{number}]: 12500000000\n{keywords}",
                1 + number % 4
            );
            let folder = match number {
                8 => logs.join("sub/deeper"),
                _ => logs.clone(),
            };
            std::fs::create_dir_all(&folder).expect("a folder");
            let random = &mut Random(number as u64 + 1);
            let log = log(random, now_s - 60);
            std::fs::write(folder.join(format!("t{number}.log")), log).expect("a log");
        }
        let config = scratch.path("mrtg.cfg");
        std::fs::write(&config, text).expect("a configuration");
        Site {
            scratch,
            config,
            _farm: farm,
        }
    }

    fn run(&self, mut poller: Command) {
        let output = poller
            .arg(&self.config)
            .env("LANG", "C")
            .env("TZ", "UTC")
            .output();
        let output = output.expect("it is started");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }

    fn read(&self) -> Config {
        let config = mrtg_cfg::read(self.config.as_os_str().as_bytes(), &mut Disk);
        config.unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    /// All files by their paths in the site, but for MRTG's own pictures.
    fn files(&self) -> Vec<PathBuf> {
        let base = self.scratch.path("");
        let (mut files, mut folders) = (Vec::new(), vec![base.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("a name").path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => files.push(path.strip_prefix(&base).expect("a path").to_path_buf()),
                }
            }
        }
        let name = |path: &Path| {
            path.file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        };
        files.retain(|path| !name(path).starts_with("mrtg") && !name(path).starts_with('.'));
        files.sort();
        files
    }
}

fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a time")
}

fn changed_s(path: &Path) -> i64 {
    let changed = std::fs::metadata(path).expect("a file").modified();
    let changed = changed.expect("a time").duration_since(UNIX_EPOCH);
    changed.expect("a time").as_secs() as i64
}

fn mrtg() -> Command {
    Command::new("/usr/bin/mrtg")
}

fn kymo_poll() -> Command {
    let mut command = Command::new(kymo());
    command.arg("poll");
    command
}

/// Tags, comments and texts of a page, without white space around them. Styles and the footer are each program's own.
fn pieces(page: &str) -> Vec<String> {
    let mut page = page.replace(['\n', '\t'], " ");
    for (begin, end) in [
        ("<style>", "</style>"),
        ("<!-- Begin MRTG Block -->", "<!-- End MRTG Block -->"),
    ] {
        if let (Some(from), Some(to)) = (page.find(begin), page.find(end)) {
            page.replace_range(from + begin.len()..to, "");
        }
    }
    let page = page.replace("<!-- MRTG 2.17.10 by kymo -->", "<!-- MRTG 2.17.10 -->");
    let page = page.replace('<', "\u{1}<").replace('>', ">\u{1}");
    let pieces = page.split('\u{1}').map(|piece| {
        let words: Vec<&str> = piece.split_whitespace().collect();
        words.join(" ")
    });
    pieces.filter(|piece| !piece.is_empty()).collect()
}

/// The words of a page about its device.
fn about(page: &str) -> Option<About> {
    let (_, sentence) = page.split_once("at which time ")?;
    let (name, rest) = sentence.split_once(" had been up for <strong>")?;
    let (uptime, _) = rest.split_once("</strong>")?;
    let name = name
        .strip_prefix("<strong>'")
        .and_then(|name| name.strip_suffix("'</strong>"));
    Some(About {
        uptime: Uptime::Words(uptime.as_bytes().into()),
        name: name.map(|name| name.as_bytes().into()),
    })
}

#[test]
fn a_page_has_the_elements_of_mrtgs() {
    if machine::must_skip(&["mrtg", "rateup"]) {
        return;
    }
    for folders in [["w", "w", "w"], ["logs", "web/pages", "web/images"]] {
        let site = Site::new("poll-pages-html", 70, folders);
        // In the second run missing figures have become 0.
        site.run(mrtg());
        site.run(mrtg());
        let config = site.read();
        let pages = TargetPage::of_all(
            &config,
            &PageFolders::of(config.globals(), None),
            &TimeZone::UTC,
        );
        for page in pages {
            let path = page.html();
            let theirs = std::fs::read(path).expect("a page");
            let known = comments::read(&theirs);
            let about = about(&String::from_utf8_lossy(&theirs));
            // MRTG takes the time a moment before it writes the page.
            let theirs = pieces(&String::from_utf8_lossy(&theirs));
            let changed_s = changed_s(path);
            let ours = [0, 1]
                .map(|before_s| pieces(&page.page(&known, changed_s - before_s, about.as_ref())));
            if !ours.contains(&theirs) {
                let same = ours[0]
                    .iter()
                    .zip(&theirs)
                    .take_while(|(a, b)| a == b)
                    .count();
                panic!(
                    "{}: {:?} is not {:?}",
                    path.display(),
                    &ours[0][same..][..6.min(ours[0].len() - same)],
                    &theirs[same..][..6.min(theirs.len() - same)]
                );
            }
        }
    }
}

#[test]
fn both_write_the_same_files_when_they_are_due() {
    if machine::must_skip(&["mrtg", "rateup"]) {
        return;
    }
    let folders = ["logs", "web/pages", "web/images"];
    let (ours, theirs) = (
        Site::new("poll-pages-ours", 71, folders),
        Site::new("poll-pages-theirs", 72, folders),
    );
    theirs.run(mrtg());
    ours.run(kymo_poll());
    assert_eq!(ours.files(), theirs.files());
    let images = ours.scratch.path("web/images");
    let set_back = |name: &str, seconds: u64| {
        let file = std::fs::File::options()
            .write(true)
            .open(images.join(name))
            .expect("a picture");
        let time = SystemTime::now() - Duration::from_secs(seconds);
        file.set_modified(time).expect("a time");
    };
    // Old enough, too young, and never too young.
    for (name, seconds, is_due) in [
        ("t0-week.png", 1810, true),
        ("t1-week.png", 600, false),
        ("t0-month.png", 7210, true),
        ("t1-month.png", 3600, false),
        ("t0-year.png", 86_410, true),
        ("t1-year.png", 43_200, false),
        ("t0-day.png", 100, true),
    ] {
        set_back(name, seconds);
        let before_s = changed_s(&images.join(name));
        ours.run(kymo_poll());
        let is_drawn = changed_s(&images.join(name)) != before_s;
        assert_eq!(is_drawn, is_due, "{name}");
    }
    // The figures of a graph that is not drawn stay.
    let page = ours.scratch.path("web/pages/t1.html");
    let text = std::fs::read_to_string(&page).expect("a page");
    let known = comments::read(text.as_bytes());
    let figure = format!("<!-- maxin w {} -->", known[1][0].expect("a figure"));
    std::fs::write(&page, text.replace(&figure, "<!-- maxin w 77 -->")).expect("a page");
    ours.run(kymo_poll());
    let text = std::fs::read(&page).expect("a page");
    assert_eq!(comments::read(&text)[1][0], Some(77));
}

#[test]
fn log_only_draws_nothing() {
    let site = Site::new("poll-pages-log-only", 73, ["w", "w", "w"]);
    let mut poller = kymo_poll();
    poller.arg("--log-only");
    site.run(poller);
    let files = site.files();
    assert!(files.contains(&"w/t0.log".into()), "{files:?}");
    let is_page = |path: &&PathBuf| {
        path.extension()
            .is_some_and(|end| end == "png" || end == "html")
    };
    assert_eq!(files.iter().find(is_page), None);
}
