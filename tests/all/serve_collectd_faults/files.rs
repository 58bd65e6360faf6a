//! .rrd files of collectd's series: none until a client asks, unless they are to be kept up to date.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kymo_tests::free_port;
use kymo_tests::rrd_file::files_below;
use kymo_tests::served::kill;

use super::hub::{Hub, eventually};
use super::packets::{gauge, name, now, sender};

/// Files below a folder, without the empty ones that stand for series without files.
fn written_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = files_below(folder);
    files.retain(|file| fs::metadata(file).is_ok_and(|stat| stat.len() > 0));
    files
}

/// Rows of a file by rrdtool, with or without the daemon's help.
fn fetched(file: &str, daemon: &[&str], (from, to): (u64, u64)) -> String {
    let (from, to) = (from.to_string(), to.to_string());
    let mut command = Command::new("rrdtool");
    command
        .args(["fetch", file, "AVERAGE", "-s", &from, "-e", &to])
        .args(daemon);
    let output = command.output().expect("rrdtool");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_file_is_made_when_somebody_asks() {
    let tcp = free_port();
    let hub = Hub::start(
        "files-ask",
        &format!("rrdcached = [\"unix:SOCKET\", \"127.0.0.1:{tcp}\"]\n"),
    );
    let socket = sender("127.0.0.1", hub.port);
    let (base, time) = (hub.dir.join("rrd"), now() - 1000);
    let hosts = ["one", "two", "three"];
    for at in 0..40 {
        for host in hosts {
            let packet = gauge(host, time + 10 * at, at as f64);
            socket.send(&packet).expect("sent");
        }
    }
    let end = time + 390;
    for host in hosts {
        hub.ends_at(&name(host), end);
    }
    assert_eq!(files_below(&base).len(), hosts.len());
    assert_eq!(written_below(&base), Vec::<PathBuf>::new());
    let mut names = hosts.map(name);
    names.sort();
    assert_eq!(hub.names(), names);
    assert_eq!(hub.client().text("LIST /one"), "1 RRDs\np");
    let last = hub.client().text(&format!("LAST {}", name("one")));
    assert_eq!(last, format!("0 {}", end - end % 10));
    // A program that draws with the daemon's help gets the same values with and without a file.
    // Over a unix socket rrdtool first looks for the file itself, and finds one of 0 bytes.
    let daemon = format!("127.0.0.1:{tcp}");
    let fetch = |file: &str, daemon: &[&str]| fetched(file, daemon, (time - 20, end));
    let from_store = fetch(&name("one"), &["--daemon", &daemon]);
    assert!(from_store.lines().count() > 35, "{from_store}");
    let (path, unix) = (base.join(name("one")), hub.dir.join("rrdcached.sock"));
    let daemon = format!("unix:{}", unix.display());
    let by_socket = fetch(&path.to_string_lossy(), &["--daemon", &daemon]);
    assert_eq!(by_socket, from_store);
    let said = hub.client().text(&format!("FLUSH {}", name("one")));
    assert_eq!(
        said,
        format!(
            "0 Successfully flushed {}.",
            base.join(name("one")).display()
        )
    );
    assert_eq!(written_below(&base), [base.join(name("one"))]);
    assert_eq!(
        fetch(&base.join(name("one")).to_string_lossy(), &[]),
        from_store
    );
    // The next keeper still knows the other series, and makes their files.
    let keeper = hub.keeper();
    kill("-KILL", keeper);
    hub.served.next_child("keeper", keeper);
    for host in hosts {
        hub.ends_at(&name(host), end);
    }
    assert_eq!(hub.names(), names);
    let said = hub.client().text(&format!("FLUSH {}", name("two")));
    assert!(said.starts_with("0 "), "{said}");
    let mut made = written_below(&base);
    made.sort();
    let mut wanted = [name("one"), name("two")].map(|name| base.join(name));
    wanted.sort();
    assert_eq!(made, wanted);
    // After a user removes a file the series goes on, and its file is made again.
    let file = base.join(name("one"));
    fs::remove_file(&file).expect("removed");
    let mut time = end;
    eventually("the file again", || {
        time += 10;
        socket.send(&gauge("one", time, 1.0)).expect("sent");
        hub.client().text(&format!("FLUSH {}", name("one")));
        file.exists().then_some(())
    });
}

#[test]
fn files_that_are_kept_up_to_date_are_there_at_once() {
    let hub = Hub::start("files-age", "[store]\nfiles = \"1d\"\n");
    let socket = sender("127.0.0.1", hub.port);
    let (base, time) = (hub.dir.join("rrd"), now() - 1000);
    socket.send(&gauge("one", time, 1.0)).expect("sent");
    hub.ends_at(&name("one"), time);
    assert_eq!(files_below(&base), [base.join(name("one"))]);
    // A folder made by another program, with a file of collectd's in it.
    let theirs = base.join(name("two"));
    fs::create_dir_all(theirs.parent().expect("a folder")).expect("a folder");
    fs::copy(base.join(name("one")), &theirs).expect("a copy");
    socket.send(&gauge("two", time + 10, 2.0)).expect("sent");
    hub.ends_at(&name("two"), time + 10);
}
