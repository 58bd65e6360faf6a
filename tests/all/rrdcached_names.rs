//! Names that no client may use: the store's own files under any path, and with `-B` every path outside the base.
//! Each command is tried with each of them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use kymo_tests::Scratch;
use kymo_tests::rrd_client::{Client, Reply};
use kymo_tests::rrd_daemon::{Daemon, Side};

const DEFINITION: &str = "-s 1 -b 1000000000 DS:x:GAUGE:600:U:U RRA:AVERAGE:0.5:1:50";

/// Each command that has a name, in all its forms; NAME stands for it.
const ASKED: &[&str] = &[
    "UPDATE NAME 1000000100:1",
    "FLUSH NAME",
    "PENDING NAME",
    "FORGET NAME",
    "FETCH NAME AVERAGE 1000000000 1000000050",
    "FETCHBIN NAME AVERAGE 1000000000 1000000050",
    "INFO NAME",
    "FIRST NAME 0",
    "LAST NAME",
    "TUNE NAME 3 tune -h x:1",
    "DUMP NAME",
    "SUSPEND NAME",
    "RESUME NAME",
    "LIST /NAME",
    "LIST RECURSIVE /NAME",
    "CREATE NAME -s 1 DS:x:GAUGE:600:U:U RRA:AVERAGE:0.5:1:5",
    "CREATE NAME -O -s 1 DS:x:GAUGE:600:U:U RRA:AVERAGE:0.5:1:5",
    "CREATE new.rrd -r NAME -s 1 DS:x:GAUGE:600:U:U RRA:AVERAGE:0.5:1:5",
    "CREATE new.rrd -t NAME",
];
/// Commands without a name.
const NAMELESS: &[&str] = &[
    "FLUSHALL",
    "QUEUE",
    "STATS",
    "HELP",
    "PING",
    "BATCH",
    "SUSPENDALL",
    "RESUMEALL",
    "QUIT",
];

/// Sends a request on its own connection, since some answers end it.
fn ask(daemon: &Daemon, line: &str) -> String {
    let reply = daemon.connect().ask(line.as_bytes());
    match reply.unwrap_or_else(|why| panic!("{line}: {why}: {}", daemon.output_text())) {
        Reply::Bytes(bytes) | Reply::Closed(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

/// Sends a BATCH of one command; returns the count of errors and their texts.
fn ask_in_batch(client: &mut Client, line: &str) -> String {
    client
        .send(format!("BATCH\n{line}\n.\n").as_bytes())
        .expect("sent");
    let replies = [client.reply(false), client.reply(false)];
    let [_, Ok(Reply::Bytes(told))] = replies else {
        panic!("{line}: {replies:?}");
    };
    String::from_utf8_lossy(&told).into_owned()
}

/// Checks that the two lists have all commands of HELP, so that a new one is not forgotten.
fn knows_all_commands(daemon: &Daemon) {
    let help = ask(daemon, "HELP");
    let words = help
        .lines()
        .skip(1)
        .filter_map(|line| line.split(' ').next());
    for word in words {
        let asked = ASKED
            .iter()
            .any(|line| line.split(' ').next() == Some(word));
        assert!(asked || NAMELESS.contains(&word), "{word} is not tried");
    }
}

/// Name and bytes of each file in a folder.
fn inside(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut all: Vec<(String, Vec<u8>)> = entries
        .flatten()
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap_or_default())
        })
        .collect();
    all.sort();
    all
}

