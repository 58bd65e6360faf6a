//! Communities are passwords: they appear in the configuration and in
//! packets, and nowhere else.

use super::bench::{Counters, Stage, target};

#[test]
fn communities_are_neither_in_the_log_nor_in_command_lines_nor_in_files() {
    let mut stage = Stage::with_community(2, 8, "s3cr3tw0rd");
    let agent = stage.agent(0, 2);
    let other = agent.replace("s3cr3tw0rd", "0ther-s3cr3t");
    stage.say(&target("wrong", &format!("1:{other}")));
    stage.say(&target("missing", &format!("#Nothing:{agent}")));
    stage.configure(Counters::Named);
    stage.change(1, |behaviour, _| behaviour.dead = true);
    let mut polling = stage.poll();
    stage.await_values(0, 3, 0, 4);
    let mut said = vec![("the log".to_owned(), stage.log().into_bytes())];
    let pid = polling.pid();
    for name in ["cmdline", "comm", "environ"] {
        let path = format!("/proc/{pid}/{name}");
        said.push((path.clone(), std::fs::read(&path).expect("a file")));
    }
    polling.assert_alive(&stage);
    let names = std::fs::read_dir(stage.scratch.path("rrd"))
        .expect("a folder")
        .flatten();
    said.extend(names.map(|entry| {
        (
            entry.path().display().to_string(),
            std::fs::read(entry.path()).unwrap_or_default(),
        )
    }));
    assert!(said.len() > 8, "{}", said.len());
    for (what, bytes) in said {
        for secret in ["s3cr3tw0rd", "0ther-s3cr3t"] {
            let found = bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes());
            assert!(!found, "{what} has {secret}");
        }
    }
}
