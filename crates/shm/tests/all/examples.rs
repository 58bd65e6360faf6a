//! The examples of both writers run, and a reader finds the published values.

use std::process::Command;

use kymo_shm::{Access, Reader, Schema, Scratch, State, Value};

use crate::c::compile;
use crate::folder::Folder;
use crate::running::Running;

#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/publish.rs"]
mod publish;

/// Checks the result of 1,000 commands: each fourth one writes, about an eighth is in the histogram, with the
/// weight 8.
fn check(reader: &mut Reader, application: &[u8]) {
    let mut scratch = Scratch::default();
    reader.scan(&mut scratch).expect("a scan");
    reader.sample(&mut scratch).expect("a sample");
    let names: Vec<&[u8]> = reader
        .metrics()
        .iter()
        .map(|metric| metric.description.name.as_slice())
        .collect();
    assert_eq!(
        names,
        [
            &b"commands_total"[..],
            b"commands_total",
            b"open_sessions",
            b"command_duration"
        ]
    );
    let values: Vec<Value> = reader
        .metrics()
        .iter()
        .map(|metric| reader.value(metric))
        .collect();
    assert_eq!(
        values[..3],
        [Value::Counter(750), Value::Counter(250), Value::Gauge(1.0)]
    );
    let Value::Histogram(duration) = values[3] else {
        panic!("no histogram");
    };
    assert!(
        (50..300).contains(&duration.samples),
        "{} samples",
        duration.samples
    );
    assert_eq!(duration.count(), duration.samples * 8);
    let activity = &reader.activities()[0];
    assert_eq!((activity.state, activity.commands), (State::Idle, 1000));
    assert_eq!(
        activity.command.as_ref().expect("a command").text,
        b"set colour 7"
    );
    let identity = activity.identity.as_ref().expect("an identity");
    assert_eq!(identity.labels[1].text, application);
}

#[test]
fn the_example_in_c() {
    let (program, folder) = (Folder::new("example-program"), Folder::new("example-c"));
    let mut command = Command::new(compile("examples/publish.c", program.path(), &[]));
    let (running, path) = Running::start(command.arg("1000").env("KYMO_DIR", folder.path()));
    assert_eq!(
        folder.path().join(&folder.names()[0]).to_str(),
        Some(path.as_str())
    );
    let mut reader = folder.open(Access::Read);
    assert_eq!(reader.header().pid, running.pid());
    check(&mut reader, b"publish.c");
}

#[test]
fn the_example_in_rust() {
    let folder = Folder::new("example-rust");
    let in_folder = |schema: Schema| schema.folder(folder.path());
    let _published = publish::publish(1000, in_folder);
    check(&mut folder.open(Access::MapOwn), b"publish.rs");
}
