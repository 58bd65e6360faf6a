//! Destinations and sources of requests: local addresses in targets, IPv6, host names whose servers are gone. A relay before
//! the agents sees the source of each request.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use kymo_tests::kymo;
use kymo_tests::served::{eventually, kill};

use super::bench::{Polling, Stage, now_ns, target};

/// Time between the relay's checks for its end.
const LOOK: Duration = Duration::from_millis(50);

/// Forwards requests to an agent, and replies back.
struct Relay {
    address: SocketAddr,
    senders: Arc<Mutex<Vec<SocketAddr>>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    fn start(at: IpAddr, agent: SocketAddr) -> std::io::Result<Relay> {
        let socket = UdpSocket::bind((at, 0))?;
        let beyond = UdpSocket::bind("127.0.21.1:0")?;
        beyond.connect(agent)?;
        for each in [&socket, &beyond] {
            each.set_read_timeout(Some(LOOK))?;
        }
        let (senders, ends) = (Arc::new(Mutex::default()), Arc::new(AtomicBool::new(false)));
        let address = socket.local_addr()?;
        let (seen, over): (Arc<Mutex<Vec<SocketAddr>>>, _) =
            (Arc::clone(&senders), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while !over.load(Ordering::Acquire) {
                let Ok((size, from)) = socket.recv_from(&mut buffer) else {
                    continue;
                };
                seen.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(from);
                beyond.send(&buffer[..size]).expect("a way to the agent");
                if let Ok(size) = beyond.recv(&mut buffer) {
                    socket.send_to(&buffer[..size], from).expect("a way back");
                }
            }
        });
        Ok(Relay {
            address,
            senders,
            ends,
            thread: Some(thread),
        })
    }

    /// Sources of requests since the last call, each once.
    fn take_senders(&self) -> Vec<SocketAddr> {
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        let mut senders = std::mem::take(&mut *senders);
        senders.sort();
        senders.dedup();
        senders
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // The test sees a failure of the relay as missing values.
            let _ = thread.join();
        }
    }
}

fn agent(stage: &Stage) -> SocketAddr {
    let port = stage.farm.settings().port;
    SocketAddr::new(stage.farm.address(0).into(), port)
}

/// A free port.
fn free_port(at: &str) -> u16 {
    let socket = UdpSocket::bind((at, 0)).expect("a port");
    socket.local_addr().expect("its address").port()
}

fn relay(at: &str, stage: &Stage) -> Relay {
    let at = at.parse().expect("an address");
    Relay::start(at, agent(stage)).expect("a relay")
}

/// `port!lhost!lport` of a target: only its own requests leave from there, and an unusable address is reported.
#[test]
fn requests_leave_from_where_the_target_says() {
    let mut stage = Stage::new(1, 4);
    let relays = ["127.0.21.11", "127.0.21.12", "127.0.21.13"].map(|at| relay(at, &stage));
    let ports = relays.each_ref().map(|relay| relay.address.port());
    let own = SocketAddr::new([127, 0, 21, 7].into(), free_port("127.0.21.7"));
    for (number, from) in [
        format!("!127.0.21.7!{}", own.port()),
        "!127.0.21.8!".into(),
        String::new(),
    ]
    .iter()
    .enumerate()
    {
        let relay = relays[number].address.ip();
        let asked = format!(
            "{}:public@{relay}:{}{from}:0.5:3:1:2",
            number + 1,
            ports[number]
        );
        stage.say(&target(&format!("d0_{number}"), &asked));
    }
    // An address of another machine.
    let asked = format!("4:public@127.0.21.11:{}!192.0.2.1!:0.5:3:1:2", ports[0]);
    stage.say(&target("refused", &asked));
    stage.configure_no_device();
    let mut polling = stage.poll();
    for interface in 0..3 {
        stage.await_values(0, interface, 0, 2);
    }
    polling.assert_alive(&stage);
    assert_eq!(relays[0].take_senders(), [own]);
    let senders: Vec<IpAddr> = relays[1]
        .take_senders()
        .iter()
        .map(SocketAddr::ip)
        .collect();
    assert_eq!(senders, ["127.0.21.8".parse::<IpAddr>().expect("one")]);
    let [sender] = relays[2].take_senders()[..] else {
        panic!("several senders");
    };
    assert_ne!((sender.ip(), sender.port()), (own.ip(), own.port()));
    let (log, said) = (stage.log(), "cannot send from 192.0.2.1:0: ");
    assert_eq!(log.matches(said).count(), 1, "{log}");
}

