//! At SIGHUP the guardian reads the AuthFile again; the keeper gets the new users, and so does a later one.

use std::fs;

use kymo_tests::served::{Served, kill};
use kymo_wire::collectd::sign;

use super::hub::{Hub, eventually};
use super::packets::{gauge, name, now, sender};

const CONFIG: &str =
    "[store]\nfiles = \"never\"\n[collectd]\nsecurity = \"sign\"\nauth_file = \"AUTH\"\n";

fn signed(host: &str, time: u64, password: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let packet = gauge(host, time, 1.0);
    sign(&mut out, b"user0", password.as_bytes(), &packet);
    out
}

/// Starts without the terminal of the tests, and with SIGHUP at its default.
fn without_terminal(words: &[&str]) -> Served {
    let kymo = kymo_tests::kymo();
    let program = kymo.to_string_lossy().into_owned();
    let before = ["--default-signal=HUP", "setsid", &program, "serve"];
    Served::start_as("env", &[&before[..], words].concat())
}

#[test]
fn the_auth_file_is_read_again_at_sighup() {
    let mut hub = Hub::start_by("auth-file", CONFIG, without_terminal);
    let socket = sender("127.0.0.1", hub.port);
    let time = now() - 1000;
    let stored = |hub: &Hub, host: &str, time: u64, password: &str| {
        eventually(&format!("values of {host}"), || {
            socket.send(&signed(host, time, password)).expect("sent");
            (hub.last(&name(host)) == Some(time - time % 10)).then_some(())
        });
    };
    stored(&hub, "before", time, "foo");
    let (guardian, keeper) = (hub.served.pid(), hub.keeper());
    let users = hub.scratch.path("users");
    fs::write(
        &users,
        "# changed\nuser0: another password, which is longer\nother: bar\n",
    )
    .expect("a file");
    kill("-HUP", guardian);
    hub.says("read auth_file again: 2 users");
    stored(&hub, "after", time, "another password, which is longer");
    socket.send(&signed("old", time, "foo")).expect("sent");
    stored(
        &hub,
        "after",
        time + 10,
        "another password, which is longer",
    );
    assert_eq!(hub.last(&name("old")), None, "the old password is none");
    // If the file is gone, the users stay, and a message says so.
    fs::remove_file(&users).expect("removed");
    kill("-HUP", guardian);
    hub.says("its users stay as they were");
    assert_eq!(hub.keeper(), keeper, "nothing was ended");
    kill("-KILL", keeper);
    hub.served.next_child("keeper", keeper);
    stored(
        &hub,
        "after",
        time + 20,
        "another password, which is longer",
    );
}
