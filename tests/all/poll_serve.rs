//! `[poll]` of `kymo serve`: devices are polled, values are kept and
//! shown, dead processes are restarted, and no community appears anywhere.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;

use kymo_agentfarm::traffic::{self, Direction};
use kymo_agentfarm::{Farm, Settings};
use kymo_tests::Scratch;
use kymo_tests::served::{Served, arguments_of, children_of, eventually, get, kill};
use serde_json::Value;

/// The community: in every packet, and nowhere else.
const COMMUNITY: &str = "kept-secret-7";
/// The mean of some seconds is within this part of the farm's rate, also on a busy machine.
const NEAR: f64 = 0.1;

struct Polled {
    farm: Farm,
    address: String,
    served: Served,
    scratch: Scratch,
    log_dir: PathBuf,
}

impl Polled {
    fn start(name: &str, devices: u32, targets: &[(u32, u32)]) -> Polled {
        let scratch = Scratch::new(name);
        let farm = Farm::start(Settings {
            first: Ipv4Addr::new(127, 0, 10, 1),
            port: 0,
            devices,
            interfaces: 4 * devices,
            community: COMMUNITY.as_bytes().to_vec(),
        });
        let farm = farm.expect("a farm");
        let log_dir = scratch.path("mrtg");
        fs::create_dir_all(&log_dir).expect("a folder");
        let text = configuration(&farm, &log_dir, targets);
        fs::write(scratch.path("devices.cfg"), text).expect("a configuration");
        let config = format!(
            "user = \"\"\n[listen]\ncollectd = []\n[poll]\nmrtg = [\"{}\"]\n",
            scratch.path("devices.cfg").display()
        );
        let mut served = Served::configured(&scratch, &scratch.path("data"), &config);
        let address = served.address();
        served.has_said("polling with");
        Polled {
            farm,
            address,
            served,
            scratch,
            log_dir,
        }
    }

    /// Kind and text of each mark on the graphs of a target.
    fn marks(&self, device: u32, interface: u32) -> Vec<(String, String)> {
        let path = format!("/kymo/v1/targets/graphs?id=devices/d{device}-{interface}");
        let answer = get(&self.address, &path, "");
        let marks = answer["marks"].as_array().expect("marks").iter();
        let words = |mark: &Value| {
            let text = |name: &str| mark[name].as_str().unwrap_or("?").to_string();
            (text("kind"), text("text"))
        };
        marks.map(words).collect()
    }

    /// Waits until the last mark of a target has this kind; returns all marks.
    fn is_marked(&self, device: u32, interface: u32, kind: &str) -> Vec<(String, String)> {
        let marks = eventually(|| {
            let marks = self.marks(device, interface);
            marks
                .last()
                .is_some_and(|last| last.0 == kind)
                .then_some(marks)
        });
        marks.unwrap_or_else(|| panic!("no {kind} in {:?}", self.marks(device, interface)))
    }

    fn poller(&self) -> u32 {
        eventually(|| self.served.child("poll")).expect("a poller")
    }

    /// Newest rows of a target's file, in and out.
    fn rows(&self, device: u32, interface: u32) -> Vec<[f64; 2]> {
        let file = self.log_dir.join(format!("d{device}-{interface}.rrd"));
        let mut fetch = Command::new("rrdtool");
        fetch
            .arg("fetch")
            .arg(file)
            .args(["AVERAGE", "-s", "-30", "-r", "1"]);
        let output = fetch.output().expect("rrdtool");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let rows = text.lines().filter_map(|line| {
            let (_, values) = line.split_once(": ")?;
            let mut values = values.split(' ').map(str::parse::<f64>);
            let row = [values.next()?.ok()?, values.next()?.ok()?];
            row.iter().all(|value| !value.is_nan()).then_some(row)
        });
        rows.collect()
    }

    /// Waits for rows, and checks that their mean is the farm's rate.
    fn has_rows(&self, device: u32, interface: u32, least: usize) {
        let rows = eventually(|| {
            let rows = self.rows(device, interface);
            (rows.len() >= least).then_some(rows)
        });
        let rows = rows.unwrap_or_else(|| panic!("no rows of {device} {interface}"));
        let wanted = [Direction::In, Direction::Out]
            .map(|direction| traffic::rate(device, interface - 1, direction) as f64);
        // rrdtool counts unknown time in whole seconds: rows beside an unknown one are off by a part of a second.
        let whole = &rows[2..];
        for (side, rate) in wanted.into_iter().enumerate() {
            let sum: f64 = whole.iter().map(|row| row[side]).sum();
            let mean = sum / whole.len() as f64;
            assert!(
                (mean / rate - 1.0).abs() < NEAR,
                "{rows:?} are not {wanted:?}"
            );
        }
    }
}