/// The relay has an IPv6 address; without one on the machine nothing is tested.
#[test]
fn devices_are_asked_by_ipv6() {
    let mut stage = Stage::new(1, 4);
    let Ok(relay) = Relay::start("::1".parse().expect("an address"), agent(&stage)) else {
        return eprintln!("not tested: this machine has no ::1");
    };
    let port = relay.address.port();
    let own = free_port("::1");
    for (number, from) in [String::new(), format!("!!{own}")].iter().enumerate() {
        let asked = format!("{}:public@[::1]:{port}{from}:0.5:3:1:2", number + 1);
        stage.say(&target(&format!("d0_{number}"), &asked));
    }
    stage.say("EnableIPv6: yes\n");
    stage.configure_no_device();
    let mut polling = stage.poll();
    for interface in 0..2 {
        stage.await_values(0, interface, 0, 2);
    }
    polling.assert_alive(&stage);
    let senders = relay.take_senders();
    assert!(senders.iter().all(SocketAddr::is_ipv6), "{senders:?}");
    assert_eq!(senders.len(), 2, "{senders:?}");
    assert!(
        senders.iter().any(|sender| sender.port() == own),
        "{senders:?}"
    );
}

/// A host name resolves at first and not later: the last address is kept, also after the configuration is read again.
#[test]
fn a_name_that_is_not_found_any_more_keeps_its_address() {
    let mut stage = Stage::new(1, 4);
    let relay = relay("127.0.21.14", &stage);
    let port = relay.address.port();
    stage.say(&target(
        "d0_0",
        &format!("1:public@kept-name.invalid:{port}:0.5:3:1:2"),
    ));
    stage.configure_no_device();
    let hosts = stage.scratch.path("hosts");
    std::fs::write(&hosts, "127.0.21.14 kept-name.invalid\n").expect("a file");
    let Some(mut polling) = poll_with_hosts(&stage) else {
        return eprintln!("not tested: no mount namespace can be had");
    };
    stage.await_values(0, 0, 0, 2);
    std::fs::write(&hosts, "127.0.21.99 other-name.invalid\n").expect("a file");
    let lost = Command::new("nsenter")
        .args(["-m", "-t", &polling.pid().to_string()])
        .args(["getent", "hosts", "kept-name.invalid"])
        .status();
    assert!(!lost.expect("nsenter").success(), "the name is still found");
    // Each reading of the configuration resolves names again.
    for round in 1..=2 {
        kill("-HUP", polling.pid());
        let said = || (stage.log().matches("was read again").count() == round).then_some(());
        assert!(eventually(said).is_some(), "{}", stage.log());
    }
    stage.await_values(0, 0, now_ns(), 3);
    polling.assert_alive(&stage);
}

/// A poller with a file of the scratch folder in the place of /etc/hosts,
/// as root or in a user namespace; `None`: neither is possible here.
fn poll_with_hosts(stage: &Stage) -> Option<Polling> {
    let ways = [&["--mount"][..], &["--map-root-user", "--mount"]];
    let way = ways.into_iter().find(|way| {
        let tried = Command::new("unshare").args(*way).arg("true").status();
        tried.is_ok_and(|status| status.success())
    })?;
    // SIGHUP makes the poller read again only without a terminal and without nohup(1).
    let script =
        "mount --bind \"$1\" /etc/hosts && exec setsid env --default-signal=HUP \"$2\" poll \"$3\"";
    Some(
        stage.start(
            Command::new("unshare")
                .args(way)
                .args(["sh", "-c", script, "sh"])
                .arg(stage.scratch.path("hosts"))
                .arg(kymo())
                .arg(stage.configuration()),
        ),
    )
}
