//! A connection to a server, and questions to it. No answer is waited for longer than a few seconds: the server itself ends a
//! statement after two, and one that is stopped as a whole does not hold this process up.

use std::error::Error;
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

use super::ServerOrder;

/// How long the server works on a statement, and waits for a lock, at most.
const SETTINGS: &str = "-c default_transaction_read_only=on -c statement_timeout=2000 -c lock_timeout=100 \
                        -c idle_in_transaction_session_timeout=10000 -c jit=off -c max_parallel_workers_per_gather=0";
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// What sessions of kymo are called.
const NAME: &str = "kymo";

/// Why there is no answer.
pub(super) enum Failed {
    /// The server refuses: the connection is good.
    Refused(String),
    /// There is no connection any more.
    Gone(String),
}

/// A connection.
pub(super) struct Asker(Client);

/// A question that is asked again and again.
pub(super) struct Ask {
    /// What it reads, for people.
    pub what: &'static str,
    sql: String,
    statement: Option<Statement>,
}

impl Ask {
    /// Nothing is asked yet.
    pub(super) fn new(what: &'static str, sql: impl Into<String>) -> Ask {
        Ask {
            what,
            sql: sql.into(),
            statement: None,
        }
    }
}

impl Asker {
    /// Logs in. Texts come as the server has them: of databases with several encodings not all can be converted.
    pub(super) async fn connect(order: &ServerOrder) -> Result<Asker, String> {
        let mut config = Config::new();
        config
            .host_path(&order.socket)
            .port(order.port)
            .user(&order.role)
            .dbname(&order.database)
            .application_name(NAME)
            .options(SETTINGS);
        let connected = timeout(PATIENCE, config.connect(NoTls)).await;
        let (client, connection) = connected
            .map_err(|_| no_answer())?
            .map_err(|error| words(&error))?;
        // It ends with the client, which hears of whatever went wrong.
        tokio::spawn(connection);
        let asker = Asker(client);
        match asker.set("SET client_encoding = 'SQL_ASCII'").await {
            Ok(()) => Ok(asker),
            Err(Failed::Gone(why) | Failed::Refused(why)) => Err(why),
        }
    }

    /// Has a setting of the session changed.
    pub(super) async fn set(&self, sql: &str) -> Result<(), Failed> {
        match timeout(PATIENCE, self.0.batch_execute(sql)).await {
            Ok(done) => done.map_err(|error| self.failed(&error)),
            Err(_) => Err(Failed::Gone(no_answer())),
        }
    }

    /// Asks once.
    pub(super) async fn once(&self, what: &'static str, sql: &str) -> Result<Vec<Row>, Failed> {
        self.rows(&mut Ask::new(what, sql)).await
    }

    /// Asks.
    pub(super) async fn rows(&self, ask: &mut Ask) -> Result<Vec<Row>, Failed> {
        let answer = async {
            let statement = match &ask.statement {
                Some(statement) => statement.clone(),
                None => self.0.prepare(&ask.sql).await?,
            };
            let rows = self.0.query(&statement, &[]).await?;
            Ok((statement, rows))
        };
        match timeout(PATIENCE, answer).await {
            Ok(Ok((statement, rows))) => {
                ask.statement = Some(statement);
                Ok(rows)
            }
            Ok(Err(error)) => Err(self.failed(&error)),
            Err(_) => Err(Failed::Gone(no_answer())),
        }
    }

    fn failed(&self, error: &tokio_postgres::Error) -> Failed {
        let is_fatal = error
            .as_db_error()
            .is_none_or(|error| error.severity() != "ERROR");
        match is_fatal || self.0.is_closed() {
            true => Failed::Gone(words(error)),
            false => Failed::Refused(words(error)),
        }
    }
}

fn no_answer() -> String {
    format!("no answer within {} s", PATIENCE.as_secs())
}

/// The server's own words, or what happened to the connection.
fn words(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_string();
    }
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    words
}
