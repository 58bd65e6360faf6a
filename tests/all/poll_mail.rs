//! Mail of thresholds: MRTG and kymo send the same mails through the same server, aiosmtpd, which stores them in a folder.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use kymo_tests::served::eventually;
use kymo_tests::{Running, free_port, machine};

use crate::poll_commands::{Folder, Side, next_second, stderr_of};

const TARGETS: &str = "Interval: 0:01\nThreshDir: FOLDER/states
ThreshMailServer: SERVER\nThreshMailSender: mrtg@example.org
Target[c]: `cat FOLDER/../value`\nTitle[c]: Röuter <b>c</b>\nMaxBytes[c]: 10000\nOptions[c]: gauge
ThreshMinI[c]: 1.5e3\nThreshMaxO[c]: 4000\nThreshMailAddress[c]: The NOC <noc@example.org>, boss@example.org
PageTop[c]: <h1>c</h1><table><tr><td>System:</td><td>router &amp; switch</td></tr></table>
Target[A_b]: `cat FOLDER/../value`\nTitle[A_b]: t\nMaxBytes[A_b]: 10000\nOptions[A_b]: gauge
ThreshMaxI[A_b]: 15%\nThreshMinO[A_b]: 100\nThreshMailAddress[A_b]: noc@example.org
ThreshDesc[A_b]: a \"text\"
Target[quiet]: `cat FOLDER/../value`\nTitle[quiet]: t\nMaxBytes[quiet]: 10000\nOptions[quiet]: gauge\nThreshMaxI[quiet]: 1\n";

/// A mail server of Debian's package, which stores mails in a folder.
fn mail_server(address: &str, folder: &Path) -> Running {
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-m", "aiosmtpd", "-n", "-l", address]);
    command
        .args(["-c", "aiosmtpd.handlers.Mailbox"])
        .arg(folder);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let running = Running(child.expect("python3 starts"));
    eventually(|| TcpStream::connect(address).ok()).expect("a mail server");
    running
}

/// The mails of a folder: receivers, sender and subject of each, and the numbers of the body.
fn mails(folder: &Path) -> Vec<[String; 3]> {
    let files = fs::read_dir(folder.join("new")).into_iter().flatten();
    let mut mails: Vec<[String; 3]> = files
        .map(|file| {
            let text = fs::read(file.expect("a file").path()).expect("a mail");
            let text = String::from_utf8_lossy(&text).replace("\r\n", "\n");
            let (head, _) = text.split_once("\n\n").expect("a head");
            let head = head.replace("\n ", " ");
            ["X-RcptTo: ", "X-MailFrom: ", "Subject: "].map(|name| {
                let line = head.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap_or_else(|| panic!("no {name}in {head}"))
                    .to_string()
            })
        })
        .collect();
    mails.sort();
    mails
}

#[test]
fn mails_are_those_of_mrtg() {
    if machine::must_skip(&["mrtg"]) {
        return;
    }
    let top = Folder::new("mail");
    let place = |side: Side| {
        let folder = Folder(top.path(&format!("{side:?}")));
        fs::create_dir_all(folder.path("states")).expect("a folder");
        // MRTG takes one host, and no port.
        let (host, servers) = match side {
            Side::Mrtg => ("127.0.36.1", "127.0.36.1"),
            Side::Kymo => ("127.0.36.2", "127.0.36.9, 127.0.36.2:25"),
        };
        let server = mail_server(&format!("{host}:25"), &folder.path("mails"));
        folder.config("m.cfg", &TARGETS.replace("SERVER", servers));
        (side, folder, server)
    };
    let both = [place(Side::Mrtg), place(Side::Kymo)];
    let mut latest = 0;
    for value in [
        "1000\n200",
        "2000\n50",
        "2500.5\n10",
        "100\n5000",
        "3000\n7000",
    ] {
        fs::write(top.path("value"), format!("{value}\n")).expect("values");
        next_second(&mut latest);
        let sent = both.each_ref().map(|(side, folder, _)| {
            let output = side.run(&[], &folder.path("m.cfg"));
            (mails(&folder.path("mails")), stderr_of(&output))
        });
        assert_eq!(sent[0].0, sent[1].0, "{value:?}: {sent:#?}");
    }
    assert_eq!(mails(&both[1].1.path("mails")).len(), 10);
    let texts = fs::read_dir(both[1].1.path("mails/new")).expect("mails");
    let texts = texts.map(|file| fs::read(file.expect("a file").path()).expect("a mail"));
    let texts: Vec<String> = texts
        .map(|text| String::from_utf8_lossy(&text).replace("\r\n", "\n"))
        .collect();
    let has = |part: &str| texts.iter().any(|text| text.contains(part));
    assert!(
        has("Threshold: 15% (1500.0)\n  Current: 20.0% (2000)\n\na \"text\"\n"),
        "{texts:#?}"
    );
    assert!(has("Threshold: 1.5e3\n  Current: 1000\n"), "{texts:#?}");
    assert!(!has("<b>"), "{texts:#?}");
}

/// A server that is away, or takes nothing, costs its mails alone, and is named.
#[test]
fn a_server_that_is_away_is_named() {
    let folder = Folder::new("mail-away");
    fs::create_dir(folder.path("states")).expect("a folder");
    fs::write(folder.path("value"), "1000\n200\n").expect("values");
    let port = free_port();
    let text = TARGETS.replace("FOLDER/../value", "FOLDER/value");
    let server = format!("127.0.0.1:{port}");
    folder.config("m.cfg", &text.replace("SERVER", &server));
    let (mut latest, mut said) = (0, String::new());
    eventually(|| {
        next_second(&mut latest);
        let output = Side::Kymo.run(&[], &folder.path("m.cfg"));
        assert!(output.status.success(), "{output:?}");
        said = stderr_of(&output);
        said.contains("cannot send mail").then_some(())
    })
    .unwrap_or_else(|| panic!("{said}"));
    let line = format!(
        "cannot send mail of a threshold to noc@example.org, boss@example.org: {server}: Connection error: Connection refused"
    );
    assert!(said.contains(&line), "{said}");
}
