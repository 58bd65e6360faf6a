//! PostgreSQL beside a running `kymo serve`: no count is lost or invented, whichever process is killed or stopped.

use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kymo_tests::postgres::{Cluster, Place, library};
use kymo_tests::served::{Served, eventually, is_killed, kill};
use kymo_tests::{Scratch, kymo};
use serde_json::Value;

const CLIENTS: usize = 10;
const STATEMENTS: usize = 100_000;
const STOPPED: Duration = Duration::from_secs(60);
/// While a client asks, the collector reads twice within this time.
const SETTLES: Duration = Duration::from_millis(1200);

/// A server that publishes to a `kymo serve`.
struct Beside {
    cluster: Cluster,
    served: Served,
    data: String,
    _scratch: Scratch,
}

/// Random numbers for moments and victims. Timing varies, so that no two runs are alike even with one seed.
struct Chance(u64);

impl Chance {
    fn new() -> Chance {
        Chance(u64::from(std::process::id()) << 1 | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).map_or(0, |number| number % limit)
    }

    fn nap(&mut self, least_ms: u64, most_ms: usize) {
        let more = u64::try_from(self.below(most_ms)).unwrap_or(0);
        sleep(Duration::from_millis(least_ms + more));
    }
}

impl Beside {
    fn start(name: &str) -> Beside {
        let scratch = Scratch::new(name);
        let data = scratch.text("data");
        let mut served = Served::start(&["--data", &data, "--listen", "127.0.0.1:0"]);
        served.address();
        served.has_said("keeper: user");
        let published = served.published.display().to_string();
        let load = format!(
            "shared_preload_libraries = '{}'\nmax_connections = 40",
            library("postgres", &[]).display()
        );
        let cluster = Cluster::serve(Place::new(), &load, &[("KYMO_DIR", &published)]);
        Beside {
            cluster,
            served,
            data,
            _scratch: scratch,
        }
    }

    /// The keeper's count of commands of a kind, for servers of that life; `None`: no answer, or no such server.
    fn counted(&self, life: &str, kind: &str) -> Option<u64> {
        let output = Command::new(kymo())
            .args(["programs", "--json", "--data", &self.data])
            .output();
        let answer: Value = serde_json::from_slice(&output.expect("kymo runs").stdout).ok()?;
        let servers = answer["publishers"].as_array()?.iter();
        let mut servers =
            servers.filter(|each| each["name"] == "postgresql" && each["life"] == life);
        let mut metrics = servers.next()?["metrics"].as_array()?.iter();
        let is_wanted = |metric: &&Value| {
            metric["name"] == "commands_total" && metric["labels"]["kind"] == kind
        };
        metrics.find(is_wanted)?["value"].as_f64().map(|value| {
            assert_eq!(value.fract(), 0.0, "a whole number");
            value as u64
        })
    }

    /// The count, once it no longer grows.
    fn settled(&self, life: &str, kind: &str) -> u64 {
        let mut last = None;
        let found = eventually(|| {
            let now = self.counted(life, kind);
            let same = now.filter(|_| now == last);
            last = now;
            sleep(SETTLES);
            same
        });
        found.expect("a count")
    }

    fn kill_keeper(&self) {
        let Some(keeper) = self.served.child("keeper") else {
            return;
        };
        kill("-KILL", keeper);
        self.served.next_child("keeper", keeper);
    }

    /// The pid of a random backend of pgbench, if there is one.
    fn victim(&self, chance: &mut Chance) -> Option<u32> {
        let listed = "SELECT pid FROM pg_stat_activity WHERE application_name = 'pgbench';";
        let listed = self.cluster.psql(listed);
        let backends: Vec<u32> = listed.lines().flat_map(str::parse).collect();
        let picked = chance.below(backends.len().max(1));
        backends.get(picked).copied()
    }
}

fn is_running(load: &mut Child) -> bool {
    matches!(load.try_wait(), Ok(None))
}

