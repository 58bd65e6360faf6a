//! PostgreSQL with the library of `postgres/`: counts are exact under all clients, procedures and errors, and survive kills of
//! backends; the activity of backends is visible from outside.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use kymo_shm::{Activity, Kind, Reader, Scratch, State, Value};
use kymo_tests::postgres::{Cluster, Place, Session, library, pg_config, programs};
use kymo_tests::postgres_client::Client;
use kymo_tests::source_package::source_package;

const PATIENCE: Duration = Duration::from_secs(60);

/// Totals by name, such as `commands{select}`: without `_total`, with the label's value.
pub(crate) type Totals = BTreeMap<String, u64>;

/// All totals other than zero.
pub(crate) fn totals(reader: &mut Reader) -> Totals {
    reader.scan(&mut Scratch::default()).expect("a scan");
    assert!(!reader.has_bad_metrics());
    let mut found = Totals::new();
    for metric in reader.metrics() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let described = &metric.description;
        let name = text(&described.name);
        let name = name.strip_suffix("_total").unwrap_or(&name);
        let labels = described.labels.iter();
        let mut own = labels.filter(|(name, _)| name != b"server" && name != b"port");
        let label = own.next();
        let key = label.map_or(name.to_string(), |(_, value)| {
            format!("{name}{{{}}}", text(value))
        });
        match reader.value(metric) {
            Value::Counter(0) | Value::Gauge(_) => {}
            Value::Counter(value) => drop(found.insert(key, value)),
            Value::Histogram(histogram) => drop(found.insert(key, histogram.samples)),
        }
    }
    found
}

/// Growth of each total with one of these names, without zeros.
pub(crate) fn grown(before: &Totals, after: &Totals, names: &[&str]) -> Totals {
    let of = |key: &str| names.contains(&key.split('{').next().unwrap_or_default());
    let counted = after.iter().filter(|(key, _)| of(key));
    let grown = counted.map(|(key, value)| (key.clone(), value - before.get(key).unwrap_or(&0)));
    grown.filter(|&(_, value)| value != 0).collect()
}

/// Parses totals such as `commands{select} 1, errors 2`.
fn parsed(text: &str) -> Totals {
    let parts = text.split(", ").filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (name, value) = part.split_once(' ').expect("a name and a number");
        (name.to_string(), value.parse().expect("a number"))
    };
    parts.map(pair).collect()
}

const COUNTED: &[&str] = &[
    "commands",
    "rows",
    "nested_commands",
    "errors",
    "transactions",
];

