//! Commands on a store's folder, beside a running daemon and after its end: verify, status, export and import. Stock's
//! rrdtool compares the files. Needs Debian's rrdtool.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kymo_tests::Scratch;
use kymo_tests::rrd_daemon::{Daemon, Side};
use kymo_tests::rrdtool::rrdtool;

/// Files and their definitions.
const FILES: [(&str, &[&str]); 3] = [
    (
        "g.rrd",
        &[
            "DS:x:GAUGE:60:U:U",
            "RRA:AVERAGE:0.5:1:50",
            "RRA:MAX:0.5:6:30",
        ],
    ),
    (
        "d/c.rrd",
        &[
            "DS:in:COUNTER:60:0:U",
            "DS:out:DERIVE:60:U:U",
            "RRA:AVERAGE:0.1:1:20",
            "RRA:LAST:0.9:4:9",
        ],
    ),
    (
        "m.rrd",
        &["DS:x:GAUGE:60:U:U", "RRA:MIN:0.5:1:40", "RRA:LAST:0.5:7:6"],
    ),
];
const START: u64 = 1_000_000_000;

fn kymo(words: &[&str]) -> Output {
    let output = Command::new(kymo_tests::kymo()).args(words).output();
    output.expect("kymo")
}

/// stdout of a command that succeeded.
fn done(words: &[&str]) -> String {
    let output = kymo(words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
    assert_eq!(said, "", "{words:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Exit code and stderr of a command that failed.
fn failed(words: &[&str]) -> (i32, String) {
    let output = kymo(words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().expect("a code"), said)
}

fn value(file: usize, number: u64) -> String {
    let stamp = START + 10 * (number + 1) + number % 3;
    match file {
        1 => format!("{stamp}:{}:{}", number * 1000, number * number),
        _ if number % 17 == 5 => format!("{stamp}:U"),
        _ => format!("{stamp}:{}.25", number % 23),
    }
}

fn must_rrdtool(folder: &Path, words: &[&str]) -> String {
    let output = rrdtool(folder, words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A folder for a daemon, and one for rrdtool with the same files and the same values.
struct World {
    scratch: Scratch,
    base: PathBuf,
    journal: PathBuf,
    stock: PathBuf,
    values: u64,
}

impl World {
    fn new(name: &str) -> World {
        let scratch = Scratch::new(name);
        let [base, journal, stock] = ["base", "journal", "stock"].map(|name| {
            let folder = scratch.path(name);
            fs::create_dir_all(folder.join("d")).expect("a folder");
            fs::canonicalize(folder).expect("its path")
        });
        let world = World {
            scratch,
            base,
            journal,
            stock,
            values: 0,
        };
        for (name, definitions) in FILES {
            let mut words = vec!["create", name, "-s", "10", "-b", "1000000000"];
            words.extend(definitions);
            must_rrdtool(&world.stock, &words);
        }
        world
    }

    fn daemon(&self, options: &[&str]) -> Daemon {
        let journal = self.journal.to_str().expect("a name");
        let options = [&["-j", journal], options].concat();
        Daemon::start(Side::Ours, &self.scratch.path(""), &self.base, &options)
    }

    fn create(&self, daemon: &Daemon) {
        let mut client = daemon.connect();
        for (name, definitions) in FILES {
            let line = format!(
                "CREATE {name} -s 10 -b 1000000000 {}",
                definitions.join(" ")
            );
            let answer = client.text(&line);
            assert!(answer.starts_with('0'), "{answer}");
        }
    }

    /// Sends more values to the daemon and to rrdtool.
    fn update(&mut self, daemon: &Daemon, count: u64) {
        let mut client = daemon.connect();
        for (at, (name, _)) in FILES.iter().enumerate() {
            let values: Vec<String> = (self.values..self.values + count)
                .map(|n| value(at, n))
                .collect();
            let answer = client.text(&format!("UPDATE {name} {}", values.join(" ")));
            assert!(answer.starts_with('0'), "{answer}");
            let mut words = vec!["update", name];
            words.extend(values.iter().map(String::as_str));
            must_rrdtool(&self.stock, &words);
        }
        self.values += count;
    }

    /// Compares rrdtool's dumps of the files below `folder` with those of its own files.
    fn judge(&self, folder: &Path) {
        for (name, _) in FILES {
            let ours = must_rrdtool(folder, &["dump", name]);
            let stocks = must_rrdtool(&self.stock, &["dump", name]);
            assert_eq!(ours, stocks, "{name}");
        }
    }

    fn names(&self) -> (String, String) {
        let name = |path: &Path| path.to_str().expect("a name").to_string();
        (name(&self.journal), name(&self.base))
    }
}

#[test]
fn a_store_without_files_goes_back_to_stock() {
    let mut world = World::new("rrd-export");
    let target = world.scratch.path("target");
    let out = target.to_str().expect("a name").to_string();
    let daemon = world.daemon(&["--files", "never"]);
    world.create(&daemon);
    world.update(&daemon, 70);
    let (journal, base) = world.names();
    let places = ["--store", &journal, "-b", &base];
    // While the daemon runs.
    assert!(done(&["verify", &journal]).starts_with("no damage: "));
    let shown = done(&["status", &journal, "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(shown["series"], 3);
    assert_eq!(shown["series_without_files"], 3);
    assert!(
        shown["bytes_of_journal"]
            .as_u64()
            .is_some_and(|bytes| bytes > 4096),
        "{shown}"
    );
    let export = [&["rrd", "export", "--all", "-o", &out][..], &places].concat();
    done(&export);
    // The daemon owns only the files in their places; export to another folder works beside it.
    let in_place = [&["rrd", "export", "--all"][..], &places].concat();
    let (code, said) = failed(&in_place);
    assert_eq!(code, 2, "{said}");
    let lines: Vec<&str> = said.lines().collect();
    let refused =
        |line: &str| line.starts_with("cannot open the store in ") && line.ends_with(" has it");
    assert!(
        lines.len() == 2
            && lines[0].ends_with(" has it; waiting up to 3 s for it to end")
            && refused(lines[1]),
        "{said}"
    );
    assert!(daemon.stop("-TERM").success());
    assert!(
        fs::read_dir(world.base.join("d"))
            .expect("a folder")
            .next()
            .is_none()
    );

    assert_eq!(done(&export), "");
    world.judge(&target);
    // Export into the files' own places, and a second time over them.
    for _ in 0..2 {
        assert_eq!(done(&in_place), "");
        world.judge(&world.base.clone());
    }
    // The daemon goes on, and the next export has its newest values.
    let daemon = world.daemon(&["--files", "never"]);
    world.update(&daemon, 30);
    assert!(daemon.stop("-TERM").success());
    let one = [&["rrd", "export", "d/c.rrd", "-o", &out][..], &places].concat();
    assert_eq!(done(&one), "");
    let ours = must_rrdtool(&target, &["dump", "d/c.rrd"]);
    assert_eq!(ours, must_rrdtool(&world.stock, &["dump", "d/c.rrd"]));
    assert_eq!(done(&in_place), "");
    world.judge(&world.base.clone());
    assert!(done(&["verify", &journal]).starts_with("no damage: "));
    let none = [
        &["rrd", "export", "none.rrd", "g.rrd", "-o", &out][..],
        &places,
    ]
    .concat();
    assert_eq!(
        failed(&none),
        (1, "cannot export none.rrd: no such file\n".into())
    );
    // rrdtool can update the exported files.
    for folder in [&world.base, &world.stock] {
        must_rrdtool(folder, &["update", "g.rrd", "1000009000:7", "1000009010:8"]);
    }
    world.judge(&world.base.clone());
}

/// Waits until all sent values are in blocks.
fn wait_until_saved(journal: &str) {
    let start = std::time::Instant::now();
    loop {
        let shown = done(&["status", journal, "--json"]);
        let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        if shown["unsaved_values"] == 0 {
            return;
        }
        assert!(start.elapsed().as_secs() < 60, "{shown}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Runs the same rrdtool command in both folders.
fn both(world: &World, words: &[&str]) {
    for folder in [&world.base, &world.stock] {
        must_rrdtool(folder, words);
    }
}

/// rrdtool tunes files that lack the newest values, while the daemon runs and while it does not.
#[test]
fn files_that_rrdtool_tunes() {
    let mut world = World::new("rrd-tune");
    let (journal, _) = world.names();
    let mut daemon = world.daemon(&[]);
    world.create(&daemon);
    let hw = "d/hw.rrd";
    let definitions = [
        "DS:x:GAUGE:60:U:U",
        "RRA:AVERAGE:0.5:1:40",
        "RRA:HWPREDICT:30:0.1:0.0035:6",
    ];
    must_rrdtool(
        &world.stock,
        &[
            &["create", hw, "-s", "10", "-b", "1000000000"][..],
            &definitions,
        ]
        .concat(),
    );
    // A file with these archives begins with random numbers that depend on its name.
    fs::copy(world.stock.join(hw), world.base.join(hw)).expect("a copy");
    let tunes: [&[&str]; 6] = [
        &["tune", "g.rrd", "-a", "x:12", "-h", "x:15"],
        &[
            "tune",
            "d/c.rrd",
            "-d",
            "in:DERIVE",
            "-r",
            "out:sent",
            "-i",
            "sent:5",
        ],
        &["tune", hw, "-b", "x", "-x", "0.3"],
        &["tune", "m.rrd", "-d", "x:COUNTER", "-d", "x:GAUGE"],
        &["tune", hw, "-w", "4", "-f", "2", "-s", "0.1"],
        &["tune", "g.rrd", "-a", "x:U"],
    ];
    for (round, tunes) in tunes.chunks(2).enumerate() {
        let hw_values: Vec<String> = (world.values..world.values + 150)
            .map(|n| value(0, n))
            .collect();
        let answer = daemon
            .connect()
            .text(&format!("UPDATE {hw} {}", hw_values.join(" ")));
        assert!(answer.starts_with('0'), "{answer}");
        let texts: Vec<&str> = hw_values.iter().map(String::as_str).collect();
        must_rrdtool(&world.stock, &[&["update", hw][..], &texts].concat());
        world.update(&daemon, 20);
        done(&["rrd", "export", "--all", "--daemon", &daemon.address()]);
        world.update(&daemon, 130);
        wait_until_saved(&journal);
        if round == 1 {
            assert!(daemon.stop("-KILL").code().is_none());
            tunes.iter().for_each(|words| both(&world, words));
            daemon = world.daemon(&[]);
        } else {
            tunes.iter().for_each(|words| both(&world, words));
        }
        world.update(&daemon, 10);
        done(&["rrd", "export", "--all", "--daemon", &daemon.address()]);
        world.judge(&world.base.clone());
        let [ours, stocks] =
            [&world.base, &world.stock].map(|folder| must_rrdtool(folder, &["dump", hw]));
        assert_eq!(ours, stocks, "round {round}");
        world.values += 10;
    }
    assert!(
        !daemon.output_text().contains("changed by others"),
        "{}",
        daemon.output_text()
    );
    assert!(daemon.stop("-TERM").success());
}

/// A file that the daemon made is renamed while it lacks the newest values.
#[test]
fn files_that_are_renamed() {
    for stopped in [None, Some("-TERM"), Some("-KILL")] {
        let world = World::new("rrd-rename");
        let (journal, _) = world.names();
        let mut daemon = world.daemon(&[]);
        world.create(&daemon);
        let values: Vec<String> = (0..100).map(|n| value(0, n)).collect();
        let answer = daemon
            .connect()
            .text(&format!("UPDATE g.rrd {}", values.join(" ")));
        assert!(answer.starts_with('0'), "{answer}");
        wait_until_saved(&journal);
        let rename = || fs::rename(world.base.join("g.rrd"), world.base.join("h.rrd"));
        if let Some(signal) = stopped {
            daemon.stop(signal);
            rename().expect("it was there");
            daemon = world.daemon(&[]);
        } else {
            rename().expect("it was there");
        }
        let last = value(0, 100);
        let mut client = daemon.connect();
        let answer = client.text(&format!("UPDATE h.rrd {last}"));
        assert!(answer.starts_with('0'), "{answer}");
        assert!(client.text("FLUSH h.rrd").starts_with('0'));
        assert!(
            client
                .text("UPDATE g.rrd 1000009000:1")
                .starts_with("-1 No such file")
        );
        drop(client);
        let texts: Vec<&str> = values.iter().map(String::as_str).collect();
        must_rrdtool(
            &world.stock,
            &[&["update", "g.rrd"][..], &texts, &[&last]].concat(),
        );
        let ours = must_rrdtool(&world.base, &["dump", "h.rrd"]);
        assert_eq!(
            ours,
            must_rrdtool(&world.stock, &["dump", "g.rrd"]),
            "{stopped:?}"
        );
        assert!(!world.base.join("g.rrd").exists());
        assert!(daemon.stop("-TERM").success());
    }
}

/// A user updates a file that lacks the newest values: newer values follow, older ones are refused, as by rrdtool.
#[test]
fn files_that_rrdtool_updates() {
    for stopped in [false, true] {
        let mut world = World::new("rrd-by-hand");
        let (journal, _) = world.names();
        let mut daemon = world.daemon(&[]);
        world.create(&daemon);
        world.update(&daemon, 70);
        done(&["rrd", "export", "--all", "--daemon", &daemon.address()]);
        let mut client = daemon.connect();
        let later: Vec<String> = (70..170).map(|n| value(0, n)).collect();
        let answer = client.text(&format!("UPDATE g.rrd {}", later.join(" ")));
        assert!(answer.starts_with('0'), "{answer}");
        drop(client);
        wait_until_saved(&journal);
        let by_hand = "1000001005:5";
        let update = ["update", "g.rrd", by_hand];
        if stopped {
            assert!(daemon.stop("-TERM").success());
            both(&world, &update);
            daemon = world.daemon(&[]);
        } else {
            both(&world, &update);
        }
        let answer = daemon.connect().text("FLUSH g.rrd");
        assert!(answer.starts_with('0'), "{answer}");
        let newer = later.iter().filter(|text| text.as_str() > by_hand);
        let newer: Vec<&str> = newer.map(String::as_str).collect();
        must_rrdtool(&world.stock, &[&["update", "g.rrd"][..], &newer].concat());
        let [ours, stocks] =
            [&world.base, &world.stock].map(|folder| must_rrdtool(folder, &["dump", "g.rrd"]));
        assert_eq!(ours, stocks);
        let said = format!(
            "{} newer values are applied to it, {} that it",
            newer.len(),
            later.len() - newer.len()
        );
        let start = std::time::Instant::now();
        while !daemon.output_text().contains(&said) {
            assert!(
                start.elapsed().as_secs() < 20,
                "{said}: {}",
                daemon.output_text()
            );
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(daemon.stop("-TERM").success());
    }
}

/// Starts a second daemon that ends by itself; returns its stderr.
fn refused(world: &World, options: &[&str]) -> String {
    let scratch = world.scratch.path("other");
    fs::create_dir_all(&scratch).expect("a folder");
    let output = Command::new("timeout")
        // The daemon waits 30 s for the owner of the folder or store.
        .arg("120")
        .arg(Side::Ours.program(&world.scratch.path("")))
        .args(["-g", "-p"])
        .arg(scratch.join("pid"))
        .arg("-l")
        .arg(format!("unix:{}", scratch.join("sock").display()))
        .args(options)
        .output();
    let output = output.expect("a daemon");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_folder_of_files_has_one_owner() {
    let mut world = World::new("rrd-owner");
    let (_, base) = world.names();
    let daemon = world.daemon(&[]);
    world.create(&daemon);
    world.update(&daemon, 3);
    let owner = fs::read_to_string(world.base.join(".kymo-owner")).expect("its text");
    assert_eq!(owner, format!("{} {}\n", daemon.address(), daemon.pid()));
    let journal = world.scratch.text("journal2");
    fs::create_dir(&journal).expect("a folder");
    let said = refused(&world, &["-b", &base, "-j", &journal]);
    let line = format!(
        "cannot own {base}: the daemon at {} (process {}) has it",
        daemon.address(),
        daemon.pid()
    );
    assert!(said.contains(&line), "{said}");
    let mut client = daemon.connect();
    for pattern in ["/", "/.*", "/*"] {
        let answer = client.text(&format!("LIST {pattern}"));
        assert!(!answer.contains(".kymo-owner"), "{answer}");
    }
    drop(client);
    // rrdtool without a daemon still changes files, and a daemon that makes no files needs no folder of them.
    must_rrdtool(&world.base, &["update", "g.rrd", "1000000001:1"]);
    let never = world.scratch.path("never");
    fs::create_dir(&never).expect("a folder");
    let options = ["-j", &journal, "--files", "never"];
    let second = Daemon::start(Side::Ours, &never, &world.base, &options);
    assert!(second.stop("-TERM").success());
    // A killed daemon owns nothing.
    assert!(daemon.stop("-KILL").code().is_none());
    let daemon = world.daemon(&[]);
    assert!(
        !daemon.output_text().contains("cannot own"),
        "{}",
        daemon.output_text()
    );
    assert!(daemon.stop("-TERM").success());
    // A folder in which the owner's file cannot be made.
    fs::remove_file(world.base.join(".kymo-owner")).expect("it was there");
    fs::create_dir(world.base.join(".kymo-owner")).expect("a folder");
    let daemon = world.daemon(&["-V", "LOG_DEBUG"]);
    assert!(
        daemon.output_text().contains("cannot own"),
        "{}",
        daemon.output_text()
    );
    assert!(daemon.stop("-TERM").success());
}

#[test]
fn a_running_daemon_writes_its_files() {
    let mut world = World::new("rrd-export-daemon");
    let daemon = world.daemon(&[]);
    world.create(&daemon);
    world.update(&daemon, 40);
    let address = daemon.address();
    assert_eq!(done(&["rrd", "export", "--all", "--daemon", &address]), "");
    world.judge(&world.base.clone());
    assert!(daemon.stop("-TERM").success());
    let (code, said) = failed(&["rrd", "export", "--all", "--daemon", &address]);
    assert_eq!(code, 2, "{said}");
}

#[test]
fn trees_of_files_are_taken_in_and_may_go() {
    let world = World::new("rrd-import");
    let (_, base) = world.names();
    let hw = [
        "create",
        "d/hw.rrd",
        "-s",
        "10",
        "-b",
        "1000000000",
        "DS:x:GAUGE:60:U:U",
        "RRA:AVERAGE:0.5:1:40",
        "RRA:HWPREDICT:30:0.1:0.0035:6",
    ];
    must_rrdtool(&world.stock, &hw);
    let mut names = vec!["d/hw.rrd"];
    names.extend(FILES.iter().map(|file| file.0));
    for name in &names {
        let at = usize::from(*name == "d/c.rrd");
        let values: Vec<String> = (0..70).map(|number| value(at, number)).collect();
        let mut words = vec!["update", name];
        words.extend(values.iter().map(String::as_str));
        must_rrdtool(&world.stock, &words);
        fs::copy(world.stock.join(name), world.base.join(name)).expect("a copy");
    }
    fs::write(world.base.join("bad.rrd"), "no file of rrdtool's").expect("a file");
    fs::write(world.base.join("d/other"), "").expect("a file");
    // --store has the path of -j. An import once used another folder, so that the daemon started an empty store.
    let (store, _) = world.names();
    let import = [
        "rrd", "import", "--jobs", "3", &base, "--store", &store, "-b", &base,
    ];
    for (imported, known) in [(4, 0), (0, 4)] {
        let output = kymo(&import);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let bad = format!("cannot import {base}/bad.rrd: ");
        assert!(
            said.starts_with(&bad) && said.lines().count() == 1,
            "{said}"
        );
        let line = format!("{imported} files imported, {known} were there already, 1 failed\n");
        assert_eq!(String::from_utf8_lossy(&output.stdout), line);
    }
    assert!(done(&["verify", &store]).starts_with("no damage: "));
    for name in &names {
        fs::remove_file(world.base.join(name)).expect("it was there");
    }
    let daemon = world.daemon(&["--files", "never"]);
    let mut client = daemon.connect();
    let listed = client.text("LIST RECURSIVE /");
    assert!(
        listed.starts_with(&format!("{} RRDs", names.len())),
        "{listed}"
    );
    for name in &names {
        let value = match *name {
            "d/c.rrd" => "1000000720:70000:5000",
            _ => "1000000720:3.5",
        };
        let answer = client.text(&format!("UPDATE {name} {value}"));
        assert!(answer.starts_with('0'), "{answer}");
        must_rrdtool(&world.stock, &["update", name, value]);
    }
    assert!(daemon.stop("-TERM").success());
    done(&["rrd", "export", "--all", "--store", &store, "-b", &base]);
    for name in &names {
        let ours = fs::read(world.base.join(name)).expect("a file");
        let stocks = fs::read(world.stock.join(name)).expect("a file");
        let difference = kymo_tests::rrd_file::difference(&ours, &stocks);
        assert_eq!(difference, None, "{name}");
    }
    refuses_a_second_store(&world);
}

/// A store that was moved into a folder below its place is found there: no second store is begun beside it.
fn refuses_a_second_store(world: &World) {
    let (store, base) = world.names();
    let place = world.journal.join("kymo");
    fs::rename(&place, world.journal.join("d/kymo")).expect("a rename");
    fs::create_dir(&place).expect("a folder");
    fs::rename(world.journal.join("d/kymo"), place.join("kymo")).expect("a rename");
    let line = format!("there is one in {store}/kymo/kymo; start with -j {store}/kymo, or move");
    let (code, said) = failed(&["rrd", "import", &base, "--store", &store, "-b", &base]);
    assert!(code == 2 && said.contains(&line), "{said}");
    let (socket, pid) = (world.scratch.text("sock"), world.scratch.text("pid"));
    let (code, said) = failed(&[
        "rrdcached",
        "-g",
        "-b",
        &base,
        "-j",
        &store,
        "-l",
        &socket,
        "-p",
        &pid,
    ]);
    assert!(code == 1 && said.contains(&line), "{said}");
    assert_eq!(fs::read_dir(&place).expect("a folder").count(), 1);
}

#[test]
fn wrong_usage_and_wrong_folders_are_said() {
    let world = World::new("rrd-store-usage");
    let base = world.base.to_str().expect("a name");
    let none = format!("cannot open {base}: there is no store in it\n");
    for (words, code, text) in [
        (&["verify", base][..], 2, none.as_str()),
        (&["status", base], 2, none.as_str()),
        (&["status", "/no/such"], 2, "cannot list /no/such: "),
        (
            &["rrd", "export"],
            2,
            "cannot export: no FILE and no --all; see ",
        ),
        (
            &["rrd", "export", "--all"],
            2,
            "cannot export: --store is missing; see ",
        ),
        (
            &["rrd", "export", "--all", "--store", base, "-b", base],
            2,
            none.as_str(),
        ),
        (
            &["rrd", "export", "--all", "--gibberish"],
            2,
            "cannot use --gibberish: no such switch",
        ),
    ] {
        let (found, said) = failed(words);
        assert_eq!(found, code, "{words:?}: {said}");
        // `kymo rrd` prints messages as rrdtool does, without the program's name.
        let named = if words[0] == "rrd" { "" } else { "kymo: " };
        assert!(
            said.starts_with(&format!("{named}{text}")),
            "{words:?}: {said}"
        );
    }
}
