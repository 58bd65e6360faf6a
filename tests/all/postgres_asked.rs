//! The process of `kymo serve` that queries PostgreSQL: waiting sessions and their blockers, with the library in the server and
//! without; numbers that become series; servers that go, come back, refuse, or do not answer. No literal ever leaves the process.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::sleep;
use std::time::Duration;

use kymo_tests::postgres::{Cluster, Place, library};
use kymo_tests::served::{LONG, Served, eventually, get, kill};
use kymo_tests::{Running, Scratch, kymo};
use kymo_wire::keeper::{Answer, HEAD, KeeperRequest, ServerActivity, ServerSession, Taken};
use serde_json::Value;

pub(crate) const ROLE: &str = "CREATE ROLE kymo LOGIN; GRANT pg_monitor TO kymo;";
/// A relation that sessions read and wait for while it is altered.
const TABLE: &str = "CREATE TABLE t (a int); GRANT SELECT ON t TO PUBLIC;";

/// A `kymo serve` that queries servers.
pub(crate) struct Asked {
    pub(crate) served: Served,
    pub(crate) address: String,
    pub(crate) data: String,
    scratch: Scratch,
}

/// A server in the configuration: its name, the folder of its socket, the role.
type Named<'a> = (&'a str, &'a str, &'a str);

impl Asked {
    pub(crate) fn start(name: &str, servers: &[Named]) -> Asked {
        let scratch = Scratch::new(name);
        let data = scratch.text("data");
        let config = scratch.text("kymo.toml");
        let tables = servers.iter().map(|(name, socket, role)| {
            format!("[postgres.servers.{name}]\nsocket = \"{socket}\"\nrole = \"{role}\"\n")
        });
        let head = "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = []\n".to_string();
        let text: String = std::iter::once(head).chain(tables).collect();
        fs::write(&config, text).expect("a configuration");
        let mut served = Served::start(&["--config", &config, "--data", &data]);
        let address = served.address();
        Asked {
            served,
            address,
            data,
            scratch,
        }
    }

    /// A server that also publishes, queried as `main`. The folder of publishers must exist before the server starts.
    pub(crate) fn with_library(name: &str, settings: &str) -> (Asked, Cluster) {
        let place = Place::new();
        let asked = Asked::start(name, &[("main", &place.folder(), "kymo")]);
        let published = asked.served.published.display().to_string();
        assert!(eventually(|| asked.served.published.exists().then_some(())).is_some());
        let load = format!(
            "shared_preload_libraries = '{}'\n{settings}",
            library("postgres", &[]).display()
        );
        let cluster = Cluster::serve(place, &load, &[("KYMO_DIR", &published)]);
        cluster.psql(&format!("{ROLE}{TABLE}"));
        (asked, cluster)
    }

    /// A server that does not publish, queried as `main`.
    pub(crate) fn without_library(name: &str, settings: &str) -> (Asked, Cluster) {
        let cluster = Cluster::serve(Place::new(), settings, &[]);
        cluster.psql(&format!("{ROLE}{TABLE}"));
        let asked = Asked::start(name, &[("main", &cluster.sockets(), "kymo")]);
        (asked, cluster)
    }

    pub(crate) fn token(&self) -> String {
        let path = Path::new(&self.data).join("token");
        let token = fs::read_to_string(path).expect("a token");
        token.trim().to_string()
    }

    /// Publishers of PostgreSQL, by the API.
    fn publishers(&self, token: &str) -> Vec<Value> {
        let answer = get(&self.address, "/kymo/v1/programs", token);
        let all = answer["publishers"].as_array().expect("a list").iter();
        let picked = all.filter(|each| each["name"] == "postgresql" && each["life"] == "alive");
        picked.cloned().collect()
    }

    /// Waits until a server's slots fit; returns them.
    pub(crate) fn slots(&self, what: &str, fits: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let token = self.token();
        let mut last = Vec::new();
        let found = eventually(|| {
            let publishers = self.publishers(&token);
            last = publishers.iter().flat_map(slots_of).collect();
            (publishers.len() == 1 && fits(&last)).then(|| last.clone())
        });
        found.unwrap_or_else(|| panic!("{what}: {last:#?}; it said {:#?}", self.served.said))
    }