/// The keeper is killed repeatedly, and idle backends are terminated.
#[test]
fn a_million_statements_are_counted_exactly() {
    let mut beside = Beside::start("postgres-exact");
    let mut chance = Chance::new();
    let cluster = &beside.cluster;
    let mut load = cluster.pgbench("simple", "SELECT 1;\n", CLIENTS, STATEMENTS);
    let (mut expected, mut kills) = ((CLIENTS * STATEMENTS) as u64, 0);
    while is_running(&mut load) {
        let mut session = cluster.session();
        session.send("SELECT 1; SELECT 2; SET application_name = 'between statements';");
        let terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE application_name = 'between statements' AND state = 'idle';";
        let is_terminated = eventually(|| {
            expected += 1;
            cluster.psql(terminate).contains('t').then_some(())
        });
        assert!(is_terminated.is_some(), "a session comes to its end");
        expected += 2;
        chance.nap(200, 1500);
        beside.kill_keeper();
        kills += 1;
    }
    let output = load.wait_with_output().expect("pgbench");
    assert!(output.status.success(), "{output:?}");
    assert!(kills > 3, "{kills} kills of the keeper");
    assert_eq!(beside.settled("alive", "select"), expected);
    // The counts outlive the server.
    beside.cluster.stop();
    let retired = eventually(|| beside.counted("retired", "select"));
    assert_eq!(retired, Some(expected));
}

/// Backends end in the middle of any work: confirmed statements are counted, and at most those in progress in addition.
#[test]
fn statements_are_counted_when_backends_are_killed_in_the_middle() {
    let beside = Beside::start("postgres-killed");
    let mut chance = Chance::new();
    beside.cluster.psql("CREATE TABLE counted (a int);");
    let (mut confirmed, mut under_way) = (0, 0);
    for round in 0..6 {
        let is_crash = round % 2 == 1;
        let insert = "INSERT INTO counted VALUES (1);\n";
        let mut load = beside.cluster.pgbench("simple", insert, CLIENTS, 3000);
        let mut ended = 0;
        while is_running(&mut load) {
            chance.nap(50, 300);
            let Some(victim) = beside.victim(&mut chance) else {
                continue;
            };
            if is_crash {
                // The process may have ended since it was listed.
                if is_killed("-KILL", victim) {
                    load.wait().expect("pgbench ends with the server");
                    ended = CLIENTS;
                }
            } else if is_killed("-TERM", victim) {
                ended += 1;
                beside.kill_keeper();
            }
        }
        beside.cluster.wait();
        confirmed += beside.cluster.logged();
        under_way += ended as u64;
        let counted = beside.settled("alive", "insert");
        let possible = confirmed..=confirmed + under_way;
        assert!(possible.contains(&counted), "{counted} of {possible:?}");
    }
    assert!(
        confirmed > 1000 && under_way > 30,
        "{confirmed}, {under_way}"
    );
}

/// The keeper is stopped through a minute of statements, and of programs that begin and end.
#[test]
fn a_keeper_that_is_stopped_for_a_minute_has_all_counts_afterwards() {
    let beside = Beside::start("postgres-stopped");
    let cluster = &beside.cluster;
    cluster.psql("SELECT 1;");
    assert_eq!(beside.settled("alive", "select"), 1);
    let keeper = beside.served.child("keeper").expect("a keeper");
    kill("-STOP", keeper);
    let begun = Instant::now();
    let mut rounds = 0;
    while begun.elapsed() < STOPPED {
        let output = cluster.pgbench("prepared", "SELECT 1;\n", CLIENTS, 100);
        assert!(output.wait_with_output().expect("pgbench").status.success());
        rounds += 1;
        sleep(Duration::from_secs(2));
    }
    kill("-CONT", keeper);
    let expected = 1 + rounds * CLIENTS as u64 * 100;
    assert_eq!(beside.settled("alive", "select"), expected);
    assert_eq!(beside.served.child("keeper"), Some(keeper), "the same one");
}
