//! A connection to a server and its queries. Each answer has a timeout of a few seconds: the server cancels a statement after
//! two, and a server that hangs does not hold up this process.

use std::error::Error;
use std::pin::pin;
use std::time::Duration;

use kymo_base::errno::strerror;
use kymo_base::limits;
use tokio::net::UnixStream;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_postgres::{Client, Config, NoTls, Row, Statement};
use tokio_stream::StreamExt as _;

use super::Server;
use super::counted::{Counted, Room};

/// Settings of kymo's sessions, which limit the work of a statement and its wait for a lock.
const SETTINGS: &str = "-c default_transaction_read_only=on -c statement_timeout=2000 -c lock_timeout=100 \
                        -c idle_in_transaction_session_timeout=10000 -c jit=off -c max_parallel_workers_per_gather=0";
/// Timeout for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Application name of kymo's sessions.
const NAME: &str = "kymo";

/// The error if a connection pooler answers instead of PostgreSQL.
pub(super) const POOLER: &str = "a connection pooler such as pgbouncer answers there, and kymo asks PostgreSQL itself: \
                      set port of this server in the configuration to";
/// Words for PostgreSQL's port if it is unknown.
const ITS_OWN: &str = "PostgreSQL's own, which is 5432 by default";

/// Reasons why a query has no answer.
pub(super) enum Failed {
    /// The server refuses the query; the connection is good.
    Refused(String),
    /// The connection is lost.
    Gone(String),
}

/// A connection to a server.
pub(super) struct Asker {
    client: Client,
    room: Room,
    connection: AbortHandle,
}

impl Drop for Asker {
    fn drop(&mut self) {
        // An orderly end would wait for the rest of an answer, which the server may delay.
        self.connection.abort();
    }
}

/// A query that is repeated.
pub(super) struct Ask {
    /// The object that it reads, for messages.
    pub what: &'static str,
    sql: String,
    statement: Option<Statement>,
}

impl Ask {
    /// A query that has not been prepared yet.
    pub(super) fn new(what: &'static str, sql: impl Into<String>) -> Ask {
        Ask {
            what,
            sql: sql.into(),
            statement: None,
        }
    }
}

impl Asker {
    /// Logs in. The server sends texts without conversion, as in a cluster with several encodings not all texts can be
    /// converted.
    pub(super) async fn connect(server: &Server) -> Result<Asker, String> {
        let mut config = Config::new();
        config
            .user(&server.role)
            .dbname(&server.database)
            .application_name(NAME)
            .options(SETTINGS);
        let room = Room::default();
        let login = async {
            let stream = UnixStream::connect(server.path()).await;
            let stream = stream.map_err(|error| strerror(&error))?;
            let connected = config.connect_raw(Counted::new(stream, room.clone()), NoTls);
            connected.await.map_err(|error| words(&error))
        };
        let connected = timeout(PATIENCE, login).await;
        let connected = connected.map_err(|_| no_answer())?;
        let (client, connection) = connected.map_err(|why| room.refusal().unwrap_or(why))?;
        // The client gets the connection's errors.
        let connection = tokio::spawn(connection).abort_handle();
        let asker = Asker {
            client,
            room,
            connection,
        };
        match asker.set("SET client_encoding = 'SQL_ASCII'").await {
            Ok(()) => Ok(asker),
            Err(Failed::Gone(why) | Failed::Refused(why)) => Err(why),
        }
    }

    /// Changes a setting of the session.
    pub(super) async fn set(&self, sql: &str) -> Result<(), Failed> {
        self.room.for_answer();
        match timeout(PATIENCE, self.client.batch_execute(sql)).await {
            Ok(done) => done.map_err(|error| self.failed(&error)),
            Err(_) => Err(Failed::Gone(no_answer())),
        }
    }

    /// Runs a query that is not repeated; `what` names the object that it reads.
    pub(super) async fn once(&self, what: &'static str, sql: &str) -> Result<Vec<Row>, Failed> {
        self.rows(&mut Ask::new(what, sql)).await
    }

    /// Runs a query, which the first run prepares.
    pub(super) async fn rows(&self, ask: &mut Ask) -> Result<Vec<Row>, Failed> {
        self.room.for_answer();
        let answer = async {
            let statement = match &ask.statement {
                Some(statement) => statement.clone(),
                None => self.client.prepare(&ask.sql).await?,
            };
            let rows = self.query(&statement).await?;
            Ok((statement, rows))
        };
        match timeout(PATIENCE, answer).await {
            Ok(Ok((statement, Some(rows)))) => {
                ask.statement = Some(statement);
                Ok(rows)
            }
            Ok(Ok((_, None))) => Err(Failed::Gone("it answers with too many rows".into())),
            Ok(Err(error)) => Err(self.failed(&error)),
            Err(_) => Err(Failed::Gone(no_answer())),
        }
    }

    /// Reads all rows; `None`: there are more than an answer may have.
    async fn query(
        &self,
        statement: &Statement,
    ) -> Result<Option<Vec<Row>>, tokio_postgres::Error> {
        let none: [&str; 0] = [];
        let mut stream = pin!(self.client.query_raw(statement, none).await?);
        let mut rows = Vec::new();
        while let Some(row) = stream.next().await {
            if rows.len() == limits::PG_ROWS_MAX {
                return Ok(None);
            }
            rows.push(row?);
        }
        Ok(Some(rows))
    }

    fn failed(&self, error: &tokio_postgres::Error) -> Failed {
        let is_fatal = error
            .as_db_error()
            .is_none_or(|error| error.severity() != "ERROR");
        match is_fatal || self.client.is_closed() {
            true => Failed::Gone(self.room.refusal().unwrap_or_else(|| words(error))),
            false => Failed::Refused(words(error)),
        }
    }
}

fn no_answer() -> String {
    format!("no answer within {} s", PATIENCE.as_secs())
}

/// The server's error message, or the cause of a broken connection.
fn words(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        let message = error.message();
        // PostgreSQL always names the routine that reports an error.
        return match error.routine() {
            Some(_) => message.to_string(),
            None => format!("{message}; {POOLER} {ITS_OWN}"),
        };
    }
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    words
}