/// A script for psql, and its expected counts. psql sends each statement
/// in its own message; statements before `\;` go with the next one.
const SCRIPTS: &[(&str, &str)] = &[
    ("", ""),
    (
        "SELECT 1;",
        "commands{select} 1, rows{select} 1, transactions{commit} 1",
    ),
    (
        "  /* a */ SELECT a FROM t WHERE a <= 3",
        "commands{select} 1, rows{select} 3, transactions{commit} 1",
    ),
    (
        "SELECT 1\\; SELECT 2\\; SELECT 3;",
        "commands{select} 3, rows{select} 3, transactions{commit} 1",
    ),
    (
        "INSERT INTO t SELECT generate_series(101, 110);",
        "commands{insert} 1, rows{insert} 10, transactions{commit} 1",
    ),
    (
        "UPDATE t SET b = 'u' WHERE a > 105;",
        "commands{update} 1, rows{update} 5, transactions{commit} 1",
    ),
    (
        "DELETE FROM t WHERE a > 100 RETURNING a;",
        "commands{delete} 1, rows{delete} 10, transactions{commit} 1",
    ),
    (
        "WITH d AS (DELETE FROM t WHERE a = 1 RETURNING a) SELECT * FROM d;",
        "commands{select} 1, rows{select} 1, transactions{commit} 1",
    ),
    (
        "MERGE INTO t USING (SELECT 1 AS a) s ON t.a = s.a WHEN NOT MATCHED THEN INSERT VALUES (s.a);",
        "commands{other} 1, rows{other} 1, transactions{commit} 1",
    ),
    (
        "SET work_mem = '8MB';",
        "commands{utility} 1, transactions{commit} 1",
    ),
    // Errors of the syntax, the parser, the planner and the executor; then in a transaction that has already failed.
    (
        "SELCT 1;\nSELECT 1;",
        "commands{select} 1, rows{select} 1, errors 1, transactions{commit} 1, transactions{rollback} 1",
    ),
    (
        "SELECT * FROM missing;",
        "errors 1, transactions{rollback} 1",
    ),
    ("SELECT 1 / 0;", "errors 1, transactions{rollback} 1"),
    (
        "SELECT 1 / (a - 2) FROM t;",
        "commands{select} 1, errors 1, transactions{rollback} 1",
    ),
    (
        "INSERT INTO t VALUES (2);",
        "commands{insert} 1, errors 1, transactions{rollback} 1",
    ),
    (
        "BEGIN;\nSELECT 1 / 0;\nSELECT 2;\nSELCT;\nROLLBACK;",
        "commands{utility} 2, errors 3, transactions{rollback} 1",
    ),
    (
        "BEGIN;\nSAVEPOINT s;\nSELECT 1 / 0;\nROLLBACK TO s;\nSELECT 1;\nCOMMIT;",
        "commands{utility} 4, commands{select} 1, rows{select} 1, errors 1, transactions{commit} 1",
    ),
    (
        "SELECT 1\\; SELECT 1 / 0\\; SELECT 3;",
        "commands{select} 1, rows{select} 1, errors 1, transactions{rollback} 1",
    ),
    // The server's log does not have this error.
    (
        "SET log_min_messages = fatal;\nSELECT 1 / 0;",
        "commands{utility} 1, errors 1, transactions{commit} 1, transactions{rollback} 1",
    ),
    (
        "SET log_min_messages = fatal;\nBEGIN;\nSAVEPOINT s;\nSELECT 1 / 0;\nROLLBACK TO s;\nCOMMIT;",
        "commands{utility} 5, errors 1, transactions{commit} 2",
    ),
    (
        "SET log_min_messages = fatal;\nBEGIN;\nSELECT 1 / 0;\nSELECT 2;\nSELCT;\nROLLBACK;",
        "commands{utility} 3, errors 3, transactions{commit} 1, transactions{rollback} 1",
    ),
    (
        "SET log_min_messages = panic;\nSELCT;\nCALL cycle(1, 1);\nCOMMIT;",
        "commands{utility} 3, nested_commands 2, errors 2, transactions{commit} 2, transactions{rollback} 2",
    ),
    // A constraint that is checked at the end of the transaction.
    (
        "INSERT INTO deferred VALUES (0);",
        "commands{insert} 1, rows{insert} 1, nested_commands 1, errors 1, transactions{rollback} 1",
    ),
    (
        "BEGIN;\nINSERT INTO deferred VALUES (0);\nCOMMIT;",
        "commands{insert} 1, commands{utility} 2, rows{insert} 1, nested_commands 1, errors 1, transactions{rollback} 1",
    ),
    // Commands within others.
    (
        "PREPARE p(int) AS SELECT a FROM t WHERE a <= $1;\nEXECUTE p(4);\nDEALLOCATE p;",
        "commands{select} 1, commands{utility} 2, rows{select} 4, transactions{commit} 3",
    ),
    (
        "PREPARE i AS INSERT INTO t VALUES (201);\nEXECUTE i;\nEXECUTE i;\nDELETE FROM t WHERE a = 201;",
        "commands{insert} 2, commands{delete} 1, commands{utility} 1, rows{insert} 1, rows{delete} 1, errors 1, transactions{commit} 3, transactions{rollback} 1",
    ),
    (
        "BEGIN;\nDECLARE c CURSOR FOR SELECT * FROM t;\nFETCH 7 FROM c;\nFETCH 2 FROM c;\nMOVE 1 FROM c;\nCOMMIT;",
        "commands{utility} 6, rows{utility} 10, nested_commands 1, transactions{commit} 1",
    ),
    (
        "DECLARE c CURSOR WITH HOLD FOR SELECT 1\\; FETCH ALL FROM c;\nCLOSE c;",
        "commands{utility} 3, rows{utility} 1, nested_commands 1, transactions{commit} 2",
    ),
    (
        "COPY t TO '/dev/null';\nCOPY (SELECT 1) TO '/dev/null';",
        "commands{utility} 2, rows{utility} 101, nested_commands 1, transactions{commit} 2",
    ),
    (
        "COPY t (a) FROM stdin;\n301\n302\n\\.\nDELETE FROM t WHERE a > 300;",
        "commands{utility} 1, commands{delete} 1, rows{utility} 2, rows{delete} 2, transactions{commit} 2",
    ),
    (
        "CREATE TABLE made AS SELECT * FROM t;",
        "commands{utility} 1, rows{utility} 100, nested_commands 1, transactions{commit} 1",
    ),
    (
        "EXPLAIN SELECT 1;\nEXPLAIN (ANALYZE) SELECT 1;",
        "commands{utility} 2, nested_commands 1, transactions{commit} 2",
    ),
    (
        "DO $$ BEGIN PERFORM a FROM t; PERFORM a FROM t; END $$;",
        "commands{utility} 1, nested_commands 2, transactions{commit} 1",
    ),
    (
        "SELECT looped(3);",
        "commands{select} 1, rows{select} 1, nested_commands 3, transactions{commit} 1",
    ),
    (
        "SELECT folded();",
        "commands{select} 1, rows{select} 1, nested_commands 2, transactions{commit} 1",
    ),
    (
        "INSERT INTO watched VALUES (1), (2);",
        "commands{insert} 1, rows{insert} 2, nested_commands 2, transactions{commit} 1",
    ),
    // Functions that run outside of commands: in parameters of EXECUTE, in the planner, at the end of a transaction.
    (
        "PREPARE p(int) AS SELECT $1;\nEXECUTE p(looped(3));",
        "commands{select} 1, commands{utility} 1, rows{select} 1, nested_commands 3, transactions{commit} 2",
    ),
    (
        "PREPARE p(int) AS SELECT $1;\nEXECUTE p(caught(3));\nSELECT 1;",
        "commands{select} 2, commands{utility} 1, rows{select} 2, nested_commands 9, transactions{commit} 3",
    ),
    (
        "SELECT caught(2);\nSELECT 1;",
        "commands{select} 2, rows{select} 2, nested_commands 6, transactions{commit} 2",
    ),
    (
        "BEGIN;\nSAVEPOINT a;\nSELECT caught(1);\nROLLBACK TO a;\nSELECT caught(1);\nCOMMIT;",
        "commands{select} 2, commands{utility} 4, rows{select} 2, nested_commands 6, transactions{commit} 1",
    ),
    (
        "BEGIN;\nINSERT INTO late VALUES (1), (2);\nSELECT 1;\nCOMMIT;\nSELECT 2;",
        "commands{insert} 1, commands{select} 2, commands{utility} 2, rows{insert} 2, rows{select} 2, nested_commands 11, transactions{commit} 2",
    ),
    (
        "SELECT 5::checked;",
        "commands{select} 1, rows{select} 1, nested_commands 1, transactions{commit} 1",
    ),
    (
        "BEGIN;\nDECLARE c CURSOR WITH HOLD FOR SELECT a FROM t;\nCOMMIT;\nFETCH 2 FROM c;\nCLOSE c;",
        "commands{utility} 5, rows{utility} 2, nested_commands 1, transactions{commit} 3",
    ),
    // Rules: commands that a rule adds are nested; a command that a rule substitutes counts as the client's.
    (
        "INSERT INTO ruled VALUES (1), (2);",
        "commands{insert} 1, rows{insert} 2, nested_commands 2, transactions{commit} 1",
    ),
    (
        "PREPARE p AS INSERT INTO ruled VALUES (1);\nEXECUTE p;\nDELETE FROM ruled;\nDELETE FROM traced;",
        "commands{insert} 1, commands{delete} 2, commands{utility} 1, rows{insert} 1, rows{delete} 9, nested_commands 2, transactions{commit} 4",
    ),
    (
        "UPDATE ruled SET a = 1;",
        "commands{update} 1, nested_commands 1, transactions{commit} 1",
    ),
    // Procedures that commit, roll back and catch errors, and then one that fails.
    (
        "CALL cycle(6, 0);\nSELECT 1;",
        "commands{utility} 1, commands{select} 1, rows{select} 1, nested_commands 12, transactions{commit} 5, transactions{rollback} 3",
    ),
    (
        "CALL cycle(6, 4);\nSELECT 1;",
        "commands{utility} 1, commands{select} 1, rows{select} 1, nested_commands 8, errors 1, transactions{commit} 2, transactions{rollback} 3",
    ),
    (
        "DO $$ BEGIN CALL cycle(2, 0); END $$;\nSELECT 1;",
        "commands{utility} 1, commands{select} 1, rows{select} 1, nested_commands 5, transactions{commit} 3, transactions{rollback} 1",
    ),
    (
        "SET kymo.enabled = off;\nSELECT 1;\nSELECT 1 / 0;\nSET kymo.enabled = on;\nSELECT 1;",
        "commands{utility} 1, commands{select} 1, rows{select} 1, transactions{commit} 2",
    ),
];

