//! The configured port belongs to a connection pooler: kymo names the program that answers there, and the port to set. The pooler
//! is pgbouncer: with its defaults, with ignored session settings, and with its own database.

use std::fs;
use std::process::Stdio;

use kymo_tests::postgres::{Cluster, Place};
use kymo_tests::served::Served;
use kymo_tests::{Running, Scratch};

use crate::postgres_asked::ROLE;

/// A pgbouncer in front of a server, on a port in its own folder.
fn pooler(place: &Place, cluster: &Cluster, port: u16, more: &str) -> Running {
    let (folder, sockets) = (place.folder(), cluster.sockets());
    let (config, users) = (format!("{folder}{port}.ini"), format!("{folder}{port}.txt"));
    fs::write(&users, "\"kymo\" \"\"\n").expect("users");
    let text = format!(
        "[databases]\npostgres = host={sockets} port=5432\nshared = host={sockets} port=5432 dbname=postgres pool_mode=transaction\n\
         [pgbouncer]\nlisten_addr =\nlisten_port = {port}\nunix_socket_dir = {folder}\nauth_type = trust\nauth_file = {users}\n\
         admin_users = kymo\nlogfile =\n{more}\n"
    );
    fs::write(&config, text).expect("a configuration");
    let mut command = place.command("/usr/sbin/pgbouncer".as_ref());
    let command = command.arg(&config).stdin(Stdio::null());
    Running(command.stderr(Stdio::null()).spawn().expect("pgbouncer"))
}

#[test]
fn the_port_of_a_pooler_is_said_to_be_one() {
    let cluster = Cluster::serve(Place::new(), "", &[]);
    cluster.psql(ROLE);
    let place = Place::new();
    let _strict = pooler(&place, &cluster, 6432, "");
    let _lenient = pooler(
        &place,
        &cluster,
        6433,
        "ignore_startup_parameters = options",
    );
    let cases = [
        (
            "strict",
            6432,
            "postgres",
            "PostgreSQL's own, which is 5432",
        ),
        (
            "console",
            6433,
            "pgbouncer",
            "PostgreSQL's own, which is 5432",
        ),
        ("session", 6433, "postgres", "to 5432"),
        ("transaction", 6433, "shared", "to 5432"),
    ];
    let folder = place.folder();
    let tables = cases.iter().map(|(name, port, database, _)| {
        format!("[postgres.servers.{name}]\nsocket = \"{folder}\"\nport = {port}\ndatabase = \"{database}\"\n")
    });
    let scratch = Scratch::new("pooler");
    let config: String = std::iter::once("user = \"\"\n[listen]\ncollectd = []\n".to_string())
        .chain(tables)
        .collect();
    let mut served = Served::configured(&scratch, &scratch.path("data"), &config);
    served.address();
    for (name, port, _, advice) in cases {
        let line = served.has_said_all(&[&format!("postgres {name}: cannot ask"), "pooler"]);
        assert!(line.contains(&format!(".s.PGSQL.{port}: ")), "{line}");
        assert!(line.contains("such as pgbouncer"), "{line}");
        assert!(line.contains(advice), "{line}");
    }
}
