//! Random messages of both protocols; kymo's counts are compared with the tags and errors that the client received, and with
//! pg_stat_statements. `SEED` seeds the messages.

use std::collections::BTreeMap;

use kymo_shm::Reader;
use kymo_sys::effort::{effort, first_seed};
use kymo_tests::postgres::Cluster;
use kymo_tests::postgres_client::{Answer, Client, End};
use kymo_tests::rrd_stream::Random;

use crate::postgres::{Totals, grown, totals};

const MESSAGES: u64 = 5000;
/// Messages between two comparisons.
const BATCH: u64 = 25;

const SCHEMA: &str = "
CREATE EXTENSION pg_stat_statements;
CREATE TABLE t (a int PRIMARY KEY, b text);
INSERT INTO t SELECT generate_series(1, 100);
CREATE TABLE copied (a int);
CREATE TABLE referenced (a int PRIMARY KEY);
INSERT INTO referenced VALUES (1);
CREATE TABLE referring (a int REFERENCES referenced);
CREATE TABLE deferred (a int REFERENCES referenced DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE watched (a int);
CREATE TABLE ruled (a int);
CREATE TABLE traced (a int);
CREATE TABLE big AS SELECT generate_series(1, 20000) AS a;
ANALYZE big;
CREATE FUNCTION in_sql(n int) RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM t WHERE a > n; SELECT n::bigint $$;
CREATE FUNCTION rows_in_sql(n int) RETURNS SETOF int LANGUAGE sql AS $$ UPDATE t SET b = 'r' WHERE a = n; SELECT a FROM t WHERE a <= n $$;
CREATE FUNCTION looped(n int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE r record; s int := 0; BEGIN
  FOR i IN 1..n LOOP FOR r IN SELECT a FROM t WHERE a < 15 LOOP s := s + 1; END LOOP; END LOOP; RETURN s; END $$;
CREATE FUNCTION folded(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM a FROM t WHERE a = n; RETURN n; END $$;
CREATE FUNCTION caught(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
  BEGIN INSERT INTO t VALUES (n); EXCEPTION WHEN unique_violation THEN RETURN n; END; RETURN 0; END $$;
CREATE FUNCTION folds_and_catches(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
  BEGIN PERFORM 1 / (a - a) FROM t WHERE a = n; EXCEPTION WHEN division_by_zero THEN RETURN n; END; RETURN 0; END $$;
CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM 1; RAISE 'it fails'; END $$;
CREATE FUNCTION trace() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM a FROM t WHERE a = NEW.a; RETURN NEW; END $$;
CREATE TRIGGER b BEFORE INSERT ON watched FOR EACH ROW EXECUTE FUNCTION trace();
CREATE TRIGGER w AFTER INSERT ON watched FOR EACH ROW EXECUTE FUNCTION trace();
CREATE RULE also AS ON INSERT TO ruled DO ALSO INSERT INTO traced VALUES (NEW.a), (NEW.a);
CREATE PROCEDURE cycle(n int) LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..n LOOP
  UPDATE t SET b = 'c' WHERE a = i; IF i % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF; END LOOP; END $$;
";

/// When a command fails: never, before it begins to run, or while it runs.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fails {
    Never,
    Before,
    Running,
}
use Fails::{Before, Never, Running};

/// A command, in which `#` is a number of 1 to 9; its kind; when it fails; and the number of its commands, with nested ones, that
/// pg_stat_statements does not see (negative: it sees more).
type Command = (&'static str, &'static str, Fails, i64);

/// Separator of two commands that belong together.
const TOGETHER: &str = "; DROP";

/// pg_stat_statements 1.10 does not count commands that fail, PREPARE, DEALLOCATE, and the queries of CREATE TABLE AS and of
/// DECLARE. It counts queries that EXPLAIN does not run.
const COMMANDS: &[Command] = &[
    ("SELECT #", "select", Never, 0),
    ("SELECT a FROM t WHERE a <= #", "select", Never, 0),
    ("TABLE t", "select", Never, 0),
    ("VALUES (1), (#)", "select", Never, 0),
    ("SELECT count(*) FROM big", "select", Never, 0),
    ("SELECT 1 WHERE false", "select", Never, 0),
    (
        "WITH u AS (UPDATE t SET b = 'w' WHERE a < # RETURNING a) SELECT * FROM u",
        "select",
        Never,
        0,
    ),
    (
        "UPDATE t SET b = '#' WHERE a BETWEEN # AND 12",
        "update",
        Never,
        0,
    ),
    (
        "UPDATE t SET b = 'x' WHERE a = # RETURNING *",
        "update",
        Never,
        0,
    ),
    (
        "INSERT INTO traced SELECT generate_series(1, #)",
        "insert",
        Never,
        0,
    ),
    (
        "INSERT INTO t VALUES (#) ON CONFLICT DO NOTHING",
        "insert",
        Never,
        0,
    ),
    (
        "INSERT INTO traced VALUES (#) RETURNING a",
        "insert",
        Never,
        0,
    ),
    ("DELETE FROM traced WHERE a < #", "delete", Never, 0),
    (
        "MERGE INTO t USING (VALUES (#), (200)) AS s (a) ON t.a = s.a WHEN MATCHED THEN UPDATE SET b = 'm'",
        "other",
        Never,
        0,
    ),
    ("SET work_mem = '#MB'", "utility", Never, 0),
    (
        "CREATE TEMP TABLE made (a int); DROP TABLE made",
        "utility",
        Never,
        0,
    ),
    ("COPY t TO STDOUT", "utility", Never, 0),
    (
        "COPY (SELECT a FROM t WHERE a < #) TO STDOUT",
        "utility",
        Never,
        0,
    ),
    ("COPY copied FROM STDIN", "utility", Never, 0),
    ("TRUNCATE copied", "utility", Never, 0),
    ("SHOW work_mem", "utility", Never, 0),
    ("LISTEN c", "utility", Never, 0),
    ("EXPLAIN SELECT #", "utility", Never, -1),
    (
        "EXPLAIN (ANALYZE, TIMING off) SELECT a FROM t",
        "utility",
        Never,
        0,
    ),
    (
        "EXPLAIN ANALYZE UPDATE t SET b = 'e' WHERE a < #",
        "utility",
        Never,
        0,
    ),
    (
        "DO 'BEGIN PERFORM a FROM t; UPDATE t SET b = NULL WHERE a = #; END'",
        "utility",
        Never,
        0,
    ),
    ("SELECT in_sql(#)", "select", Never, 0),
    ("SELECT in_sql(a) FROM t WHERE a <= #", "select", Never, 0),
    ("SELECT * FROM rows_in_sql(#)", "select", Never, 0),
    ("SELECT rows_in_sql(#) LIMIT 2", "select", Never, 0),
    ("SELECT looped(#)", "select", Never, 0),
    ("SELECT caught(#)", "select", Never, 1),
    ("INSERT INTO watched VALUES (#), (2)", "insert", Never, 0),
    ("INSERT INTO referring VALUES (1)", "insert", Never, 0),
    ("DELETE FROM referring", "delete", Never, 0),
    // Errors: before the command, and within it.
    ("SELCT #", "", Before, 0),
    ("SELECT * FROM missing", "", Before, 0),
    ("SELECT # / 0", "", Before, 0),
    ("SELECT # / (a - a) FROM t", "select", Running, 1),
    ("INSERT INTO t VALUES (#)", "insert", Running, 1),
    ("DROP TABLE missing", "utility", Running, 1),
    ("SELECT fails()", "select", Running, 1),
    (
        "SELECT in_sql(a) / (a - a) FROM t WHERE a = #",
        "select",
        Running,
        1,
    ),
    (
        "DO 'BEGIN PERFORM 1; RAISE ''it fails''; END'",
        "utility",
        Running,
        1,
    ),
];

/// Sequences of messages with one command each; kinds are those of [`Command`].
const SEQUENCES: &[&[Command]] = &[
    &[
        ("BEGIN", "utility", Never, 0),
        ("DECLARE c CURSOR FOR SELECT a FROM t", "utility", Never, 1),
        ("FETCH # FROM c", "utility", Never, 0),
        ("FETCH 2 FROM c", "utility", Never, 0),
        ("CLOSE c", "utility", Never, 0),
        ("COMMIT", "utility", Never, 0),
    ],
    &[
        (
            "PREPARE p AS SELECT a FROM t WHERE a <= #",
            "utility",
            Never,
            1,
        ),
        ("EXECUTE p", "select", Never, 0),
        ("EXECUTE p", "select", Never, 0),
        ("CREATE TEMP TABLE made AS EXECUTE p", "utility", Never, 0),
        ("DROP TABLE made", "utility", Never, 0),
        ("EXPLAIN (ANALYZE) EXECUTE p", "utility", Never, 0),
        ("DEALLOCATE p", "utility", Never, 1),
    ],
    &[
        (
            "PREPARE p(int) AS UPDATE t SET b = 'p' WHERE a < $1",
            "utility",
            Never,
            1,
        ),
        ("EXECUTE p(#)", "update", Never, 0),
        ("DEALLOCATE p", "utility", Never, 1),
    ],
    &[
        ("BEGIN", "utility", Never, 0),
        ("UPDATE t SET b = 's' WHERE a < #", "update", Never, 0),
        ("SAVEPOINT s", "utility", Never, 0),
        ("SELECT 1 / (a - a) FROM t", "select", Running, 1),
        ("SELECT #", "", Before, 0),
        ("SELCT", "", Before, 0),
        ("ROLLBACK TO s", "utility", Never, 0),
        ("SELECT caught(#)", "select", Never, 1),
        ("RELEASE s", "utility", Never, 0),
        ("COMMIT", "utility", Never, 0),
    ],
    &[
        (
            "CREATE TEMP TABLE made AS SELECT a FROM t WHERE a <= #",
            "utility",
            Never,
            1,
        ),
        ("DROP TABLE made", "utility", Never, 0),
    ],
    &[
        ("CALL cycle(#)", "utility", Never, 0),
        ("SELECT #", "select", Never, 0),
    ],
];

/// Commands whose nested ones pg_stat_statements 1.10 takes for a client's: compared with `track = all` only.
const UNSTACKED: &[&[Command]] = &[
    &[("SELECT folded(#)", "select", Never, 0)],
    &[
        ("SELECT folds_and_catches(#)", "select", Never, 1),
        ("SELECT 1", "select", Never, 0),
    ],
    &[
        ("PREPARE p(int) AS SELECT $1", "utility", Never, 1),
        ("EXECUTE p(looped(#))", "select", Never, 0),
        ("EXECUTE p(caught(#))", "select", Never, 1),
        ("EXECUTE p(folds_and_catches(#))", "select", Never, 1),
        ("DEALLOCATE p", "utility", Never, 1),
    ],
    &[("INSERT INTO deferred VALUES (1)", "insert", Never, 0)],
    &[("INSERT INTO ruled VALUES (#), (2)", "insert", Never, 0)],
    &[
        ("BEGIN", "utility", Never, 0),
        ("INSERT INTO deferred VALUES (1)", "insert", Never, 0),
        (
            "DECLARE c CURSOR WITH HOLD FOR SELECT a FROM t WHERE a <= #",
            "utility",
            Never,
            1,
        ),
        ("COMMIT", "utility", Never, 0),
        ("FETCH ALL FROM c", "utility", Never, 0),
        ("CLOSE c", "utility", Never, 0),
    ],
];

/// Counts by the client's answers, and the known differences of pg_stat_statements.
#[derive(Default)]
struct Told {
    totals: Totals,
    /// Commands that pg_stat_statements does not see, with nested ones.
    unseen: i64,
    /// Commands of clients that pg_stat_statements does not see, by kind.
    unseen_by_kind: BTreeMap<&'static str, u64>,
    /// Sent messages, for a failure's text.
    sent: Vec<String>,
}

impl Told {
    fn add(&mut self, name: &str, kind: &str, number: u64) {
        if number != 0 {
            *self.totals.entry(format!("{name}{{{kind}}}")).or_default() += number;
        }
    }

    /// Counts a command that began to run.
    fn ran(&mut self, &(text, kind, fails, unseen): &Command) {
        self.add("commands", kind, 1);
        self.unseen += unseen;
        if fails == Running || text.starts_with("PREPARE") || text.starts_with("DEALLOCATE") {
            *self.unseen_by_kind.entry(kind).or_default() += 1;
        }
    }

    /// Counts the end of a command, or of a part of it. True if the next command is executed.
    fn ended(&mut self, command: &Command, is_first_part: bool, answer: &Answer) -> bool {
        let &(_, kind, fails, _) = command;
        if is_first_part && !(fails == Before && matches!(answer.end, End::Error(..))) {
            self.ran(command);
        }
        match &answer.end {
            End::Complete(tag) => {
                assert!(fails == Never, "{command:?} does not fail");
                let rows = tag.rsplit(' ').next().and_then(|last| last.parse().ok());
                self.add("rows", kind, rows.unwrap_or(0));
                true
            }
            End::Suspended => {
                self.add("rows", kind, answer.rows);
                true
            }
            End::Error(state, text) => {
                assert!(fails != Never, "{command:?}: {state} {text}");
                *self.totals.entry("errors".into()).or_default() += 1;
                false
            }
        }
    }

    /// Counts the commands of a message, which were executed in this order until one failed.
    fn message(&mut self, parts: &[(Command, bool)], answers: &[Answer]) {
        let mut answers = answers.iter();
        for (command, is_first_part) in parts {
            let answer = answers.next();
            let answer = answer.unwrap_or_else(|| panic!("no answer to {command:?}"));
            if !self.ended(command, *is_first_part, answer) {
                break;
            }
        }
        assert_eq!(answers.next(), None, "{:?}", self.sent.last());
    }
}

/// The text with random numbers in the place of `#`.
fn numbered(text: &str, random: &mut Random) -> String {
    let mut parts = text.split('#');
    let mut made = parts.next().unwrap_or_default().to_string();
    for part in parts {
        made += &format!("{}{part}", 1 + random.below(9));
    }
    made
}

fn chosen<'a, T>(of: &'a [T], random: &mut Random) -> &'a T {
    let n = usize::try_from(random.below(of.len() as u64)).expect("a place");
    &of[n]
}

/// A random message of the simple protocol, with up to three commands.
fn simple(client: &mut Client, random: &mut Random, told: &mut Told) {
    let mut texts = Vec::new();
    let mut parts = Vec::new();
    for _ in 0..=random.below(3) {
        let &command = chosen(COMMANDS, random);
        texts.push(numbered(command.0, random));
        for _ in command.0.split(TOGETHER) {
            parts.push((command, true));
        }
        // A text that cannot be parsed fails together with its whole message.
        if command.2 != Never {
            break;
        }
    }
    if texts.iter().any(|text| text.starts_with("SELCT")) {
        let only = texts.len() - 1;
        texts.drain(..only);
        let only = parts.len() - 1;
        parts.drain(..only);
    }
    let text = texts.join("; ");
    told.sent.push(text.clone());
    told.message(&parts, &client.query(&text));
}

/// Random messages of the extended protocol up to a Sync: statements are executed once or twice, by named and unnamed portals,
/// and read in parts.
fn extended(client: &mut Client, random: &mut Random, in_parts: bool, told: &mut Told) {
    let mut parts = Vec::new();
    let mut sent = Vec::new();
    for n in 0..=random.below(3) {
        let &command = chosen(COMMANDS, random);
        // pg_stat_statements forgets portals that are open at an error, so an error may only come first.
        let comes_late = command.2 != Never && n > 0;
        if command.0.contains(TOGETHER) || command.0.contains("STDIN") || comes_late {
            continue;
        }
        let text = numbered(command.0, random);
        // A named statement survives an error, so each name is used once.
        let statement = match random.below(2) {
            0 => String::new(),
            _ => format!("s{}", random.next_u64()),
        };
        let portal = chosen(&["", "c"], random);
        let portal = if portal.is_empty() {
            String::new()
        } else {
            format!("c{n}")
        };
        client.parse(&statement, &text);
        // pg_stat_statements 1.10 forgets a utility command that was parsed once and is executed again.
        let times = if command.1 == "utility" {
            1
        } else {
            1 + random.below(2)
        };
        for time in 0..times {
            let portal = if portal.is_empty() {
                portal.clone()
            } else {
                format!("{portal}_{time}")
            };
            client.bind(&portal, &statement);
            let reads_table = command.0 == "TABLE t" && in_parts;
            let limits: &[u32] = if reads_table { &[10, 20, 0] } else { &[0] };
            for (nth, &limit) in limits.iter().enumerate() {
                client.execute(&portal, limit);
                parts.push((command, nth == 0));
            }
        }
        if !statement.is_empty() {
            client.close(&statement);
        }
        sent.push(text);
        if command.2 != Never {
            break;
        }
    }
    told.sent.push(format!("{sent:?}"));
    told.message(&parts, &client.sync());
}

fn sequence(client: &mut Client, commands: &[Command], random: &mut Random, told: &mut Told) {
    for command in commands {
        let text = numbered(command.0, random);
        told.sent.push(text.clone());
        told.message(&[(*command, true)], &client.query(&text));
    }
}

/// Calls and rows of pg_stat_statements by kind, and the sum of calls. Resets pg_stat_statements.
fn beside(cluster: &Cluster, only_top: bool) -> (Totals, i64) {
    let script = format!(
        "SET kymo.enabled = off; SET pg_stat_statements.track = none;
        SELECT kind, sum(calls), sum(rows) FROM (SELECT calls, rows, toplevel, text AS query, CASE WHEN text ~* '^\\s*(select|table|values|with)' THEN 'select'
        WHEN text ~* '^\\s*insert' THEN 'insert' WHEN text ~* '^\\s*update' THEN 'update' WHEN text ~* '^\\s*delete' THEN 'delete'
        WHEN text ~* '^\\s*merge' THEN 'other' ELSE 'utility' END AS kind FROM pg_stat_statements, regexp_replace(query, '^PREPARE .*? AS ', '') AS text) AS kinds
        WHERE query !~ 'kymo.enabled|pg_stat' AND (toplevel OR NOT {only_top}) GROUP BY kind;
        SELECT pg_stat_statements_reset();"
    );
    let mut found = Totals::new();
    let mut calls = 0;
    for line in cluster.psql(&script).lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let [kind, called, rows] = fields[..] else {
            continue;
        };
        let number = |text: &str| text.parse::<u64>().expect("a number");
        calls += i64::try_from(number(called)).expect("few calls");
        for (name, value) in [("commands", number(called)), ("rows", number(rows))] {
            if value != 0 {
                found.insert(format!("{name}{{{kind}}}"), value);
            }
        }
    }
    (found, calls)
}

/// Compares kymo's counts since `before` with the client's answers and with pg_stat_statements.
fn compare(
    cluster: &Cluster,
    reader: &mut Reader,
    before: &mut Totals,
    told: &Told,
    only_top: bool,
) {
    let after = totals(reader);
    let counted = grown(before, &after, &["commands", "rows", "errors"]);
    assert_eq!(counted, told.totals, "beside the client: {:#?}", told.sent);
    let (theirs, calls) = beside(cluster, only_top);
    if only_top {
        let mut seen = counted.clone();
        seen.remove("errors");
        for (kind, &number) in &told.unseen_by_kind {
            let commands = seen.get_mut(&format!("commands{{{kind}}}"));
            *commands.expect("they were counted") -= number;
        }
        seen.retain(|_, &mut value| value != 0);
        assert_eq!(seen, theirs, "by kind: {:#?}", told.sent);
    } else {
        let all = grown(before, &after, &["commands", "nested_commands"]);
        let all: u64 = all.values().sum();
        let all = i64::try_from(all).expect("few commands");
        assert_eq!(
            all - told.unseen,
            calls,
            "nested ones, too: {:#?}",
            told.sent
        );
    }
    *before = totals(reader);
}

fn differs_nowhere(only_top: bool) {
    let seed = first_seed(u64::from(std::process::id()) << 20);
    eprintln!("SEED={seed}");
    let mut random = Random(seed);
    let track = if only_top { "top" } else { "all" };
    let cluster = Cluster::start_beside(
        "pg_stat_statements",
        &format!("pg_stat_statements.track = {track}\npg_stat_statements.save = off"),
    );
    cluster.psql(SCHEMA);
    let parallel =
        "-c parallel_setup_cost=0 -c parallel_tuple_cost=0 -c min_parallel_table_scan_size=256kB";
    let mut client = Client::connect(&cluster.sockets(), parallel);
    let mut reader = cluster.reader();
    beside(&cluster, only_top);
    let mut before = totals(&mut reader);
    for _ in 0..effort(MESSAGES / BATCH) {
        let mut told = Told::default();
        while (told.sent.len() as u64) < BATCH {
            match random.below(if only_top { 7 } else { 8 }) {
                0..3 => simple(&mut client, &mut random, &mut told),
                3..6 => extended(&mut client, &mut random, !only_top, &mut told),
                6 => {
                    let commands = chosen(SEQUENCES, &mut random);
                    sequence(&mut client, commands, &mut random, &mut told);
                }
                _ => {
                    let commands = chosen(UNSTACKED, &mut random);
                    sequence(&mut client, commands, &mut random, &mut told);
                }
            }
        }
        compare(&cluster, &mut reader, &mut before, &told, only_top);
    }
}

#[test]
fn clients_commands_are_those_of_pg_stat_statements() {
    differs_nowhere(true);
}

#[test]
fn clients_and_nested_commands_are_those_of_pg_stat_statements() {
    differs_nowhere(false);
}
