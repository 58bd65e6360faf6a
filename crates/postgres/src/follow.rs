//! Follows a server: logs in, queries it at whole seconds, and logs in again when the connection is lost. A problem is reported
//! once, and so is its end.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::owner::owner_of;
use kymo_wire::keeper::ServerActivity;
use tokio::runtime::Builder;
use tokio::time::sleep;
use tokio_postgres::Row;

use super::Server;
use super::ask::{Ask, Asker, Failed, POOLER};
use super::columns::{Columns, LEARN};
use super::numbers::Numbers;
use super::prepared;
use super::series::{STEP_S, Series};
use super::sessions;

/// Pause after a failed login, which doubles each time up to LONGEST_PAUSE.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Seconds between queries for sessions while no session works and no client of the keeper watches them.
const IDLE_S: i64 = 5;
/// Subject of messages about numbers that the keeper refuses.
const KEEPER: &str = "the keeper";
/// Subject of messages about sessions that the keeper refuses.
const ACTIVITY: &str = "sessions for the keeper";
/// Subjects of messages about queries for sessions.
const SESSIONS: &str = "sessions";
const PREPARED: &str = "prepared transactions";
const LOCKS: &str = "locks of prepared transactions";

/// The query for facts about a server after the login.
const FACTS: &str = "SELECT pg_catalog.current_setting('server_version'), \
     pg_catalog.pg_postmaster_start_time(), \
     pg_catalog.pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'), \
     (SELECT setting::int8 FROM pg_catalog.pg_settings WHERE name = 'track_activity_query_size'), \
     pg_catalog.current_setting('server_version_num')::int4, \
     pg_catalog.current_setting('max_prepared_transactions')::int4 > 0, \
     pg_catalog.current_setting('default_transaction_read_only') = 'on' AND pg_catalog.current_setting('statement_timeout') = '2s', \
     pg_catalog.current_setting('port')";
/// Makes the server read each row of statistics without a snapshot. Since version 15.
const FRESH: &str = "SET stats_fetch_consistency = none";
const FRESH_SINCE: i32 = 150_000;

/// Follows a server for ever, and sends its numbers and sessions to the keeper at a socket. An error means that it cannot begin.
pub fn follow(server: Server, keeper: PathBuf) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut followed = Followed {
        series: Series::new(keeper, &server.name),
        reported: HashMap::new(),
        server,
        away_since_ns: None,
        is_known: false,
    };
    runtime.block_on(followed.run());
    Ok(())
}

struct Followed {
    server: Server,
    series: Series,
    /// The last message about each subject, which is not repeated.
    reported: HashMap<&'static str, String>,
    away_since_ns: Option<u64>,
    /// True once the server has answered.
    is_known: bool,
}

/// Facts about a server.
struct Facts {
    version: String,
    started: Option<SystemTime>,
    /// True if the role may see texts, states and waits of all roles.
    sees_all: bool,
    text_bytes: i64,
    /// True if transactions can be prepared.
    prepares: bool,
    columns: Columns,
}

/// The queries for sessions.
struct Looks {
    sessions: Ask,
    prepared: Ask,
    locks: Ask,
}

impl Looks {
    fn new() -> Looks {
        Looks {
            sessions: Ask::new("pg_stat_activity", sessions::SESSIONS),
            prepared: Ask::new("pg_prepared_xacts", prepared::TRANSACTIONS),
            locks: Ask::new("pg_locks", prepared::LOCKS),
        }
    }
}

/// A whole second, since 1970.
struct Tick(i64);

impl Tick {
    async fn next() -> Tick {
        sleep(Duration::from_secs(1) - Duration::from_nanos(since_1970().subsec_nanos().into()))
            .await;
        // The clock may be set during the sleep.
        let now_s = (since_1970() + Duration::from_millis(100)).as_secs();
        Tick(i64::try_from(now_s).unwrap_or(0))
    }
}

fn since(mono_ns: u64) -> Duration {
    Duration::from_nanos(RealClock.mono_ns().saturating_sub(mono_ns))
}

/// Time since 1970; 0 if the clock is before that.
fn since_1970() -> Duration {
    Duration::from_nanos(u64::try_from(RealClock.now().real_ns).unwrap_or(0))
}