fn configuration(farm: &Farm, log_dir: &std::path::Path, targets: &[(u32, u32)]) -> String {
    let mut text = format!(
        "WorkDir: {}\nLogFormat: rrdtool\nInterval: 0:01\nRunAsDaemon: yes\n",
        log_dir.display()
    );
    for &(device, interface) in targets {
        let name = format!("d{device}-{interface}");
        let (address, port) = (farm.address(device), farm.settings().port);
        text += &format!(
            "Target[{name}]: #Gi0/{interface}:{COMMUNITY}@{address}:{port}::::2\nMaxBytes[{name}]: 1250000000\nTitle[{name}]: {name}\n"
        );
    }
    text
}

#[test]
fn what_devices_count_is_kept_whoever_dies() {
    let mut polled = Polled::start("poll-serve", 2, &[(0, 1), (0, 2), (1, 1)]);
    polled.has_rows(0, 1, 7);
    polled.has_rows(1, 1, 7);

    let before = polled.poller();
    kill("-KILL", before);
    polled.served.hears("is started again");
    let after = polled.served.next_child("poll", before);
    assert_ne!(before, after);
    polled.has_rows(0, 2, 7);

    // The keeper's store has the same rows; a killed keeper loses none that the poller still holds.
    let keeper = polled.served.child("keeper").expect("a keeper");
    kill("-KILL", keeper);
    polled.served.next_child("keeper", keeper);
    let token = fs::read_to_string(polled.scratch.path("data/token")).expect("a token");
    assert!(!token.is_empty());
    let list = || {
        let mut command = Command::new(kymo_tests::kymo());
        command.args(["series", "ls", "--data"]);
        let output = command.arg(polled.scratch.path("data")).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        (text.contains("mrtg/devices/d0-1.rrd") && text.contains("poll")).then_some(text)
    };
    let listed = eventually(list).expect("series of targets and of devices");
    assert!(!listed.contains(COMMUNITY));

    // Arguments, messages and the page's sources do not contain the community.
    for pid in [vec![polled.served.pid()], children_of(polled.served.pid())].concat() {
        assert!(!arguments_of(pid).join(" ").contains(COMMUNITY));
    }
    polled.served.listen(std::time::Duration::from_millis(100));
    assert!(!polled.served.said.join("\n").contains(COMMUNITY));
    let described = fs::read(polled.scratch.path("data/poll/devices.targets")).expect("a file");
    let described = String::from_utf8_lossy(&described).into_owned();
    assert!(described.contains("d0-1") && !described.contains(COMMUNITY));
}

/// A restart, a silence and its end are marks on the graphs of the device's targets, and lines of the log; a restart is a gap.
#[test]
fn what_happens_to_a_device_is_marked() {
    let mut polled = Polled::start("poll-marks", 2, &[(0, 1), (0, 2), (1, 1)]);
    polled.has_rows(0, 1, 7);
    assert_eq!(polled.marks(0, 1), []);
    polled
        .farm
        .change(0, |device, now_ns| device.restart(now_ns));
    let restarts = polled.is_marked(0, 1, "warning");
    let port = polled.farm.settings().port;
    let restart = format!(
        "127.0.10.1:{port}: was started again: its counters begin at zero, and there is a gap"
    );
    assert_eq!(restarts, [("warning".to_string(), restart.clone())]);
    assert_eq!(polled.marks(0, 2), restarts);
    assert_eq!(polled.marks(1, 1), []);
    polled.served.hears("was started again");
    // No rate is above the device's: the restart did not pass for a wrap.
    polled.has_rows(0, 1, 7);

    polled.farm.change(1, |device, _| device.dead = true);
    let silent = polled.is_marked(1, 1, "failure");
    polled.farm.change(1, |device, _| device.dead = false);
    let back = polled.is_marked(1, 1, "okay");
    let texts =
        ["does not answer", "answers again"].map(|text| format!("127.0.10.2:{port}: {text}"));
    assert_eq!(silent, [("failure".to_string(), texts[0].clone())]);
    assert_eq!(back[1..], [("okay".to_string(), texts[1].clone())]);
    assert_eq!(polled.marks(0, 1).len(), 1);

    let mut events = Command::new(kymo_tests::kymo());
    events.args(["series", "events", "--data"]);
    let output = events.arg(polled.scratch.path("data")).output();
    let text = String::from_utf8(output.expect("kymo").stdout).expect("text");
    assert!(
        text.contains(&texts[0]) && text.contains(&restart),
        "{text}"
    );
    assert_eq!(text.lines().count(), 3, "{text}");
}

