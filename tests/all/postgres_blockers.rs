//! A blocker is shown and recorded in any state: an idle session with a lock, a pipeline without an end, a prepared
//! transaction, a session hidden from the role. A walsender, which only follows the WAL, is no command in flight.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use kymo_tests::Running;
use kymo_tests::postgres::{Cluster, Place, programs};
use kymo_tests::served::{ask, eventually};
use serde_json::Value;

use crate::postgres_asked::{Asked, pid_of, text_of};

const PREPARES: &str = "max_prepared_transactions = 8";

/// A command of the extended protocol with a Flush for its results; without a Sync its transaction stays open.
fn flushed(cluster: &Cluster, sql: &str) -> UnixStream {
    let path = format!("{}/.s.PGSQL.5432", cluster.sockets());
    let mut stream = UnixStream::connect(path).expect("a connection");
    let message = |letter: &[u8], body: &[u8]| {
        let length = u32::try_from(body.len() + 4).expect("a length");
        [letter, &length.to_be_bytes(), body].concat()
    };
    let startup = b"\0\x03\0\0user\0postgres\0database\0postgres\0\0";
    stream.write_all(&message(b"", startup)).expect("sent");
    until(&mut stream, b'Z');
    let parse = [b"\0", sql.as_bytes(), b"\0\0\0"].concat();
    let pipeline = [
        message(b"P", &parse),
        message(b"B", &[0; 8]),
        message(b"E", &[0; 5]),
        message(b"H", b""),
    ];
    stream.write_all(&pipeline.concat()).expect("sent");
    until(&mut stream, b'C');
    stream
}

/// Reads messages up to one with this letter.
fn until(stream: &mut UnixStream, letter: u8) {
    let mut head = [0; 5];
    while head[0] != letter {
        stream.read_exact(&mut head).expect("a message");
        let length = u32::from_be_bytes(head[1..].try_into().expect("a length"));
        let mut body = vec![0; usize::try_from(length - 4).expect("a length")];
        stream.read_exact(&mut body).expect("its body");
    }
}

fn blockers_of(slot: &Value, key: &str) -> Vec<u64> {
    let numbers = slot[key].as_array().expect("a list").iter();
    numbers.flat_map(Value::as_u64).collect()
}

/// Waits until a recorded sample has slots that fit; returns them.
fn recorded(asked: &Asked, what: &str, fits: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let token = asked.token();
    let mut last = String::new();
    let found = eventually(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let path = format!("/kymo/v1/programs?at={}", now.as_secs() + 1);
        let (status, body) = ask(&asked.address, "GET", &path, &token, "")?;
        last = body;
        let answer: Value = serde_json::from_str(&last).ok().filter(|_| status == 200)?;
        let publishers = answer["publishers"].as_array()?.iter();
        let slots = publishers.flat_map(|each| each["slots"].as_array().cloned());
        let slots: Vec<Value> = slots.flatten().collect();
        fits(&slots).then_some(slots)
    });
    found.unwrap_or_else(|| panic!("{what} is not recorded: {last}"))
}

/// The waiting slot and its blocker.
fn pair<'a>(slots: &'a [Value], waiting: &str) -> Option<(&'a Value, &'a Value)> {
    let is_waiting =
        |slot: &&Value| text_of(slot).contains(waiting) && slot["wait"] != "" && slot["pid"] != 0;
    slots.iter().filter(is_waiting).find_map(|slot| {
        let by = blockers_of(slot, "blocked_by");
        let blocker = slots.iter().find(|each| by.contains(&pid_of(each)))?;
        Some((slot, blocker))
    })
}