/// CREATE of a name in the store's folder replaced a file there: after the next start all values were gone.
#[test]
fn the_store_s_own_files_are_no_client_s() {
    let journal = Scratch::new("names-journal");
    let journal = journal.text("");
    for options in [
        &["-B"][..],
        &["-R"],
        &["-B", "-R", "--files", "never"],
        &["-B", "-R", "-j", &journal],
    ] {
        let scratch = Scratch::new("names-own");
        let base = scratch.path("base");
        fs::create_dir_all(&base).expect("a folder");
        let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, options);
        let told = format!("{options:?}");
        assert!(ask(&daemon, &format!("CREATE a.rrd {DEFINITION}")).starts_with("0 "));
        assert!(ask(&daemon, "UPDATE a.rrd 1000000010:7").starts_with("0 "));
        knows_all_commands(&daemon);
        let folder = match options.contains(&"-j") {
            true => Path::new(&journal).join("kymo"),
            false => base.join(".kymo"),
        };
        let own = inside(&folder);
        assert!(own.iter().any(|(name, _)| name.starts_with("journal-")));
        symlink(&folder, base.join("folder")).expect("a link");
        symlink(folder.join("lock"), base.join("file.rrd")).expect("a link");
        if options.contains(&"never") {
            // A daemon without files does not own the folder.
            fs::write(base.join(".kymo-owner"), "").expect("a file");
        }
        symlink(".kymo-owner", base.join("owner.rrd")).expect("a link");
        fs::hard_link(folder.join("lock"), base.join("hard.rrd")).expect("a hard link");
        let mut names = vec![".kymo-owner".into(), "file.rrd".into(), "owner.rrd".into()];
        let below = own.iter().map(|(name, _)| name.as_str());
        for name in below.chain(["none.rrd", "none/x.rrd", "lock/x"]) {
            names.push(format!("folder/{name}"));
            if !options.contains(&"-j") {
                names.push(format!(".kymo/{name}"));
            }
        }
        names.extend(["hard.rrd", "./folder//lock", "folder"].map(String::from));
        let mut client = daemon.connect();
        for name in &names {
            for line in ASKED.iter().map(|line| line.replace("NAME", name)) {
                let said = ask(&daemon, &line);
                assert!(
                    said.ends_with(": Permission denied\n"),
                    "{told} {line}: {said}"
                );
                let word = line.split(' ').next().unwrap_or_default();
                if ["UPDATE", "FLUSH", "FORGET", "CREATE"].contains(&word) {
                    let said = ask_in_batch(&mut client, &line);
                    assert!(said.starts_with("1 errors\n"), "{told} {line}: {said}");
                    assert!(
                        said.ends_with(": Permission denied\n"),
                        "{told} {line}: {said}"
                    );
                }
            }
        }
        let files = |own: &[(String, Vec<u8>)]| -> Vec<String> {
            own.iter().map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(files(&inside(&folder)), files(&own), "{told}");
        let daemon = killed_and_started(daemon, &scratch, &base, options);
        let rows = ask(&daemon, "FETCH a.rrd AVERAGE 1000000009 1000000010");
        assert!(rows.contains("1000000010: 7.0"), "{told}: {rows}");
        daemon.stop("-TERM");
    }
}

fn killed_and_started(daemon: Daemon, scratch: &Scratch, base: &Path, options: &[&str]) -> Daemon {
    daemon.stop("-KILL");
    Daemon::start(Side::Ours, &scratch.path(""), base, options)
}

/// DUMP and CREATE -O revealed by a link which files exist outside.
#[test]
fn with_b_nobody_is_told_what_exists_outside() {
    let scratch = Scratch::new("names-outside");
    let (base, outside) = (scratch.path("base"), scratch.path("outside"));
    fs::create_dir_all(&base).expect("a folder");
    fs::create_dir_all(outside.join("folder")).expect("a folder");
    fs::write(outside.join("there.rrd"), "a secret").expect("a file");
    symlink(&outside, base.join("out")).expect("a link");
    symlink("../outside", base.join("up")).expect("a link");
    for name in ["there.rrd", "none.rrd", "folder"] {
        symlink(outside.join(name), base.join(format!("to-{name}"))).expect("a link");
    }
    let daemon = Daemon::start(Side::Ours, &scratch.path(""), &base, &["-B", "-R"]);
    for name in ["out/NAME", "up/NAME", "to-NAME"] {
        for line in ASKED.iter().map(|line| line.replace("NAME", name)) {
            let answers = ["none.rrd", "there.rrd", "folder"].map(|which| {
                let said = ask(&daemon, &line.replace("NAME", which));
                assert!(said.starts_with("-1 "), "{line}, {which}: {said}");
                said.replace(which, "NAME")
            });
            assert_eq!(answers[0], answers[1], "{line}");
            assert_eq!(answers[0], answers[2], "{line}");
        }
    }
    daemon.stop("-TERM");
}