/// Targets without a value: name, definition, device and reason.
fn empty_targets(port: u16) -> [(&'static str, String, String, &'static str); 6] {
    let good = format!("{COMMUNITY}@127.0.10.1:{port}:0.2:2::2");
    let dead = format!("{COMMUNITY}@127.0.10.2:{port}:0.2:2::2");
    let agent = format!("127.0.10.1:{port}");
    [
        (
            "text",
            format!("1.3.6.1.2.1.1.1.0&1.3.6.1.2.1.1.1.0:{good}"),
            agent.clone(),
            "answers with what is no number",
        ),
        (
            "gone",
            format!("77:{good}"),
            agent.clone(),
            "has no such object, or refuses it",
        ),
        (
            "noname",
            format!("#not<b>here:{good}"),
            agent.clone(),
            "has no interface of the name not<b>here",
        ),
        (
            "dead",
            format!("1:{dead}"),
            format!("127.0.10.2:{port}"),
            "does not answer; see whether it is up, and whether the community is right",
        ),
        (
            "nohost",
            format!("1:{COMMUNITY}@no.such.host.invalid:161:0.2:2::2"),
            "no.such.host.invalid".into(),
            "cannot be asked: its name has no address",
        ),
        (
            "wrong",
            format!("1:other@127.0.10.1:{port}:0.2:2::2"),
            agent,
            "answers to another community, but not to this one; see whether it is right",
        ),
    ]
}

/// Six targets without a value were named nowhere: the log had no line for four of them, and their pages said `problem: null`.
#[test]
fn each_target_without_a_value_says_why() {
    let mut polled = Polled::start("poll-reasons", 2, &[(0, 1)]);
    polled.farm.change(1, |device, _| device.dead = true);
    // Rows show that the poller runs, so that it will notice a change.
    polled.has_rows(0, 1, 7);
    let port = polled.farm.settings().port;
    let cases = empty_targets(port);
    let mut text = configuration(&polled.farm, &polled.log_dir, &[(0, 1)]).replace("0:01", "0:02");
    for (name, asked, _, _) in &cases {
        text +=
            &format!("Target[{name}]: {asked}\nMaxBytes[{name}]: 1000\nTitle[{name}]: {name}\n");
    }
    let beside = polled.scratch.path("devices.cfg.new");
    fs::write(&beside, &text).expect("a configuration");
    fs::rename(&beside, polled.scratch.path("devices.cfg")).expect("renamed");
    polled.served.hears("was read again");
    for (name, _, device, why) in &cases {
        let path = format!("/kymo/v1/targets/graphs?id=devices/{name}");
        let wanted = format!("{device} {why}");
        let said = || {
            let answer = get(&polled.address, &path, "");
            (answer["problem"] == wanted.as_str()).then_some(())
        };
        eventually(said).unwrap_or_else(|| panic!("{name}: {}", get(&polled.address, &path, "")));
    }
    let list = get(&polled.address, "/kymo/v1/targets", "");
    for target in list["targets"].as_array().expect("targets") {
        let is_bad = cases.iter().any(|case| target["name"] == case.0);
        assert_eq!(target["problem"].is_string(), is_bad, "{target}");
    }
    // Each target's reason is in one line of the log, and no device is in a second line.
    polled.served.listen(std::time::Duration::from_secs(3));
    for (name, _, device, why) in &cases {
        let line = format!("{device} {why}: no value for {name}");
        let said = polled.served.said.iter().filter(|said| said.contains(why));
        let said: Vec<&String> = said.collect();
        assert!(
            matches!(&said[..], [one] if one.ends_with(&line)),
            "{line}: {said:?}"
        );
    }
    // A mended target has no problem.
    polled.farm.change(1, |device, _| device.dead = false);
    let mended = || {
        let answer = get(
            &polled.address,
            "/kymo/v1/targets/graphs?id=devices/dead",
            "",
        );
        answer["problem"].is_null().then_some(())
    };
    eventually(mended).expect("no problem any more");
}

