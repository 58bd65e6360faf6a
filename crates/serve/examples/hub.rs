//! The hub alone, over a recording: `cargo run -p kymo-serve --example hub -- DIR 127.0.0.1:4280`.

#![allow(clippy::print_stderr, reason = "a person reads it")]

use kymo_serve::{RecordingSource, Settings};

fn main() -> Result<(), String> {
    let mut words = std::env::args().skip(1);
    let dir = words.next().ok_or("usage: hub DIR ADDRESS [ASSETS]")?;
    let address = words.next().unwrap_or("127.0.0.1:4280".into());
    let listener = std::net::TcpListener::bind(&address).map_err(|error| error.to_string())?;
    let settings = Settings {
        what: RecordingSource::Ring(dir.into()),
        prefix: String::new(),
        hosts: Vec::new(),
        loopback: true,
        trust_proxy: false,
        token: "secret".into(),
        write_token: String::new(),
        tls: None,
        code: Some("once".into()),
        boards: None,
        rollups: std::env::var_os("ROLLUPS").map(Into::into),
        keeper: None,
        keeper_writes: None,
        upstream: None,
        external_labels: std::collections::BTreeMap::new(),
        owners: None,
        address: None,
        assets: words.next().map(Into::into),
    };
    kymo_serve::run(listener, settings, || {
        eprintln!("http://{address}/#code=once")
    })
}