impl Followed {
    async fn run(&mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let begun_ns = RealClock.mono_ns();
            let Err(why) = self.session().await;
            self.series.gap();
            if since(begun_ns) > LONGEST_PAUSE {
                pause = FIRST_PAUSE;
            }
            let now_ns = RealClock.mono_ns();
            self.away_since_ns.get_or_insert(now_ns);
            let line = format!(
                "cannot ask {}: {why}; trying again",
                self.server.path().display()
            );
            self.say_once("", Some(line));
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Queries the server from the login until the connection is lost.
    async fn session(&mut self) -> Result<Infallible, String> {
        let asker = Asker::connect(&self.server).await?;
        let facts = learn(&asker).await?;
        self.say_up(&facts);
        let mut numbers = Numbers::new(&facts.columns, self.server.databases.clone());
        let mut looks = Looks::new();
        let (mut works, mut looked_s, mut written_s) = (true, 0, 0);
        loop {
            let Tick(now_s) = Tick::next().await;
            let is_due = now_s % i64::from(STEP_S) == 0 || now_s - written_s >= i64::from(STEP_S);
            if is_due && now_s > written_s {
                written_s = now_s;
                self.write(&asker, &mut numbers, now_s).await?;
            }
            if works || (now_s - looked_s).abs() >= IDLE_S || self.is_watched() {
                looked_s = now_s;
                works = self.look(&asker, &mut looks, &facts).await?;
            }
        }
    }

    fn is_watched(&mut self) -> bool {
        // A keeper that is away also fails to take the next values, which is reported.
        self.series.keeper.is_watched().unwrap_or(false)
    }

    async fn write(
        &mut self,
        asker: &Asker,
        numbers: &mut Numbers,
        now_s: i64,
    ) -> Result<(), String> {
        let results = numbers.ask(asker).await?;
        for (what, why) in results.refused {
            self.say_once(what, why.map(|why| format!("cannot read {what}: {why}")));
        }
        let written = self.series.write(&results.numbers, now_s);
        let why = written.err();
        self.say_once(KEEPER, why.map(|why| format!("cannot keep numbers: {why}")));
        Ok(())
    }

    /// Queries sessions and sends them to the keeper; true if one of them works.
    async fn look(
        &mut self,
        asker: &Asker,
        looks: &mut Looks,
        facts: &Facts,
    ) -> Result<bool, String> {
        let rows = self.rows(asker, &mut looks.sessions, SESSIONS).await?;
        let Some(rows) = rows else {
            return Ok(false);
        };
        let mut all = sessions::sessions(&rows, facts.text_bytes);
        if sessions::wait_for_prepared(&rows)
            && let Some(rows) = self.rows(asker, &mut looks.locks, LOCKS).await?
        {
            let mut blockers = prepared::blockers(&rows);
            for session in &mut all {
                session.blocked_by_xids = blockers.remove(&session.pid).unwrap_or_default();
            }
        }
        if facts.prepares
            && let Some(rows) = self.rows(asker, &mut looks.prepared, PREPARED).await?
        {
            all.extend(prepared::transactions(&rows));
        }
        let (sessions, left_out) = sessions::fitting(all);
        let works = sessions.iter().any(sessions::is_active);
        let owner = owner_of(&self.server.path());
        let started = facts
            .started
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let activity = ServerActivity {
            server: self.server.name.clone().into_bytes(),
            port: self.server.port,
            uid: owner.unwrap_or(0),
            started_ns: started.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0)),
            sessions,
            left_out,
        };
        let why = self.series.keeper.activity(activity).err();
        let line = why.map(|why| format!("cannot tell the keeper what sessions do: {why}"));
        self.say_once(ACTIVITY, line);
        Ok(works)
    }

    /// Runs a query; `None`: the server refuses it, which is reported once.
    async fn rows(
        &mut self,
        asker: &Asker,
        ask: &mut Ask,
        what: &'static str,
    ) -> Result<Option<Vec<Row>>, String> {
        match asker.rows(ask).await {
            Ok(rows) => {
                self.say_once(what, None);
                Ok(Some(rows))
            }
            Err(Failed::Gone(why)) => Err(why),
            Err(Failed::Refused(why)) => {
                self.say_once(what, Some(format!("cannot read {}: {why}", ask.what)));
                Ok(None)
            }
        }
    }

    fn say_up(&mut self, facts: &Facts) {
        self.reported.remove("");
        let version = &facts.version;
        match self.away_since_ns.take() {
            Some(since_ns) if self.is_known => {
                let seconds = since(since_ns).as_secs();
                self.server.say(&format!(
                    "PostgreSQL {version} answers again, after {seconds} s"
                ));
            }
            _ => self.server.say(&format!("PostgreSQL {version} answers")),
        }
        self.is_known = true;
        let role = &self.server.role;
        let line =
            format!("role {role} may not see what other roles do: GRANT pg_monitor TO {role}");
        self.say_once("pg_monitor", (!facts.sees_all).then_some(line));
    }

    /// Reports a problem with a subject unless it was its last message. `None`: there is no problem, so the last message is
    /// forgotten.
    fn say_once(&mut self, what: &'static str, line: Option<String>) {
        let Some(line) = line else {
            self.reported.remove(what);
            return;
        };
        if self.reported.get(what) != Some(&line) {
            self.server.say(&line);
            self.reported.insert(what, line);
        }
    }
}

async fn learn(asker: &Asker) -> Result<Facts, String> {
    let why = |failed| match failed {
        Failed::Gone(why) | Failed::Refused(why) => why,
    };
    let rows = asker.once("the server's facts", FACTS).await.map_err(why)?;
    let row = rows.first().ok_or("it says nothing of itself")?;
    let (is_ours, port): (bool, &str) = (
        row.try_get(6).unwrap_or_default(),
        row.try_get(7).unwrap_or_default(),
    );
    if !is_ours {
        return Err(format!(
            "settings of the session have no effect; {POOLER} {port}"
        ));
    }
    let number: i32 = row.try_get(4).unwrap_or_default();
    if number >= FRESH_SINCE {
        asker.set(FRESH).await.map_err(why)?;
    }
    let rows = asker.once("its catalogue", LEARN).await.map_err(why)?;
    let pair = |row: &Row| Some((row.try_get(0).ok()?, row.try_get(1).ok()?));
    let columns: Option<_> = rows.iter().map(pair).collect();
    Ok(Facts {
        version: row.try_get(0).unwrap_or_default(),
        started: row.try_get(1).ok(),
        sees_all: row.try_get(2).unwrap_or_default(),
        text_bytes: row.try_get(3).unwrap_or(1024),
        prepares: row.try_get(5).unwrap_or_default(),
        columns: Columns(columns.unwrap_or_default()),
    })
}