/// One process polls two configurations with the same file name; an unreadable configuration does not stop the others.
#[test]
fn all_configurations_are_one_process_whatever_they_are_called() {
    let scratch = Scratch::new("poll-many");
    let farm = Farm::start(Settings {
        first: Ipv4Addr::new(127, 0, 10, 1),
        port: 0,
        devices: 1,
        interfaces: 4,
        community: COMMUNITY.as_bytes().to_vec(),
    });
    let farm = farm.expect("a farm");
    let write = |place: &str, interface: u32| {
        let (file, log_dir) = (
            scratch.path(place),
            scratch.path(&format!("rrd-{interface}")),
        );
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::create_dir_all(&log_dir).expect("a folder");
        let beside = file.with_extension("new");
        fs::write(&beside, configuration(&farm, &log_dir, &[(0, interface)])).expect("written");
        fs::rename(&beside, &file).expect("renamed");
    };
    write("sites/a/devices.cfg", 1);
    write("sites/b/devices.cfg", 2);
    fs::create_dir_all(scratch.path("sites/c")).expect("a folder");
    fs::write(scratch.path("sites/c/bad.cfg"), "What: is this\n").expect("written");
    let config = format!(
        "user = \"\"\n[listen]\ncollectd = []\n[poll]\nmrtg = [\"{}\"]\n",
        scratch.path("sites/*/*.cfg").display()
    );
    let mut served = Served::configured(&scratch, &scratch.path("data"), &config);
    let address = served.address();
    served.has_said("sites/c/bad.cfg: it has to be mended first");
    let ids = |wanted: &[&str]| {
        let listed = || {
            let list = get(&address, "/kymo/v1/targets", "");
            let targets = list["targets"].as_array()?.iter();
            let mut ids: Vec<_> = targets
                .filter(|target| target["rates"][0].is_number())
                .map(|target| target["id"].as_str().unwrap_or("?").to_string())
                .collect();
            ids.sort();
            (ids == wanted).then_some(())
        };
        eventually(listed).unwrap_or_else(|| panic!("{}", get(&address, "/kymo/v1/targets", "")));
    };
    ids(&["devices/d0-1", "devices@b/d0-2"]);
    let pollers = |served: &Served| {
        let children = children_of(served.pid()).into_iter();
        children
            .filter(|&pid| arguments_of(pid).iter().any(|word| word == "poll"))
            .count()
    };
    assert_eq!(pollers(&served), 1);
    write("sites/c/bad.cfg", 3);
    served.hears("was mended: polling begins again with it");
    ids(&["bad/d0-3", "devices/d0-1", "devices@b/d0-2"]);
    assert_eq!(pollers(&served), 1);
}

#[test]
fn polling_begins_again_where_a_changed_configuration_says() {
    let mut polled = Polled::start("poll-moved", 1, &[(0, 1)]);
    polled.has_rows(0, 1, 7);
    let elsewhere = polled.scratch.path("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    let text = configuration(&polled.farm, &elsewhere, &[(0, 1)]);
    fs::write(polled.scratch.path("devices.cfg"), text).expect("a configuration");
    polled.served.hears("has other folders or servers");
    let has_file = || {
        let mut names = fs::read_dir(&elsewhere).expect("a folder").flatten();
        let is_rrd = |entry: fs::DirEntry| entry.path().extension().is_some_and(|e| e == "rrd");
        names.any(is_rrd).then_some(())
    };
    eventually(has_file).expect("a file in the new folder");
}

#[test]
fn a_changed_configuration_is_read_and_nothing_is_polled_twice() {
    let mut polled = Polled::start("poll-reload", 1, &[(0, 1)]);
    polled.has_rows(0, 1, 7);
    let text = configuration(&polled.farm, &polled.log_dir, &[(0, 1), (0, 2), (0, 3)]);
    for round in 0..3 {
        // Writes the same configuration again in each round.
        let beside = polled.scratch.path("devices.cfg.new");
        fs::write(&beside, &text).expect("a configuration");
        fs::rename(&beside, polled.scratch.path("devices.cfg")).expect("renamed");
        polled.served.hears("was read again");
        if round == 0 {
            polled.has_rows(0, 3, 7);
        }
    }
    polled.farm.forget_counts();
    std::thread::sleep(std::time::Duration::from_secs(5));
    // One PDU a second. MRTG would send four times as many by now.
    let requests = polled.farm.counts().requests;
    assert!((2..=8).contains(&requests), "{requests} requests in 5 s");
    polled.has_rows(0, 2, 7);

    // An unreadable configuration changes nothing.
    fs::write(polled.scratch.path("devices.cfg"), "What: is this\n").expect("written");
    polled.served.hears("stays as it was");
    polled.farm.forget_counts();
    let goes_on = eventually(|| (polled.farm.counts().requests > 2).then_some(()));
    assert!(goes_on.is_some(), "polling has ended");
}