/// A session waits in the command that contains `waiting`. Its blocker is shown live, printed and recorded.
fn is_shown_with_its_blocker(asked: &Asked, waiting: &str, state: &[&str], text: &str) {
    let fits = |slots: &[Value]| {
        pair(slots, waiting).is_some_and(|(_, blocker)| {
            state.iter().any(|state| blocker["state"] == *state) && text_of(blocker).contains(text)
        })
    };
    let live = asked.slots(waiting, fits);
    let (_, blocker) = pair(&live, waiting).expect("both");
    let pid = pid_of(blocker);
    let kept = recorded(asked, waiting, |slots| {
        fits(slots) && slots.iter().any(|slot| pid_of(slot) == pid)
    });
    assert_eq!(pid_of(pair(&kept, waiting).expect("both").1), pid);
    let printed = asked.printed();
    let mut lines = printed.lines();
    let found = lines.find(|line| line.trim_start().starts_with(&format!("{pid} ")));
    assert!(found.is_some_and(|line| line.contains(text)), "{printed}");
}

fn blockers_of_every_kind(asked: &Asked, cluster: &Cluster) {
    let (mut idle, mut first) = (cluster.session(), cluster.session());
    idle.send("SELECT pg_advisory_lock(71);");
    asked.slots("the lock is taken", |slots| {
        let mut slots = slots.iter();
        slots.any(|slot| slot["state"] == "idle" && text_of(slot).contains("pg_advisory_lock"))
    });
    first.send("SELECT 'a', pg_advisory_lock(71);");
    is_shown_with_its_blocker(
        asked,
        "SELECT ?, pg_advisory_lock",
        &["idle"],
        "SELECT pg_advisory_lock",
    );
    let pipeline = flushed(cluster, "SELECT pg_advisory_xact_lock(72)");
    let mut second = cluster.session();
    second.send("SELECT 'b', pg_advisory_xact_lock(72);");
    is_shown_with_its_blocker(
        asked,
        "SELECT ?, pg_advisory_xact_lock",
        &["idle", "active"],
        "SELECT pg_advisory_xact_lock",
    );
    drop(pipeline);
}

#[test]
fn who_holds_others_up_is_shown_whatever_its_state() {
    let (asked, cluster) = Asked::without_library("blockers-without", "");
    blockers_of_every_kind(&asked, &cluster);
}

#[test]
fn who_holds_others_up_is_shown_beside_the_library() {
    let (asked, cluster) = Asked::with_library("blockers-with", PREPARES);
    blockers_of_every_kind(&asked, &cluster);
    prepared_transactions(&asked, &cluster);
}

#[test]
fn a_prepared_transaction_is_shown_as_itself() {
    let (asked, cluster) = Asked::without_library("blockers-prepared", PREPARES);
    prepared_transactions(&asked, &cluster);
}

fn prepared_transactions(asked: &Asked, cluster: &Cluster) {
    // Both prepared transactions lock the table. A reader waits for one of them, a change of the table for both.
    cluster.psql(
        "BEGIN; SELECT * FROM t; PREPARE TRANSACTION 'reads';\
         CREATE TABLE u (a int); BEGIN; ALTER TABLE u ADD COLUMN b int; PREPARE TRANSACTION 'alters';\
         BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION 'writes';",
    );
    let (mut reader, mut altering) = (cluster.session(), cluster.session());
    reader.send("SELECT 'c', a FROM u;");
    altering.send("ALTER TABLE t ADD COLUMN c int;");
    let wanted = [
        ("SELECT ?, a FROM u", &["alters"][..]),
        ("ALTER TABLE t", &["reads", "writes"]),
    ];
    let gid_of = |slots: &[Value], xid: u64| {
        let slot = slots.iter().find(|slot| slot["xid"] == xid)?;
        Some(slot["labels"]["gid"].as_str()?.to_string())
    };
    let fits = |slots: &[Value]| {
        wanted.iter().all(|(waiting, gids)| {
            let mut slots_waiting = slots.iter();
            let waits = slots_waiting.find(|slot| text_of(slot).contains(waiting));
            let xids = waits.map(|slot| blockers_of(slot, "blocked_by_xids"));
            let found = xids.into_iter().flatten();
            let mut found: Vec<String> = found.flat_map(|xid| gid_of(slots, xid)).collect();
            found.sort();
            found == *gids
        })
    };
    let live = asked.slots("prepared transactions", fits);
    let kept = recorded(asked, "prepared transactions", fits);
    for slots in [live, kept] {
        let mut prepared = slots.iter().filter(|slot| slot["xid"] != 0);
        assert!(prepared.clone().count() == 3, "{slots:#?}");
        assert!(prepared.all(|slot| {
            let labels = &slot["labels"];
            let owned = labels["user"] == "postgres" && labels["database"] == "postgres";
            owned && slot["state"] == "prepared" && slot["since"].is_number()
        }));
    }
    let printed = asked.printed();
    assert!(printed.contains("blocked by transaction "), "{printed}");
    assert!(printed.contains("gid=alters"), "{printed}");
    cluster.psql("COMMIT PREPARED 'reads'; COMMIT PREPARED 'alters'; COMMIT PREPARED 'writes';");
    asked.slots("all have gone on", |slots| {
        !slots
            .iter()
            .any(|slot| slot["state"] == "active" || slot["xid"] != 0)
    });
}

