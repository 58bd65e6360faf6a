//! `kymo poll` with SNMPv3 beside Debian's snmpd: every combination of signature and cipher, and users that snmpd refuses.

use std::process::{Command, Output, Stdio};

use kymo_tests::snmpd::Snmpd;
use kymo_tests::{Scratch, kymo, machine};

const AUTH: [(&str, &str); 6] = [
    ("MD5", "md5"),
    ("SHA", "sha"),
    ("SHA-224", "sha224"),
    ("SHA-256", "sha256"),
    ("SHA-384", "sha384"),
    ("SHA-512", "sha512"),
];

const PRIVACY: [(&str, &str); 6] = [
    ("DES", "des"),
    ("AES", "aes"),
    ("AES-192", "aes192"),
    ("AES-256", "aes256"),
    ("AES192C", "aes192c"),
    ("AES256C", "aes256c"),
];

/// Passwords of all users, which nothing may show.
const SIGNING: &str = "s3cr3t-signing";
const PRIVATE: &str = "s3cr3t-private";

/// A user: its name, its line for snmpd, and its options for kymo.
struct User {
    name: String,
    line: String,
    options: String,
}

fn users() -> Vec<User> {
    let mut users = vec![User {
        name: "plain".into(),
        line: "createUser plain\nrouser plain noauth".into(),
        options: String::new(),
    }];
    for (auth, auth_name) in AUTH {
        let line = format!("{auth} \"{SIGNING}\"");
        let options = format!("authprotocol => '{auth_name}', authpassword => '{SIGNING}'");
        users.push(user(auth_name, &line, "auth", &options));
        for (privacy, name) in PRIVACY {
            let line = format!("{line} {privacy} \"{PRIVATE}\"");
            let options =
                format!("{options}, privprotocol => '{name}', privpassword => '{PRIVATE}'");
            users.push(user(
                &format!("{auth_name}-{name}"),
                &line,
                "priv",
                &options,
            ));
        }
    }
    users
}

fn user(name: &str, line: &str, level: &str, options: &str) -> User {
    User {
        name: name.into(),
        line: format!("createUser {name} {line}\nrouser {name} {level}"),
        options: options.into(),
    }
}

/// Polls once, each target as the user with its name and these options.
fn poll(folder: &Scratch, agent: &Snmpd, users: &[User]) -> Output {
    let (address, port) = (agent.address.ip(), agent.address.port());
    let place = folder.path("").display().to_string();
    let mut text = format!("WorkDir: {place}\nLogFormat: rrdtool\nEnableSnmpV3: yes\n");
    for User { name, options, .. } in users {
        text.push_str(&format!(
            "Target[{name}]: ifInOctets.1&ifOutOctets.1:x@{address}:{port}::::3\n\
             SnmpOptions[{name}]: username => '{name}', timeout => 2, {options}\n\
             MaxBytes[{name}]: 125000000\nTitle[{name}]: t\n"
        ));
    }
    std::fs::write(folder.path("a.cfg"), text).expect("a configuration");
    let mut command = Command::new(kymo());
    command.arg("poll").arg(folder.path("a.cfg"));
    let output = command.stdin(Stdio::null()).output();
    output.expect("kymo runs")
}

/// True if the file has numbers for both values of its last update.
fn has_values(folder: &Scratch, name: &str) -> bool {
    let file = folder.path(&format!("{name}.rrd"));
    let output = Command::new("rrdtool").arg("lastupdate").arg(file).output();
    let text = String::from_utf8_lossy(&output.expect("rrdtool runs").stdout).into_owned();
    let last = text.lines().last().unwrap_or_default();
    let values: Vec<&str> = last.split_whitespace().skip(1).collect();
    values.len() == 2 && values.iter().all(|value| value.parse::<u64>().is_ok())
}

#[test]
fn snmpd_answers_users_of_every_combination() {
    if machine::must_skip(&["snmpd", "rrdtool"]) {
        return;
    }
    let users = users();
    let lines: Vec<&str> = users.iter().map(|user| &*user.line).collect();
    let agent = Snmpd::start("127.0.12.10", &lines.join("\n"));
    let folder = Scratch::new("poll-users");
    let output = poll(&folder, &agent, &users);
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(!messages.contains("s3cr3t"), "{messages}");
    let missing = users.iter().filter(|user| !has_values(&folder, &user.name));
    let missing: Vec<&str> = missing.map(|user| &*user.name).collect();
    assert!(missing.is_empty(), "{missing:?} have no values: {messages}");
    assert_eq!(users.len(), 43);
}

#[test]
fn refusals_of_snmpd_are_said_with_what_to_see() {
    if machine::must_skip(&["snmpd", "rrdtool"]) {
        return;
    }
    let line = format!("SHA-256 \"{SIGNING}\" AES \"{PRIVATE}\"");
    let known = user("known", &line, "priv", "");
    let agent = Snmpd::start("127.0.12.11", &known.line);
    let signed = format!("authprotocol => 'sha256', authpassword => '{SIGNING}'");
    for (name, options, message) in [
        ("nobody", signed.clone(), "has no such user"),
        (
            "known",
            signed.replace("signing", "other"),
            "refuses the signature",
        ),
        (
            "known",
            signed.replace("256", "512"),
            "refuses the signature",
        ),
    ] {
        let folder = Scratch::new("poll-refused");
        let one = User {
            name: name.into(),
            line: String::new(),
            options,
        };
        let output = poll(&folder, &agent, &[one]);
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(messages.contains(message), "{name}: {messages}");
        assert!(!messages.contains("s3cr3t"), "{messages}");
        assert!(!has_values(&folder, name));
    }
}
