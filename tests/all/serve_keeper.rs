//! The keeper of `kymo serve`: real clients store by the socket of the data folder, nothing acknowledged is lost when
//! a process is killed, and the keeper has no more rights than it needs.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use kymo_tests::rrd_client::Client;
use kymo_tests::rrdtool::rrdtool;
use kymo_tests::served::{
    Served, arguments_of, ask, children_of, eventually, files_of, get, is_alive, kill, status_of,
};
use kymo_tests::{Scratch, free_port, is_root, run};

const LOCAL: [&str; 2] = ["--listen", "127.0.0.1:0"];
const CREATE: &str = "--step 60 --start 1000000020 DS:load:GAUGE:120:U:U RRA:AVERAGE:0.5:1:2000";
const DEFINITIONS: &str = "DS:load:GAUGE:120:U:U RRA:AVERAGE:0.5:1:2000";

/// A running `kymo serve` whose keeper has logged that it serves.
struct Kept {
    served: Served,
    address: String,
    dir: PathBuf,
    // Removed last.
    _scratch: Scratch,
}

impl Kept {
    fn start(name: &str, config: &str) -> Kept {
        let scratch = Scratch::new(name);
        let (dir, file) = (scratch.text("data"), scratch.text("kymo.toml"));
        fs::write(&file, config).expect("a configuration");
        let mut served = Served::start(&["--config", &file, "--data", &dir, LOCAL[0], LOCAL[1]]);
        let address = served.address();
        served.has_said("keeper: user");
        Kept {
            served,
            address,
            dir: dir.into(),
            _scratch: scratch,
        }
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("rrdcached.sock")
    }

    fn connect(&self) -> Client {
        Client::unix(&self.socket()).expect("a client")
    }

    fn keeper(&self) -> u32 {
        self.served.child("keeper").expect("a keeper")
    }

    /// Runs rrdtool's command by way of the socket.
    fn rrdtool(&self, words: &str) -> Output {
        let address = format!("unix:{}", self.socket().display());
        let (verb, rest) = words.split_once(' ').expect("words");
        let words: Vec<&str> = [verb, "--daemon", &address]
            .into_iter()
            .chain(rest.split(' '))
            .collect();
        // Over a unix socket rrdtool sends whole paths, starting with its own folder.
        rrdtool(&self.dir.join("rrd"), &words)
    }