const SCHEMA: &str = "
CREATE TABLE t (a int PRIMARY KEY, b text);
INSERT INTO t SELECT generate_series(1, 100);
CREATE TABLE referenced (a int PRIMARY KEY);
CREATE TABLE deferred (a int REFERENCES referenced DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE watched (a int);
CREATE FUNCTION trace() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM a FROM t WHERE a = NEW.a; RETURN NEW; END $$;
CREATE TRIGGER w AFTER INSERT ON watched FOR EACH ROW EXECUTE FUNCTION trace();
CREATE FUNCTION looped(n int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE r record; s int := 0; BEGIN
  FOR i IN 1..n LOOP FOR r IN SELECT a FROM t LOOP s := s + r.a; END LOOP; END LOOP; RETURN s; END $$;
CREATE FUNCTION folded() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ DECLARE r record; s int := 0; BEGIN
  FOR r IN SELECT a FROM t LOOP s := s + r.a; END LOOP; PERFORM a FROM t; RETURN s; END $$;
CREATE FUNCTION caught(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ DECLARE r record; s int := 0; BEGIN
  FOR i IN 1..n LOOP
    BEGIN PERFORM 1 / (a - a) FROM t WHERE a = 2 AND looped(1) > 0; EXCEPTION WHEN division_by_zero THEN s := s + 1; END;
    FOR r IN SELECT a FROM t WHERE a = 2 LOOP s := s + r.a; END LOOP;
  END LOOP; RETURN s; END $$;
CREATE TABLE late (a int);
CREATE FUNCTION catch_late() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE s int; BEGIN s := caught(NEW.a); PERFORM 1 FROM t WHERE a = s; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER l AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION catch_late();
CREATE FUNCTION is_small(n int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN PERFORM a FROM t WHERE a = n; RETURN FOUND; END $$;
CREATE DOMAIN checked AS int CHECK (is_small(VALUE));
CREATE TABLE ruled (a int);
CREATE TABLE traced (a int);
CREATE RULE also AS ON INSERT TO ruled DO ALSO INSERT INTO traced VALUES (NEW.a), (NEW.a);
CREATE RULE said AS ON INSERT TO ruled DO ALSO NOTIFY ruled;
CREATE RULE instead AS ON UPDATE TO ruled DO INSTEAD INSERT INTO traced VALUES (NEW.a);
CREATE PROCEDURE cycle(n int, fails int) LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..n LOOP
  UPDATE t SET b = 'c' WHERE a = i;
  IF i = fails THEN INSERT INTO t VALUES (1); END IF;
  BEGIN INSERT INTO t VALUES (1); EXCEPTION WHEN unique_violation THEN NULL; END;
  IF i % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF; END LOOP; END $$;
";

#[test]
fn commands_are_counted_exactly_by_kind() {
    let cluster = Cluster::start("");
    cluster.psql(SCHEMA);
    let mut reader = cluster.reader();
    let mut wrong = String::new();
    for &(script, expected) in SCRIPTS {
        let before = totals(&mut reader);
        cluster.psql(script);
        // A backend may end after its client: its last counts then belong to its last command.
        let after = totals(&mut reader);
        let counted = grown(&before, &after, COUNTED);
        if counted != parsed(expected) {
            wrong += &format!("{script}\n  counted  {counted:?}\n  expected {expected}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let all = totals(&mut reader);
    assert_eq!(all["sessions"], SCRIPTS.len() as u64 + 1);
    for name in [
        "shared_blocks{hit}",
        "shared_blocks{read}",
        "shared_blocks{dirtied}",
        "wal_records",
        "wal_bytes",
    ] {
        assert!(all.contains_key(name), "{name}: {all:?}");
    }
}

/// Messages of the extended protocol by many clients: each execution of a plan is counted.
#[test]
fn commands_of_many_clients_are_counted_exactly() {
    let cluster = Cluster::start("max_connections = 20");
    cluster.psql("CREATE TABLE t (a int PRIMARY KEY, n int); INSERT INTO t SELECT generate_series(1, 10), 0;");
    let mut reader = cluster.reader();
    let script = "\\set n 1 + :client_id
        SELECT n FROM t WHERE a = :n;\nBEGIN;\nUPDATE t SET n = n + 1 WHERE a = :n;\nSELECT a FROM t ORDER BY a;\nEND;\n";
    let expected = "commands{select} 2000, commands{update} 1000, commands{utility} 2000, rows{select} 11000, rows{update} 1000";
    // Each client prepares two of the commands outside of a transaction.
    for (mode, commits) in [("simple", 2000), ("extended", 2000), ("prepared", 2020)] {
        let before = totals(&mut reader);
        let output = cluster.pgbench(mode, script, 10, 100).wait_with_output();
        let output = output.expect("pgbench");
        assert!(output.status.success(), "{output:?}");
        let counted = grown(&before, &totals(&mut reader), COUNTED);
        let expected = format!("{expected}, transactions{{commit}} {commits}");
        assert_eq!(counted, parsed(&expected), "{mode}");
    }
}

/// Samples of all latencies, and the sum of their weights.
fn latencies(reader: &mut Reader) -> (u64, u64) {
    reader.scan(&mut Scratch::default()).expect("a scan");
    let (mut samples, mut weights) = (0, 0);
    for metric in reader.metrics() {
        if let Value::Histogram(histogram) = reader.value(metric) {
            samples += histogram.samples;
            weights += histogram.count();
        }
    }
    (samples, weights)
}

#[test]
fn latencies_say_how_many_they_rest_on() {
    let cluster = Cluster::start("");
    let mut reader = cluster.reader();
    let statements = "SELECT 1\\; SELECT 2;\n".repeat(1000);
    let mut timed = |setting: &str| {
        let before = latencies(&mut reader);
        cluster.psql(&format!("SET kymo.timing = {setting};\n{statements}"));
        let after = latencies(&mut reader);
        (after.0 - before.0, after.1 - before.1)
    };
    // SET itself runs under the previous setting.
    let (samples, weights) = timed("sampled");
    assert!((5..1000).contains(&samples), "{samples} of 2,000");
    assert!((samples..=64 * samples).contains(&weights), "{weights}");
    let (samples, weights) = timed("'all'");
    assert!((2000..2002).contains(&samples), "{samples}");
    assert!((2000..2065).contains(&weights), "{weights}");
    let (samples, _) = timed("off");
    assert!(samples < 2, "{samples}");
    // The latency is right, too: a command lasts at least as long as it sleeps.
    cluster.psql("SET kymo.timing = 'all';\nSELECT 1\\; SELECT pg_sleep(0.2)\\; SELECT 3;");
    reader.scan(&mut Scratch::default()).expect("a scan");
    let longest = reader.metrics().iter().filter_map(|metric| {
        let Value::Histogram(histogram) = reader.value(metric) else {
            return None;
        };
        let last = histogram.weights.iter().rposition(|&weight| weight != 0)?;
        histogram.buckets.upper(last)
    });
    let longest = longest.max().expect("a latency");
    assert!(longest > 200_000, "{longest} us");
}

/// A slow command is always timed and has the weight 1, with track_activities on or off, and anywhere in a message. All weights
/// together are the number of commands.
#[test]
fn slow_commands_are_all_timed() {
    const SLOW: u64 = 80;
    let slow = "DO 'BEGIN PERFORM pg_sleep(0.025); END'";
    for settings in ["", "track_activities = off"] {
        let cluster = Cluster::start(settings);
        let mut reader = cluster.reader();
        let mut client = Client::connect(&cluster.sockets(), "");
        for form in ["alone", "between others", "in a pipeline"] {
            let before = timed_utility(&mut reader);
            for _ in 0..SLOW {
                let texts = ["SELECT 1", slow, "SELECT 2"];
                match form {
                    "alone" => drop(client.query(slow)),
                    "between others" => drop(client.query(&texts.join("; "))),
                    _ => {
                        for text in texts {
                            client.parse("", text);
                            client.bind("", "");
                            client.execute("", 0);
                        }
                        drop(client.sync());
                    }
                }
            }
            let after = timed_utility(&mut reader);
            let grown = (after.0 - before.0, after.1 - before.1);
            assert_eq!(grown, (SLOW, SLOW), "{form} {settings}");
        }
        let before = latencies(&mut reader).1;
        cluster.psql(&"SELECT 1;\n".repeat(20_000));
        let all = latencies(&mut reader).1 - before;
        // Five standard deviations.
        assert!(
            (14_000..26_000).contains(&all),
            "{all} of 20,000 {settings}"
        );
    }
}

/// Samples and weights of the latencies of utility commands.
fn timed_utility(reader: &mut Reader) -> (u64, u64) {
    reader.scan(&mut Scratch::default()).expect("a scan");
    let found = reader.metrics().iter().find_map(|metric| {
        let is_utility = metric.description.labels.first()?.1 == b"utility";
        match reader.value(metric) {
            Value::Histogram(histogram) if is_utility => {
                Some((histogram.samples, histogram.count()))
            }
            _ => None,
        }
    });
    found.expect("a histogram")
}

/// Waits until an owned slot fits; returns it.
fn seen(reader: &mut Reader, what: &str, is: impl Fn(&Activity) -> bool) -> Activity {
    let until = Instant::now() + PATIENCE;
    loop {
        reader.sample(&mut Scratch::default()).expect("a sample");
        let owned = reader
            .activities()
            .iter()
            .filter(|slot| slot.owner.is_some());
        if let Some(found) = owned.clone().find(|slot| is(slot)) {
            return found.clone();
        }
        assert!(
            Instant::now() < until,
            "not {what}: {:?}",
            owned.collect::<Vec<_>>()
        );
        sleep(Duration::from_millis(10));
    }
}

fn text(slot: &Activity) -> &[u8] {
    slot.command.as_ref().map_or(b"", |command| &command.text)
}

fn labels(slot: &Activity) -> Vec<String> {
    let labels = slot.identity.iter().flat_map(|identity| &identity.labels);
    labels
        .map(|label| String::from_utf8_lossy(&label.text).into_owned())
        .collect()
}

/// Sends `lines` and waits for a slot with this state and text.
fn shown(
    reader: &mut Reader,
    session: &mut Session,
    lines: &str,
    state: State,
    begun: &str,
) -> Activity {
    session.send(lines);
    seen(reader, lines, |slot| {
        slot.state == state && text(slot) == begun.as_bytes()
    })
}

#[test]
fn what_a_backend_does_is_seen_from_outside() {
    let cluster = Cluster::start("kymo.text_length = 100");
    let mut reader = cluster.reader();
    let mut session = cluster.session();
    let idle = seen(&mut reader, "a session that said nothing", |slot| {
        slot.state == State::Idle
    });
    assert_eq!(labels(&idle), ["psql", "postgres", "postgres"]);
    let pid = idle.owner.expect("an owner").pid;
    assert_eq!(
        idle.identity
            .as_ref()
            .map(|identity| (identity.pid, identity.leader)),
        Some((pid, None))
    );
    for (lines, state, begun) in [
        ("SELECT 'idle';", State::Idle, "SELECT 'idle'"),
        ("  BEGIN;", State::IdleInTransaction, "BEGIN"),
        (
            "SELECT 1 / (1 - count(*)) FROM pg_class WHERE false OR oid = 1259;",
            State::IdleInAbortedTransaction,
            "SELECT 1 / (1 - count(*)) FROM pg_class WHERE false OR oid = 1259",
        ),
        ("ROLLBACK;", State::Idle, "ROLLBACK"),
        (
            "SELECT 1\\; SELECT pg_sleep(1)\\; SELECT 2;",
            State::Active,
            "SELECT pg_sleep(1)",
        ),
        ("", State::Idle, "SELECT 2"),
        (
            "PREPARE p AS SELECT pg_sleep(1);\nEXECUTE p;",
            State::Active,
            "EXECUTE p",
        ),
        (
            "DO $$ BEGIN PERFORM 1; COMMIT; PERFORM pg_sleep(1); END $$;",
            State::Active,
            "DO $$ BEGIN PERFORM 1; COMMIT; PERFORM pg_sleep(1); END $$",
        ),
        (
            "SET application_name = 'other';",
            State::Idle,
            "SET application_name = 'other'",
        ),
        ("CREATE ROLE secret PASSWORD 'hidden';", State::Idle, ""),
        (
            "SET kymo.enabled = off;",
            State::None,
            "SET kymo.enabled = off",
        ),
        (
            "SELECT 3;\nSET kymo.enabled = on;\nSELECT 4;",
            State::Idle,
            "SELECT 4",
        ),
    ] {
        let slot = shown(&mut reader, &mut session, lines, state, begun);
        assert_eq!(slot.owner.map(|owner| owner.pid), Some(pid), "{lines}");
        let kind = slot.command.expect("a command").kind;
        assert_eq!(
            kind,
            if begun.is_empty() {
                Kind::Secret
            } else {
                Kind::Sql
            }
        );
    }
    let long = format!("SELECT '{}'", "x".repeat(500));
    let cut = long[..104].to_string();
    let slot = shown(
        &mut reader,
        &mut session,
        &format!("{long};"),
        State::Idle,
        &cut,
    );
    assert_eq!(labels(&slot)[0], "other");
    let command = slot.command.expect("a command");
    assert!(command.is_truncated());
    assert_eq!(command.whole_bytes, 509);
    drop(session);
    let gone = |slot: &Activity| slot.owner.is_none();
    let until = Instant::now() + PATIENCE;
    while !reader.activities().iter().all(gone) && Instant::now() < until {
        reader.sample(&mut Scratch::default()).expect("a sample");
    }
    assert!(reader.activities().iter().all(gone));
}

/// A parallel worker is visible with its leader and counts nothing: rows and blocks count for the leader.
#[test]
fn parallel_workers_are_seen_and_count_nothing() {
    let cluster = Cluster::start("max_parallel_workers_per_gather = 2");
    cluster.psql("CREATE TABLE big AS SELECT generate_series(1, 200000) AS a; ANALYZE big;");
    let mut reader = cluster.reader();
    let before = totals(&mut reader);
    let mut session = cluster.session();
    let parallel = "SET parallel_setup_cost = 0;\nSET parallel_tuple_cost = 0;\nSET min_parallel_table_scan_size = 0;";
    // Rows that take time lie everywhere: with one such row a worker that does not get its block ends at once.
    let statement = "SELECT count(*) FROM big WHERE CASE WHEN a % 1000 = 0 THEN pg_sleep(0.02) IS NOT NULL ELSE false END";
    session.send(&format!("{parallel}\n{statement};"));
    let is_worker = |slot: &Activity| {
        slot.identity
            .as_ref()
            .is_some_and(|identity| identity.leader.is_some())
    };
    let worker = seen(&mut reader, "a worker", |slot| {
        is_worker(slot) && slot.state == State::Active
    });
    let leader = seen(&mut reader, "its leader", |slot| {
        !is_worker(slot) && slot.state == State::Active
    });
    let of = worker
        .identity
        .as_ref()
        .and_then(|identity| identity.leader);
    assert_eq!(of, leader.owner.map(|owner| owner.pid));
    // A worker does not know its part of the message.
    assert_eq!(text(&worker), format!("{statement};").as_bytes());
    assert_eq!(text(&leader), statement.as_bytes());
    assert_eq!(labels(&worker), labels(&leader));
    seen(&mut reader, "the end", |slot| slot.state == State::Idle);
    let counted = grown(
        &before,
        &totals(&mut reader),
        &["commands", "rows", "nested_commands", "shared_blocks"],
    );
    let blocks: u64 = ["hit", "read"]
        .iter()
        .filter_map(|action| counted.get(&format!("shared_blocks{{{action}}}")))
        .sum();
    assert!(blocks >= 885, "all blocks of the table: {counted:?}");
    assert_eq!(counted.get("commands{select}"), Some(&1), "{counted:?}");
    assert_eq!(counted.get("rows{select}"), Some(&1), "{counted:?}");
    assert_eq!(counted.get("nested_commands"), None, "{counted:?}");
}

/// PostgreSQL's own example of background workers: each executes an UPDATE every second by SPI.
#[test]
fn background_workers_that_run_sql_are_seen_and_counted() {
    let source = source_package("postgresql-15").join("src/test/modules/worker_spi/worker_spi.c");
    let place = Place::new();
    let example = Path::new(&place.folder()).join("worker_spi.so");
    compile_library(&source, &example);
    let load = format!(
        "shared_preload_libraries = '{}, worker_spi'\ndynamic_library_path = '$libdir:{}'\nworker_spi.total_workers = 2\nworker_spi.naptime = 1",
        library("postgres", &[]).display(),
        place.folder()
    );
    let cluster = Cluster::serve(place, &load, &[]);
    let mut reader = cluster.reader();
    let is_worker =
        |slot: &Activity| text(slot).starts_with(b"WITH deleted AS (DELETE FROM schema");
    let worker = seen(&mut reader, "a worker between two commands", |slot| {
        is_worker(slot) && slot.state == State::Idle
    });
    // Same as in pg_stat_activity: a worker has no application name.
    assert_eq!(labels(&worker), ["", "postgres", "postgres"]);
    for schema in ["schema1", "schema2"] {
        cluster.psql(&format!(
            "INSERT INTO {schema}.counted VALUES ('total', 0), ('delta', 7);"
        ));
    }
    let until = Instant::now() + PATIENCE;
    let summed = "SELECT sum(value) FROM schema1.counted, LATERAL (SELECT 1) AS one
        WHERE type = 'total' UNION ALL SELECT sum(value) FROM schema2.counted WHERE type = 'total';";
    while cluster.psql(summed) != "7\n7\n" {
        assert!(Instant::now() < until, "{}", cluster.psql(summed));
        sleep(Duration::from_millis(200));
    }
    // PostgreSQL counts the same changes; a worker reports them when it ends.
    let terminate = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE backend_type LIKE 'worker_spi%';";
    assert_eq!(cluster.psql(terminate), "2\n");
    let changed = "SELECT sum(n_tup_upd) FROM pg_stat_user_tables WHERE relname = 'counted';";
    let changed: u64 = cluster.psql(changed).trim().parse().expect("a number");
    let counted = totals(&mut reader);
    assert_eq!(counted.get("rows{update}"), Some(&changed), "{counted:?}");
    assert!(counted["commands{update}"] >= changed, "{counted:?}");
    assert_eq!(counted.get("nested_commands"), None, "{counted:?}");
}

/// Failed commands of a background worker count as errors, whether the worker logs the error before or after it ends the
/// transaction, or not at all. Only an error of the parser is known by the log alone.
#[test]
fn errors_of_background_workers_are_counted() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/failing_worker.c");
    for (log, errors) in [("warning", 13), ("fatal", 12)] {
        let place = Place::new();
        compile_library(
            &source,
            &Path::new(&place.folder()).join("failing_worker.so"),
        );
        let load = format!(
            "shared_preload_libraries = '{}, failing_worker'\ndynamic_library_path = '$libdir:{}'\nlog_min_messages = {log}",
            library("postgres", &[]).display(),
            place.folder()
        );
        let cluster = Cluster::serve(place, &load, &[]);
        let mut reader = cluster.reader();
        seen(&mut reader, "a worker that has done all", |slot| {
            text(slot) == b"SELECT 'it has done all'" && slot.state == State::Idle
        });
        let counted = grown(&Totals::new(), &totals(&mut reader), COUNTED);
        let expected = format!(
            "commands{{select}} 13, commands{{utility}} 1, rows{{select}} 2, nested_commands 3, errors {errors}, \
             transactions{{commit}} 4, transactions{{rollback}} 13"
        );
        assert_eq!(counted, parsed(&expected), "log_min_messages = {log}");
    }
}

/// A command that ends with its session counts as failed; a session that ends between commands adds no error.
#[test]
fn a_command_that_is_terminated_is_an_error() {
    let cluster = Cluster::start("");
    let mut reader = cluster.reader();
    for (lines, begun, errors) in [
        ("SELECT 1;", "SELECT 1", 0),
        ("BEGIN;\nSELECT 2;", "SELECT 2", 0),
        ("SELECT pg_sleep(600);", "SELECT pg_sleep(600)", 1),
        (
            "SET log_min_messages = panic;\nSELECT pg_sleep(601);",
            "SELECT pg_sleep(601)",
            2,
        ),
    ] {
        let mut session = cluster.session();
        session.send(lines);
        let slot = seen(&mut reader, begun, |slot| text(slot) == begun.as_bytes());
        let pid = slot.owner.expect("an owner").pid;
        seen(&mut reader, "at rest or at work", |slot| {
            let rests = slot.state == State::Idle || slot.state == State::IdleInTransaction;
            slot.owner.is_some_and(|owner| owner.pid == pid) && (rests || begun.contains("sleep"))
        });
        cluster.psql(&format!("SELECT pg_terminate_backend({pid}, 60000);"));
        let counted = totals(&mut reader);
        assert_eq!(
            counted.get("errors").copied().unwrap_or(0),
            errors,
            "{lines}"
        );
    }
}

/// Kills a backend that inserts, at some moment; returns its pid.
fn kill_one(reader: &mut Reader) -> u32 {
    let inserts = |slot: &Activity| text(slot).starts_with(b"INSERT") && slot.owner.is_some();
    let victim = seen(reader, "a backend that inserts", inserts);
    let pid = victim.owner.map_or(0, |owner| owner.pid);
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()), "{pid}");
    pid
}

/// Backends are killed, and the server restarts with the same file: confirmed commands are counted, and no total decreases.
#[test]
fn counts_survive_the_crash_of_a_backend() {
    let cluster = Cluster::start("max_connections = 20");
    cluster.psql("CREATE TABLE counted (a int);");
    let mut reader = cluster.reader();
    let published = cluster.published();
    let (clients, mut confirmed) = (4, 0);
    let mut last = totals(&mut reader);
    let insert = "commands{insert}";
    for round in 1..=3 {
        let load = cluster.pgbench(
            "simple",
            "INSERT INTO counted VALUES (1);\n",
            clients,
            10_000_000,
        );
        let enough = last.get(insert).unwrap_or(&0) + 500;
        while totals(&mut reader).get(insert) < Some(&enough) {
            sleep(Duration::from_millis(5));
        }
        let pid = kill_one(&mut reader);
        let output = load.wait_with_output().expect("pgbench");
        assert!(!output.status.success(), "clients of a server that crashed");
        cluster.wait();
        confirmed += cluster.logged();
        let now = totals(&mut reader);
        for (name, value) in &last {
            assert!(
                now.get(name) >= Some(value),
                "{name} is set back from {value}: {now:?}"
            );
        }
        let counted = now[insert];
        assert!(confirmed >= 500 * round, "{confirmed}");
        let in_flight = u64::try_from(clients).unwrap_or(0) * round;
        assert!(
            (confirmed..=confirmed + in_flight).contains(&counted),
            "{counted} of {confirmed}"
        );
        assert_eq!(
            cluster.published(),
            published,
            "it goes on with the same file"
        );
        reader.sample(&mut Scratch::default()).expect("a sample");
        let owners = reader.activities().iter().filter_map(|slot| slot.owner);
        assert!(owners.map(|owner| owner.pid).all(|owner| owner != pid));
        last = now;
    }
    cluster.psql("INSERT INTO counted VALUES (2);");
    assert_eq!(totals(&mut reader)[insert], last[insert] + 1);
}

/// Runs PostgreSQL's own regression tests by `pg_regress`; returns their output by test. Tests of another minor version than the
/// server's may differ from the expected output.
fn regression(source: &Path, settings: &str) -> BTreeMap<OsString, Vec<u8>> {
    let place = Place::new();
    let folder = PathBuf::from(place.folder());
    let tests = folder.join("regress");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(source)
        .arg(&tests)
        .status();
    assert!(copied.is_ok_and(|status| status.success()), "cp");
    compile(&tests);
    fs::write(folder.join("lines"), format!("fsync = off\n{settings}\n")).expect("a file");
    place.give(&tests);
    let pg_regress = "lib/pgxs/src/test/regress/pg_regress";
    let of = |option: &str, path: &Path| format!("--{option}={}", path.display());
    let bin = programs();
    let server = bin.parent().expect("the server's folder");
    let mut command = place.command(&server.join(pg_regress));
    command.args([
        of("temp-instance", &tests.join("instance")),
        of("temp-config", &folder.join("lines")),
        of("bindir", &bin),
        of("dlpath", &tests),
        of("inputdir", &tests),
        of("outputdir", &tests),
        of("schedule", &tests.join("parallel_schedule")),
        format!("--port={}", kymo_tests::free_port()),
    ]);
    let output = command.args(["--no-locale", "--encoding=UTF8"]).output();
    let said = String::from_utf8_lossy(&output.expect("pg_regress").stdout).into_owned();
    let results = fs::read_dir(tests.join("results"));
    let results = results.unwrap_or_else(|why| panic!("cannot read results: {why}: {said}"));
    let text = |name: &OsString| fs::read(tests.join("results").join(name)).expect("a result");
    let names = results.flatten().map(|entry| entry.file_name());
    names.map(|name| (name.clone(), text(&name))).collect()
}

/// Builds the library of the regression tests, and copies the two that Debian has beside it.
fn compile(tests: &Path) {
    compile_library(&tests.join("regress.c"), &tests.join("regress.so"));
    let libraries = PathBuf::from(pg_config("--pkglibdir"));
    for name in ["autoinc.so", "refint.so"] {
        fs::copy(libraries.join(name), tests.join(name)).expect("a library");
    }
}

/// Builds a library of PostgreSQL's own tests.
fn compile_library(source: &Path, library: &Path) {
    let mut compiler = Command::new("cc");
    compiler.args(["-w", "-fPIC", "-shared", "-fno-strict-aliasing"]);
    compiler.args(["-fwrapv", "-D_GNU_SOURCE", "-I"]);
    compiler.arg(pg_config("--includedir-server"));
    let built = compiler.arg("-o").arg(library).arg(source).status();
    assert!(built.is_ok_and(|status| status.success()), "{source:?}");
}

#[test]
fn its_own_regression_tests_say_the_same_with_the_library() {
    let source = source_package("postgresql-15").join("src/test/regress");
    let expected = |name: &OsString| fs::read(source.join("expected").join(name)).ok();
    let load = format!(
        "shared_preload_libraries = '{}'\nkymo.timing = all",
        library("postgres", &[]).display()
    );
    let (without, with) = std::thread::scope(|scope| {
        let without = scope.spawn(|| regression(&source, ""));
        let with = regression(&source, &load);
        (without.join().expect("it ends"), with)
    });
    assert!(without.len() > 200, "{}", without.len());
    assert!(without.keys().eq(with.keys()), "the same tests");
    for (name, printed) in &with {
        let as_ever = printed == &without[name] || Some(printed) == expected(name).as_ref();
        assert!(as_ever, "{} differs with the library", name.display());
    }
}

/// A server that cannot publish logs it once, and serves.
#[test]
fn without_a_place_to_publish_the_server_runs_as_ever() {
    let library = library("postgres", &[]);
    let load = format!("shared_preload_libraries = '{}'", library.display());
    for (folder, why) in [
        (
            "/missing",
            "cannot open folder /missing: No such file or directory",
        ),
        (
            "/proc",
            "cannot publish in /proc: it is not in memory (tmpfs)",
        ),
    ] {
        let cluster = Cluster::serve(Place::new(), &load, &[("KYMO_DIR", folder)]);
        assert_eq!(
            cluster.psql("SELECT 1;\nSELECT pg_sleep(0);\nCREATE TABLE t (a int);\nTABLE t;"),
            "1\n\n"
        );
        assert_eq!(
            cluster.psql("SELCT;\nBEGIN;\nSELECT 1 / 0;\nROLLBACK;\nSELECT 2;"),
            "2\n"
        );
        let log = cluster.log();
        let said: Vec<&str> = log.lines().filter(|line| line.contains("kymo:")).collect();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].ends_with(why), "{said:?}");
    }
}
