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

/// An object that snmpd's configuration gives a value, from 1.3.6.1.4.1 on.
const OWN_OBJECT: &str = "1.3.6.1.4.1.9999.1.0";

/// Polls once, each target as the user with its name and these options.
fn poll(folder: &Scratch, agent: &Snmpd, users: &[User]) -> Output {
    poll_objects(folder, agent, users, "ifInOctets.1&ifOutOctets.1")
}

/// As [`poll`], with these objects.
fn poll_objects(folder: &Scratch, agent: &Snmpd, users: &[User], objects: &str) -> Output {
    let (address, port) = (agent.address.ip(), agent.address.port());
    let place = folder.path("").display().to_string();
    let mut text = format!("WorkDir: {place}\nLogFormat: rrdtool\nEnableSnmpV3: yes\n");
    for User { name, options, .. } in users {
        text.push_str(&format!(
            "Target[{name}]: {objects}:x@{address}:{port}::::3\n\
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
    let values = values(folder, name);
    values.len() == 2 && values.iter().all(|value| value.parse::<u64>().is_ok())
}

/// The values of the file's last update.
fn values(folder: &Scratch, name: &str) -> Vec<String> {
    let file = folder.path(&format!("{name}.rrd"));
    let output = Command::new("rrdtool").arg("lastupdate").arg(file).output();
    let text = String::from_utf8_lossy(&output.expect("rrdtool runs").stdout).into_owned();
    let last = text.lines().last().unwrap_or_default();
    last.split_whitespace().skip(1).map(String::from).collect()
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

/// Digits of a key that counts up from a byte.
fn key(from: u8, bytes: u8) -> String {
    let digits = (from..from + bytes).map(|byte| format!("{byte:02x}"));
    format!("0x{}", digits.collect::<String>())
}

/// snmpd gets localized keys as kymo does, and for a user with passwords it says the keys that it made of them.
#[test]
fn localized_keys_are_those_of_snmpd() {
    if machine::must_skip(&["snmpd", "rrdtool"]) {
        return;
    }
    const ENGINE: &str = "0x8000000001020304";
    let mut users = Vec::new();
    for (name, auth, auth_bytes, privacy, private_bytes) in [
        ("md5-des", ("MD5", "md5"), 16, ("DES", "des"), 16),
        ("sha256-aes", ("SHA-256", "sha256"), 32, ("AES", "aes"), 16),
        (
            "sha512-aes256",
            ("SHA-512", "sha512"),
            64,
            ("AES-256", "aes256"),
            32,
        ),
    ] {
        let (signing, private) = (key(1, auth_bytes), key(101, private_bytes));
        users.push(User {
            name: name.into(),
            line: format!(
                "createUser -e {ENGINE} {name} {} -l {signing} {} -l {private}\nrouser {name} priv",
                auth.0, privacy.0
            ),
            options: format!(
                "authprotocol => '{}', authkey => '{signing}', privprotocol => '{}', privkey => '{private}'",
                auth.1, privacy.1
            ),
        });
    }
    let line = format!("SHA-256 \"{SIGNING}\" AES \"{PRIVATE}\"");
    users.push(user("known", &line, "priv", ""));
    let lines: Vec<&str> = users.iter().map(|user| &*user.line).collect();
    let settings = format!("exactEngineID {ENGINE}\n{}", lines.join("\n"));
    let agent = Snmpd::start("127.0.12.12", &settings);
    // A line of snmpd's file: usmUser, status, storage, engine, names, clone, protocol and key, protocol and key.
    let kept = agent.kept();
    let of_known = kept
        .lines()
        .find(|line| line.contains("\"known\""))
        .expect("a user");
    let words: Vec<&str> = of_known.split_whitespace().collect();
    users[3].options = format!(
        "authprotocol => 'sha256', authkey => '{}', privprotocol => 'aes', privkey => '{}'",
        words[8], words[10]
    );
    let folder = Scratch::new("poll-localized");
    let output = poll(&folder, &agent, &users);
    let messages = String::from_utf8_lossy(&output.stderr);
    for user in &users {
        assert!(has_values(&folder, &user.name), "{}: {messages}", user.name);
    }
}

/// A context of snmpd that is another agent behind it.
#[test]
fn a_context_is_another_agent() {
    if machine::must_skip(&["snmpd", "rrdtool"]) {
        return;
    }
    let behind = Snmpd::start("127.0.12.13", &format!("override .{OWN_OBJECT} integer 42"));
    let line = format!("SHA-256 \"{SIGNING}\" AES \"{PRIVATE}\"");
    let settings = format!(
        "view all included .1\ncreateUser known {line}\nrouser known priv -V all *\n\
         override .{OWN_OBJECT} integer 7\nproxy -Cn other -v 2c -c public {} .1.3.6.1.4.1.9999",
        behind.address
    );
    let agent = Snmpd::start("127.0.12.14", &settings);
    let signed = format!(
        "authprotocol => 'sha256', authpassword => '{SIGNING}', privprotocol => 'aes', privpassword => '{PRIVATE}'"
    );
    for (context, value) in [("", "7"), ("contextname => 'other', ", "42")] {
        let folder = Scratch::new("poll-context");
        let one = User {
            name: "known".into(),
            line: String::new(),
            options: format!("{context}{signed}"),
        };
        let objects = format!("{OWN_OBJECT}&{OWN_OBJECT}");
        let output = poll_objects(&folder, &agent, &[one], &objects);
        let messages = String::from_utf8_lossy(&output.stderr);
        assert_eq!(values(&folder, "known"), [value, value], "{messages}");
    }
}

/// The line about a silent device of SNMPv3 named its community, which it does not have.
#[test]
fn a_silent_device_is_told_by_its_user() {
    if machine::must_skip(&["snmpd", "rrdtool"]) {
        return;
    }
    let line = format!("SHA-256 \"{SIGNING}\" AES \"{PRIVATE}\"");
    let settings = format!("createUser known {line}\nrouser known priv");
    let agent = Snmpd::start("127.0.12.15", &settings);
    let signed =
        format!("authprotocol => 'sha256', authpassword => '{SIGNING}', privprotocol => 'aes'");
    for options in [
        format!("{signed}, privpassword => 'not-{PRIVATE}'"),
        format!("{signed}, privpassword => '{PRIVATE}', contextname => 'nowhere'"),
    ] {
        let folder = Scratch::new("poll-silent-user");
        let one = User {
            name: "known".into(),
            line: String::new(),
            options,
        };
        let output = poll(&folder, &agent, &[one]);
        let messages = String::from_utf8_lossy(&output.stderr);
        let why = "does not answer; see whether it is up, and whether the user, its passwords and contextname of SnmpOptions are right";
        assert!(messages.contains(why), "{messages}");
        assert!(!messages.contains("community"), "{messages}");
    }
}