    fn must(&self, words: &str) -> String {
        let output = self.rrdtool(words);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "rrdtool {words}: {complaint}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

#[test]
fn real_clients_store_by_the_socket_of_the_data_folder() {
    let kept = Kept::start("keeper-clients", "");
    let created = kept.connect().text(&format!(
        "CREATE web-1/cpu/load.rrd -s 60 -b 1000000020 {DEFINITIONS}"
    ));
    assert_eq!(created, "0 RRD created OK");
    kept.must("update web-1/cpu/load.rrd 1000000080:1.5 1000000140:2.5");
    // The page is served beside the keeper.
    assert_eq!(get(&kept.address, "/kymo/v1/status", "")["mode"], "live");
    let last = kept.must("last web-1/cpu/load.rrd");
    assert_eq!(last.trim(), "1000000140");
    let fetched = kept.must("fetch web-1/cpu/load.rrd AVERAGE -s 1000000020 -e 1000000140");
    assert!(fetched.contains("2.5000000000e+00"), "{fetched}");
    // After a FLUSH the file is complete for programs that read files.
    kept.must("flushcached web-1/cpu/load.rrd");
    let file = kept.dir.join("rrd/web-1/cpu/load.rrd");
    let output = rrdtool(&kept.dir, &["lastupdate", &file.to_string_lossy()]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("1000000140: 2.5"));
    for outside in ["../token", "/etc/passwd", "a/../../store/lock"] {
        let refused = kept.rrdtool(&format!("update {outside} 1000000200:1"));
        assert!(!refused.status.success(), "{outside}");
        let refused = kept.rrdtool(&format!("create {outside} {CREATE}"));
        assert!(!refused.status.success(), "{outside}");
    }
}

/// Continues a stopped process at drop, also when the test has failed.
struct Stopped(u32);

impl Drop for Stopped {
    fn drop(&mut self) {
        kill("-CONT", self.0);
    }
}

/// Requests to a keeper that hangs held all readers: nothing else was answered for 15 s, and then with 503.
#[test]
fn a_keeper_that_hangs_costs_what_is_stored_and_nothing_else() {
    let kept = Kept::start("keeper-hangs", "");
    let own = [
        "/kymo/v1/status",
        "/kymo/v1/processes",
        "/kymo/v1/fields",
        "/kymo/v1/events?from=-60",
        "/kymo/v1/series?fields=cpu.user&from=-60",
        "/metrics",
    ];
    let is_recording = || {
        let (status, _) = ask(&kept.address, "GET", "/kymo/v1/processes", "", "")?;
        (status == 200).then_some(())
    };
    eventually(is_recording).expect("a recording");
    let stopped = Stopped(kept.keeper());
    kill("-STOP", stopped.0);
    std::thread::scope(|scope| {
        let stored = ["/kymo/v1/stored", "/kymo/v1/hosts", "/kymo/v1/programs"];
        let waiting: Vec<_> = (0..12)
            .map(|n| {
                let (address, path) = (&kept.address, stored[n % 3]);
                scope.spawn(move || ask(address, "GET", path, "", ""))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(500));
        for path in own {
            let start = Instant::now();
            let (status, body) = ask(&kept.address, "GET", path, "", "").expect("an answer");
            assert_eq!(status, 200, "{path}: {body}");
            eprintln!("{path} beside a keeper that hangs: {:?}", start.elapsed());
            assert!(start.elapsed() < Duration::from_secs(8), "{path}");
        }
        drop(stopped);
        for answer in waiting {
            assert!(answer.join().expect("no panic").is_some());
        }
    });
    // Questions fail until the keeper, which runs again, has answered the hub's probe.
    let is_answered = || {
        let (status, _) = ask(&kept.address, "GET", "/kymo/v1/stored", "", "")?;
        (status == 200).then_some(())
    };
    eventually(is_answered).expect("an answer of the keeper");
}

/// A keeper that hung stayed so until an administrator killed it.
#[test]
fn a_keeper_that_hangs_for_too_long_is_started_again() {
    let mut kept = Kept::start("keeper-watched", "[store]\nsilence = \"10s\"\n");
    kept.must(&format!("create a.rrd {CREATE}"));
    kept.must("update a.rrd 1000000080:1");
    // A short silence is reported, and its end too.
    let keeper = kept.keeper();
    let stopped = Stopped(keeper);
    kill("-STOP", keeper);
    kept.served.has_said("the keeper has not answered for ");
    kept.served
        .has_said("a signal has stopped it; unless it answers within");
    drop(stopped);
    kept.served.has_said("the keeper answers again after ");
    assert_eq!(kept.keeper(), keeper);
    // A long silence gets the keeper killed; acknowledged values are there.
    kill("-STOP", keeper);
    kept.served
        .has_said("a signal has stopped it; it is killed and started again");
    kept.served.next_child("keeper", keeper);
    kept.must("update a.rrd 1000000140:2");
    let fetched = kept.must("fetch a.rrd AVERAGE -s 1000000020 -e 1000000140");
    assert!(
        fetched.contains("1.0000000000e+00") && fetched.contains("2.0000000000e+00"),
        "{fetched}"
    );
}

#[test]
fn what_was_acknowledged_outlives_a_kill_of_each_process() {
    let mut kept = Kept::start("keeper-kill", "");
    kept.must(&format!("create a.rrd {CREATE}"));
    let mut stamp = 1_000_000_020;
    let mut acknowledged = stamp;
    for word in ["keeper", "hub", "record", "keeper"] {
        let before = kept.served.child(word).expect(word);
        let keeper = kept.keeper();
        let mut client = kept.connect();
        for n in 0..200 {
            stamp += 60;
            if n == 150 {
                kill("-KILL", before);
            }
            let Ok(reply) = client.ask(format!("UPDATE a.rrd {stamp}:{stamp}").as_bytes()) else {
                break;
            };
            match reply.show().starts_with("0 errors, enqueued 1 value(s).") {
                true => acknowledged = stamp,
                false => break,
            }
        }
        kept.served.next_child(word, before);
        if word != "keeper" {
            assert_eq!(
                kept.keeper(),
                keeper,
                "the keeper goes on without the {word}"
            );
        }
        // Without a keeper a client waits in the socket, which the guardian holds.
        let last = kept.connect().text("LAST a.rrd");
        let last: u64 = last.trim_start_matches("0 ").parse().expect("a stamp");
        assert!(last >= acknowledged, "{last} is before {acknowledged}");
        assert!(last <= stamp, "{last} was never sent");
        stamp = stamp.max(last);
    }
    let rows = kept.must(&format!(
        "fetch a.rrd AVERAGE -r 60 -s 1000000020 -e {acknowledged}"
    ));
    let known = rows.lines().filter(|line| !line.contains("nan")).count();
    assert!(known > 600, "{rows}");
    kept.served.has_said("the keeper was ended by signal 9");
}

#[test]
fn it_ends_in_order_and_takes_its_socket_away() {
    let mut kept = Kept::start("keeper-end", "");
    let mode = fs::symlink_metadata(kept.socket()).expect("a socket");
    assert!(mode.file_type().is_socket());
    assert_eq!(mode.permissions().mode() & 0o777, 0o660);
    kept.must(&format!("create a.rrd {CREATE}"));
    kept.must("update a.rrd 1000000080:1");
    let keeper = kept.keeper();
    // The signal to write all files ends nothing.
    kill("-USR1", keeper);
    let file = kept.dir.join("rrd/a.rrd").to_string_lossy().into_owned();
    let written = eventually(|| {
        let last = rrdtool(&kept.dir, &["last", &file]);
        (last.stdout == b"1000000080\n").then_some(())
    });
    written.expect("the file is brought up to date");
    assert_eq!(kept.keeper(), keeper);
    kill("-TERM", kept.served.pid());
    let status = kept.served.guardian.0.wait().expect("its end");
    assert!(status.success(), "{status}");
    let ended = eventually(|| (!is_alive(keeper)).then_some(()));
    ended.expect("the keeper ends");
    assert!(!kept.socket().exists());
    let dir = kept.dir.join("store").to_string_lossy().into_owned();
    let verified = run(&["verify", &dir]);
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn it_has_no_more_than_it_needs() {
    let kept = Kept::start("keeper-rights", "");
    let keeper = kept.keeper();
    for field in ["CapPrm", "CapEff", "CapInh", "CapAmb"] {
        let set = u64::from_str_radix(&status_of(keeper, field)[0], 16);
        assert_eq!(set, Ok(0), "{field}");
    }
    assert_eq!(status_of(keeper, "NoNewPrivs"), ["1"]);
    // 2: a filter is active.
    assert_eq!(status_of(keeper, "Seccomp"), ["2"]);
    let line = kept
        .served
        .said
        .iter()
        .find(|line| line.contains("keeper: "));
    let line = line.expect("its line");
    assert!(
        line.ends_with("seccomp (no new sockets, no programs)"),
        "{line}"
    );
    let sockets = |pid| {
        let files = files_of(pid).into_iter();
        files
            .filter(|file| file.starts_with("socket:") && !is_connection(file))
            .collect::<Vec<_>>()
    };
    let (hub, guardian) = (kept.served.child("hub").expect("a hub"), kept.served.pid());
    if is_root() || !files_of(keeper).is_empty() {
        // If several services run, the usual port for datagrams may belong to another one.
        let (own, of_hub, held) = (sockets(keeper), sockets(hub), sockets(guardian));
        assert!(
            !own.is_empty() && own.iter().all(|socket| held.contains(socket)),
            "{own:?}"
        );
        assert!(!own.iter().any(|socket| of_hub.contains(socket)), "{own:?}");
        let open = files_of(keeper);
        let inside = |file: &&String| file.contains("/token") || file.contains("/loadavg");
        assert_eq!(open.iter().find(inside), None);
    }
    if is_root() {
        let owner = fs::metadata(&kept.dir).expect("the folder");
        assert_eq!(status_of(keeper, "Uid"), vec![owner.uid().to_string(); 4]);
        let socket = fs::symlink_metadata(kept.socket()).expect("the socket");
        assert_eq!((socket.uid(), socket.gid()), (0, 0), "root's alone");
    }
    let words: Vec<_> = children_of(guardian)
        .into_iter()
        .map(|pid| arguments_of(pid)[1].clone())
        .collect();
    assert_eq!(words.len(), 3, "{words:?}");
}

/// True if a socket, `socket:[INODE]`, is a unix connection: the hub sends requests by one.
fn is_connection(file: &str) -> bool {
    let inode = file.trim_matches(|c: char| !c.is_ascii_digit());
    let all = fs::read_to_string("/proc/net/unix").expect("sockets");
    all.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Num RefCount Protocol Flags Type St Inode; 03: connected.
        words.get(6) == Some(&inode) && words[5] == "03"
    })
}

#[test]
fn addresses_that_are_taken() {
    let scratch = Scratch::new("keeper-taken");
    let dir = scratch.path("data");
    // The default address: a log line, and all else goes on.
    fs::create_dir(&dir).expect("a folder");
    let _taken = UnixListener::bind(dir.join("rrdcached.sock")).expect("a socket");
    let text = dir.to_string_lossy().into_owned();
    let mut served = Served::start(&["--data", &text, LOCAL[0], LOCAL[1]]);
    served.address();
    served.has_said("rrdcached.sock: somebody listens there");
    assert!(served.child("record").is_some());
    drop(served);
    assert!(
        dir.join("rrdcached.sock").exists(),
        "it is not ours to remove"
    );
    // A configured address: nothing is started.
    let port = free_port();
    let _taken = std::net::TcpListener::bind(("127.0.0.1", port)).expect("a port");
    for (listen, says) in [
        (
            format!("rrdcached = [\"127.0.0.1:{port}\"]"),
            format!("cannot listen on 127.0.0.1:{port}: Address already in use"),
        ),
        (
            "rrdcached = [\"0.0.0.0:1\"]".into(),
            "cannot listen on 0.0.0.0:1: anybody could write there".into(),
        ),
        (
            "group = \"no such group\"".into(),
            "cannot use the group no such group".into(),
        ),
    ] {
        refuses(&scratch, &format!("[listen]\n{listen}\n"), &says);
    }
    let file = scratch.text("file");
    fs::write(&file, "").expect("a file");
    refuses(
        &scratch,
        &format!("[store]\nfolder = \"{file}\"\n"),
        &format!("cannot make {file}"),
    );
}

/// The service ends with code 2 and this message.
fn refuses(scratch: &Scratch, config: &str, says: &str) {
    let file = scratch.text("kymo.toml");
    fs::write(&file, config).expect("a configuration");
    let data = scratch.text("refused");
    let output = run(&[
        "serve", "--config", &file, "--data", &data, LOCAL[0], LOCAL[1],
    ]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{config}: {said}");
    assert!(said.contains(says), "{config}: {said}");
}

#[test]
fn other_places_and_no_files() {
    let scratch = Scratch::new("keeper-places");
    let (socket, base, store) = (
        scratch.text("clients"),
        scratch.text("files"),
        scratch.text("drum"),
    );
    let port = free_port();
    let config = format!(
        "[listen]\npage = \"127.0.0.1:0\"\nrrdcached = [\"{socket}\", \"127.0.0.1:{port}\"]\n\
         [store]\nbase = \"{base}\"\nfolder = \"{store}\"\nfiles = \"never\"\nbytes = \"1G\"\n"
    );
    // Another user than root has to reach these folders.
    fs::set_permissions(scratch.path(""), fs::Permissions::from_mode(0o777)).expect("chmod");
    let kept = Kept::start("keeper-places-data", &config);
    let mut client = Client::unix(Path::new(&socket)).expect("a client");
    assert_eq!(
        client.text("CREATE a.rrd -s 60 -b 1000000020 DS:x:GAUGE:120:U:U RRA:LAST:0.5:1:10"),
        "0 RRD created OK"
    );
    let mut client = Client::tcp(port).expect("a client");
    client.text("UPDATE a.rrd 1000000080:1");
    assert_eq!(client.text("LAST a.rrd"), "0 1000000080");
    assert_eq!(fs::read_dir(&base).expect("a folder").count(), 0);
    assert!(Path::new(&store).join("lock").exists());
    assert!(!kept.socket().exists());
}

#[test]
fn a_keeper_started_by_hand_says_who_starts_it() {
    let output = run(&["keeper"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("it is started by kymo serve"), "{said}");
}