/// Without pg_monitor a role sees that a session exists, but not its command.
#[test]
fn a_session_that_the_role_may_not_see_is_shown_for_what_it_holds_up() {
    let cluster = Cluster::serve(Place::new(), "", &[]);
    cluster.psql("CREATE ROLE weak LOGIN;");
    let asked = Asked::start("blockers-weak", &[("main", &cluster.sockets(), "weak")]);
    let (mut hidden, mut waiting) = (cluster.session(), cluster.session_as("weak"));
    hidden.send("SELECT pg_advisory_lock(73);");
    let is_taken = || {
        let taken = cluster.psql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';");
        (taken.trim() == "1").then_some(())
    };
    eventually(is_taken).expect("the lock is taken");
    waiting.send("SELECT 'a', pg_advisory_lock(73);");
    is_shown_with_its_blocker(&asked, "SELECT ?, pg_advisory_lock", &[""], "privilege");
}

/// Times at which kymo queried sessions, in seconds, from the server's log.
fn looks(cluster: &Cluster) -> Vec<f64> {
    let log = cluster.log();
    let of = |line: &str| {
        let is_look = line.contains("execute") && line.contains("pg_blocking_pids");
        let time = line.split_whitespace().next()?;
        is_look.then(|| time.parse().ok()).flatten()
    };
    log.lines().filter_map(of).collect()
}

/// A walsender is active as long as a standby is connected: kymo queried its server every second for ever.
#[test]
fn a_server_that_is_idle_but_for_a_walsender_is_looked_at_seldom() {
    let settings = "log_statement = all\nlog_line_prefix = '%n '";
    let (asked, cluster) = Asked::without_library("blockers-walsender", settings);
    let folder = Place::new();
    let mut standby = Command::new(programs().join("pg_receivewal"));
    standby.args([
        "-h",
        &cluster.sockets(),
        "-U",
        "postgres",
        "-D",
        &folder.folder(),
    ]);
    let standby = standby.stdout(Stdio::null()).stderr(Stdio::null());
    let _standby = Running(standby.spawn().expect("pg_receivewal"));
    let streams = || {
        let streams =
            cluster.psql("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming';");
        (streams.trim() == "1").then_some(())
    };
    eventually(streams).expect("the WAL is streamed");
    let active = |slots: &[Value]| slots.iter().any(|slot| slot["state"] == "active");
    asked.slots("nothing is in flight", |slots| {
        !slots.is_empty() && !active(slots)
    });
    // From here on no client asks for programs, so after five seconds the process queries less often.
    let before = looks(&cluster).len();
    let gaps = || {
        let times = looks(&cluster);
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let gaps = gaps.get(before + 6..)?;
        (gaps.len() >= 3).then(|| gaps.to_vec())
    };
    let mut gaps = eventually(gaps).expect("it is looked at");
    gaps.sort_by(f64::total_cmp);
    assert!(gaps[gaps.len() / 2] > 2.5, "{gaps:?}");
}