    pub(crate) fn printed(&self) -> String {
        let output = Command::new(kymo())
            .args(["programs", "--once", "--data", &self.data])
            .output()
            .expect("kymo runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Growth of a counter from its first value to its last, summed from the stored rates.
    fn grown(&self, field: &str, database: &str) -> Option<f64> {
        let name = match database {
            "" => format!("{{field=\"{field}\",job=\"postgres\",server=\"main\"}}"),
            name => {
                format!(
                    "{{database=\"{name}\",field=\"{field}\",job=\"postgres\",server=\"main\"}}"
                )
            }
        };
        let output = Command::new(kymo())
            .args(["series", "show", &name, "--data", &self.data])
            .output()
            .expect("kymo runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // A line has a time and, if known, a rate.
        let rate = |line: &str| line.split_whitespace().nth(1)?.parse::<f64>().ok();
        let rates: Vec<f64> = text.lines().filter_map(rate).collect();
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() * 10.0)
    }
}

fn slots_of(publisher: &Value) -> Vec<Value> {
    publisher["slots"].as_array().expect("a list").clone()
}

pub(crate) fn text_of(slot: &Value) -> &str {
    slot["text"].as_str().unwrap_or_default()
}

/// The process id in a slot.
pub(crate) fn pid_of(slot: &Value) -> u64 {
    slot["pid"].as_u64().expect("a number")
}

/// Ten clients that read `t` by this protocol while it is altered: all are shown as waiting, with their blocker.
fn readers_are_seen_waiting(asked: &Asked, cluster: &Cluster, mode: &str) {
    let mut altering = cluster.session();
    altering.send("BEGIN; ALTER TABLE t ADD COLUMN b int;");
    let blocker = asked.slots("a transaction is open", |slots| {
        slots
            .iter()
            .any(|slot| slot["state"] == "idle in transaction")
    });
    let blocker = blocker
        .iter()
        .find(|slot| slot["state"] == "idle in transaction")
        .map(pid_of);
    let readers = cluster.pgbench(mode, "SELECT * FROM t WHERE a = 4711;", 10, 1);
    let is_blocked = |slot: &&Value| {
        slot["state"] == "active"
            && slot["wait"] == "Lock:relation"
            && text_of(slot) == "SELECT * FROM t WHERE a = ?;"
    };
    let blocked = asked.slots("ten wait", |slots| {
        slots.iter().filter(is_blocked).count() == 10
    });
    for slot in blocked.iter().filter(is_blocked) {
        let by = slot["blocked_by"].as_array().expect("a list");
        let by: Vec<Option<u64>> = by.iter().map(Value::as_u64).collect();
        assert!(by.contains(&blocker), "{slot}, not {blocker:?}");
    }
    let printed = asked.printed();
    let words = format!(
        "waits for Lock:relation  blocked by {}",
        blocker.expect("a process")
    );
    let lines = printed.lines().filter(|line| line.contains(&words));
    assert_eq!(lines.count(), 10, "{words}: {printed}");
    altering.send("ROLLBACK;");
    let output = readers.wait_with_output().expect("pgbench");
    assert!(output.status.success(), "{output:?}");
    asked.slots("all have gone on", |slots| {
        !slots.iter().any(|slot| slot["state"] == "active")
    });
}

#[test]
fn who_waits_behind_alter_table_is_shown_with_whom_it_waits_for() {
    let (asked, cluster) = Asked::with_library("asked-with", "");
    for mode in ["simple", "prepared"] {
        readers_are_seen_waiting(&asked, &cluster, mode);
    }
    // Metrics come from the library.
    let publishers = asked.publishers(&asked.token());
    assert!(
        !publishers[0]["metrics"]
            .as_array()
            .expect("a list")
            .is_empty()
    );
    // Without a token an answer has numbers and no text.
    let slots: Vec<Value> = asked.publishers("").iter().flat_map(slots_of).collect();
    assert!(!slots.is_empty());
    assert!(slots.iter().all(|slot| text_of(slot).is_empty()));
}

#[test]
fn a_server_without_the_library_is_shown_all_the_same() {
    let (asked, cluster) = Asked::without_library("asked-without", "");
    for mode in ["simple", "prepared"] {
        readers_are_seen_waiting(&asked, &cluster, mode);
    }
    let slots: Vec<Value> = asked.publishers("").iter().flat_map(slots_of).collect();
    assert!(!slots.is_empty());
    for slot in slots {
        assert!(text_of(&slot).is_empty(), "{slot}");
        assert_eq!(slot["labels"], serde_json::json!({}), "{slot}");
    }
}

#[test]
fn two_servers_are_two_with_their_own_sessions() {
    let cluster = Cluster::serve(Place::new(), "", &[]);
    let other = Cluster::serve(Place::new(), "", &[]);
    for one in [&cluster, &other] {
        one.psql(ROLE);
    }
    let servers = [
        ("main", &*cluster.sockets(), "kymo"),
        ("other", &*other.sockets(), "kymo"),
    ];
    let asked = Asked::start("asked-two", &servers);
    let (mut one, mut two) = (cluster.session(), other.session());
    one.send("SELECT 'a', pg_sleep(600);");
    two.send("SELECT pg_sleep(600), 'b';");
    let token = asked.token();
    let sleeping = |server: &str| {
        let publishers = asked.publishers(&token);
        let texts: Vec<String> = publishers
            .iter()
            .filter(|each| each["labels"]["server"] == server && each["labels"]["port"] == "5432")
            .flat_map(slots_of)
            .filter(|slot| slot["state"] == "active")
            .map(|slot| text_of(&slot).to_string())
            .collect();
        (publishers.len() == 2 && !texts.is_empty()).then_some(texts)
    };
    assert_eq!(
        eventually(|| sleeping("main")).expect("it is seen"),
        ["SELECT ?, pg_sleep(?);"]
    );
    assert_eq!(
        eventually(|| sleeping("other")).expect("it is seen"),
        ["SELECT pg_sleep(?), ?;"]
    );
}

/// To the store, servers of one user were one publisher: their counts were added up, and their latencies mixed. Two large servers
/// exceeded the user's limit.
#[test]
fn two_servers_of_one_user_have_series_of_their_own() {
    let places = [Place::new(), Place::new()];
    let folders = places.each_ref().map(Place::folder);
    let names = ["one", "two"];
    let servers: Vec<Named> = names
        .iter()
        .zip(&folders)
        .map(|(name, folder)| (*name, &**folder, "kymo"))
        .collect();
    let asked = Asked::start("asked-names", &servers);
    let published = asked.served.published.display().to_string();
    assert!(eventually(|| asked.served.published.exists().then_some(())).is_some());
    let mut clusters = Vec::new();
    for (place, (own, connections)) in places.into_iter().zip([("15/one", 5000), ("15/two", 1000)])
    {
        let load = library("postgres", &[]);
        let settings = format!(
            "shared_preload_libraries = '{}'\ncluster_name = '{own}'\nmax_connections = {connections}\nshared_buffers = 1MB",
            load.display()
        );
        let cluster = Cluster::serve(place, &settings, &[("KYMO_DIR", &published)]);
        cluster.psql(ROLE);
        clusters.push(cluster);
    }
    let _sessions: Vec<_> = clusters.iter().map(Cluster::session).collect();
    let token = asked.token();
    let named = || {
        let publishers = asked.publishers(&token);
        let label = |each: &Value| each["labels"]["server"].as_str().map(String::from);
        let mut found: Vec<String> = publishers.iter().flat_map(label).collect();
        found.sort();
        (found == names).then_some(publishers)
    };
    let publishers = eventually(named).expect("both have names");
    for publisher in &publishers {
        assert_eq!(publisher["labels"]["port"], "5432", "{publisher}");
        let metric = &publisher["metrics"][0]["labels"];
        let name = publisher["labels"]["server"].as_str().expect("a name");
        assert_eq!(metric["server"], format!("15/{name}"), "{metric}");
    }
    let printed = asked.printed();
    for name in names {
        let head = format!("postgresql server={name} port=5432 of ");
        assert!(printed.contains(&head), "{printed}");
    }
    let series = || {
        let answer = get(
            &asked.address,
            "/kymo/v1/stored?match=publisher=postgresql",
            &token,
        );
        let text = answer["series"].to_string();
        let of = |own: &str| text.contains(&format!("server=\\\"{own}\\\""));
        (of("15/one") && of("15/two")).then_some(())
    };
    assert!(eventually(series).is_some(), "each has its series");
    let answer = get(&asked.address, "/kymo/v1/programs", &token);
    assert_eq!(answer["limited"], serde_json::json!([]));
}

#[test]
fn a_server_that_is_stopped_is_missed_once_and_greeted_once() {
    let place = Place::new();
    let mut asked = Asked::start("asked-stopped", &[("main", &place.folder(), "kymo")]);
    asked.served.has_said("postgres main: cannot ask");
    let mut cluster = Cluster::serve(place, "", &[]);
    cluster.psql(ROLE);
    asked.served.has_said("postgres main: PostgreSQL 15");
    cluster.stop();
    let line = asked.served.hears("postgres main: cannot ask");
    assert!(line.ends_with("trying again"), "{line}");
    cluster.start_again();
    let line = asked.served.hears("answers again, after");
    assert!(line.contains("postgres main: PostgreSQL 15"), "{line}");
    asked.served.listen(Duration::from_secs(3));
    let said = asked.served.said.iter();
    let said: Vec<_> = said.filter(|line| line.contains("postgres main")).collect();
    // Each cause once: no socket, then maybe a role that does not exist yet; the end of the server, then no socket.
    let mut once = said.clone();
    once.dedup();
    assert!(said.len() == once.len() && said.len() <= 8, "{said:#?}");
}

#[test]
fn a_role_that_may_not_see_is_said_and_numbers_come_all_the_same() {
    let cluster = Cluster::serve(Place::new(), "", &[]);
    cluster.psql("CREATE ROLE weak LOGIN;");
    let mut asked = Asked::start("asked-weak", &[("main", &cluster.sockets(), "weak")]);
    let line = asked.served.has_said("role weak may not see");
    assert!(line.contains("GRANT pg_monitor TO weak"), "{line}");
    let missing = Asked::start("asked-missing", &[("main", &cluster.sockets(), "none")]);
    let mut served = missing.served;
    served.has_said("postgres main: cannot ask");
    assert!(eventually(|| asked.grown("xact_commit", "")).is_some());
}

#[test]
fn what_is_locked_is_left_out_and_a_server_that_does_not_answer_is_left() {
    let (mut asked, cluster) = Asked::without_library("asked-locked", "");
    asked.served.has_said("postgres main: PostgreSQL 15");
    let mut locking = cluster.session();
    locking.send("BEGIN; LOCK TABLE pg_catalog.pg_authid IN ACCESS EXCLUSIVE MODE;");
    let line = asked.served.hears("cannot read pg_stat_activity");
    assert!(line.contains("lock timeout"), "{line}");
    locking.send("ROLLBACK;");
    let backend = eventually(|| {
        let answer = cluster.psql("SELECT pid FROM pg_stat_activity WHERE usename = 'kymo';");
        answer.trim().parse::<u32>().ok()
    });
    let backend = backend.expect("a session");
    kill("-STOP", backend);
    let line = asked.served.hears("no answer within");
    kill("-CONT", backend);
    assert!(line.contains("postgres main: cannot ask"), "{line}");
    asked.served.hears("answers again, after");
}

#[test]
fn counters_become_series_with_the_rates_of_the_clients() {
    let (mut asked, cluster) = Asked::without_library("asked-rates", "");
    asked.served.has_said("postgres main: PostgreSQL 15");
    // The first values exist before anything is counted.
    assert!(eventually(|| asked.grown("numbackends", "postgres")).is_some());
    let run = cluster.pgbench("simple", "SELECT count(*) FROM pg_class;", 4, 500);
    assert!(run.wait_with_output().expect("pgbench").status.success());
    let counted = cluster.logged() as f64;
    assert_eq!(counted, 2000.0);
    let enough = || {
        let grown = asked.grown("xact_commit", "postgres")?;
        (grown > counted * 0.99).then_some(grown)
    };
    let grown = eventually(enough).expect("all of them");
    // kymo's own statements, and those of psql and pgbench at their start, are few beside the 2,000.
    assert!(grown < counted * 1.2, "{grown}, not {counted}");
    let rows = asked.grown("tup_returned", "postgres").expect("rows");
    assert!(rows > counted * 100.0, "{rows}");
    let all = asked.grown("xact_commit", "").expect("the sum");
    assert!(all >= grown * 0.99, "{all} of all, {grown} of one");
    let _ = &asked.scratch;
}

/// Plays the keeper: passes on each frame of `kymo postgres`, and answers it.
fn overheard(stream: &mut UnixStream, heard: &Sender<(Vec<u8>, KeeperRequest)>) -> Option<()> {
    loop {
        let mut head = [0; HEAD];
        stream.read_exact(&mut head).ok()?;
        let mut frame = vec![0; u32::from_le_bytes(head).try_into().ok()?];
        stream.read_exact(&mut frame).ok()?;
        let question = KeeperRequest::read(&frame).expect("a question");
        let answers = match &question {
            KeeperRequest::Define(series) => vec![Answer::Done; series.len()],
            KeeperRequest::Write(series) => vec![Answer::Done; series.len()],
            KeeperRequest::Activity(_) | KeeperRequest::Watched => vec![Answer::Watched(true)],
            _ => vec![Answer::Taken(Taken::default())],
        };
        for answer in answers {
            stream.write_all(&answer.frame()).ok()?;
        }
        heard.send((frame, question)).ok()?;
    }
}

#[test]
fn no_literal_leaves_the_process_that_asks() {
    let cluster = Cluster::serve(Place::new(), "track_activity_query_size = 200", &[]);
    cluster.psql(ROLE);
    let scratch = Scratch::new("asked-overheard");
    let keeper = scratch.path("keeper");
    let listener = UnixListener::bind(&keeper).expect("a socket");
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let sender = sender.clone();
            std::thread::spawn(move || overheard(&mut stream, &sender));
        }
    });
    let child = started(&keeper, &cluster.sockets());
    let _asking = Running(child);
    let secret = "s3cr3t";
    let mut sessions: Vec<_> = (0..3).map(|_| cluster.session()).collect();
    sessions[0].send(&format!("SELECT '{secret}', pg_sleep(600);"));
    sessions[1].send(&format!(
        "SELECT pg_sleep(600), {}, $${secret}{}$$;",
        "a".repeat(9),
        secret.repeat(50)
    ));
    sessions[1].send(&format!(
        "SELECT /* {secret} */ pg_sleep(600), '{}';",
        secret.repeat(50)
    ));
    sessions[2].send(&format!("/* {secret} */ SELECT '{secret}';"));
    let mut texts: Vec<ServerSession> = Vec::new();
    let mut bytes = Vec::new();
    while texts.iter().filter(|one| one.state == 2).count() < 2 {
        let (frame, question) = heard.recv_timeout(LONG).expect("a question");
        bytes.extend(frame);
        if let KeeperRequest::Activity(ServerActivity { sessions, .. }) = question {
            texts = sessions;
        }
    }
    let said = String::from_utf8_lossy(&bytes).into_owned();
    assert!(said.contains("SELECT ?, pg_sleep(?)"), "{texts:#?}");
    assert!(!said.contains(secret), "{texts:#?}");
    let cut = texts.iter().filter(|one| one.is_cut).count();
    assert_eq!(cut, 1, "{texts:#?}");
}

fn started(keeper: &Path, socket: &str) -> Child {
    let order = serde_json::json!({"keeper": keeper, "servers": [{
        "name": "main", "socket": socket, "port": 5432, "role": "kymo", "database": "postgres", "databases": ["*"],
    }]});
    let mut child = Command::new(kymo())
        .arg("postgres")
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("kymo runs");
    let mut stdin = child.stdin.take().expect("its input");
    stdin
        .write_all(order.to_string().as_bytes())
        .expect("an order");
    drop(stdin);
    sleep(Duration::from_millis(1));
    child
}
