//! Debian's snmpd at its own address of the loopback interface.

use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kymo_wire::snmp::{Ask, IdWidth, Message, Oid, RequestMessage, Version};

use crate::{Running, Scratch};

const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(200);
const UP_TIME: &str = "1.3.6.1.2.1.1.3.0";

/// An snmpd with the community `public`, stopped at drop.
pub struct Snmpd {
    _running: Running,
    scratch: Scratch,
    /// Address of the agent.
    pub address: SocketAddr,
}

impl Snmpd {
    /// Starts an snmpd at a free port of this address, with these lines of configuration, and waits for an answer.
    pub fn start(at: &str, settings: &str) -> Snmpd {
        let scratch = Scratch::new("snmpd");
        let free = UdpSocket::bind((at, 0)).expect("a port");
        let address = free.local_addr().expect("its address");
        drop(free);
        let settings = format!("rocommunity public\n{settings}");
        std::fs::write(scratch.path("conf"), settings).expect("a file");
        let (conf, log) = (scratch.text("conf"), scratch.text("log"));
        let (pid, place) = (scratch.text("pid"), format!("udp:{address}"));
        let child = Command::new("snmpd")
            .args(["-f", "-C", "-c", &conf, "-Lf", &log])
            .args(["-I", "-smux", "-p", &pid, &place])
            .env("SNMP_PERSISTENT_DIR", scratch.text("kept"))
            .stdin(Stdio::null())
            .spawn();
        let running = Running(child.unwrap_or_else(|why| panic!("cannot start snmpd: {why}")));
        let until = Instant::now() + PATIENCE;
        while !answers(address) {
            assert!(Instant::now() < until, "snmpd does not answer");
        }
        Snmpd {
            _running: running,
            scratch,
            address,
        }
    }
}

impl Snmpd {
    /// The file that the agent keeps of its engine and users.
    pub fn kept(&self) -> String {
        std::fs::read_to_string(self.scratch.path("kept/snmpd.conf")).unwrap_or_default()
    }
}

/// True if the agent answers a request for sysUpTime.
fn answers(agent: SocketAddr) -> bool {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(agent).expect("a peer");
    socket.set_read_timeout(Some(PAUSE)).expect("a time limit");
    let name = [Oid::parse(UP_TIME).expect("an OID")];
    let request = RequestMessage::new(Ask::Get, Version::V2c, b"public", &name, IdWidth::Bits31);
    let begun = Instant::now();
    let mut buffer = [0; 1500];
    let answer = socket
        .send(request.bytes())
        .and_then(|_| socket.recv(&mut buffer));
    match answer {
        Ok(size) => Message::decode_response(&buffer[..size]).is_ok(),
        Err(_) => {
            std::thread::sleep(PAUSE.saturating_sub(begun.elapsed()));
            false
        }
    }
}
