//! Devices that are asked by SNMP instead of HTTP: a socket, and patience with packets that get lost. Requests
//! and the text of the scrape are of [`kymo_poll::devices`].

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use kymo_base::errno::strerror;
use kymo_poll::devices::{
    AnswerTaken, DeviceAccess, DeviceAsker, DeviceSetup, InterfaceFilter, Profile,
};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::machine;
use kymo_wire::mrtg_cfg::{KeySource, Secret as WireSecret, User};
use kymo_wire::snmp::usm::{AuthProtocol, PrivProtocol};
use serde::{Deserialize, Serialize};
use tokio::net::UdpSocket;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::connection::{Shared, resolve};
use super::relabel::RelabelRule;
use super::secret::Secret;

/// Port of SNMP.
pub const SNMP_PORT: u16 = 161;
/// Most samples of a device.
pub(crate) const DEVICE_SAMPLES_MAX: u64 = 100_000;
/// Patience with the first packet of a request; each further one has twice as much.
const PATIENCE: Duration = Duration::from_secs(1);
/// The largest datagram.
const PACKET_MAX: usize = 65_535;

/// A device, as the guardian hands it over: without a file to read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceJob {
    /// Name or address, with a port if it is not 161.
    pub address: String,
    /// Milliseconds from one poll to the next.
    pub interval_ms: u64,
    /// Milliseconds that a poll may take.
    pub timeout_ms: u64,
    /// Labels of all series, besides `job` and `instance`.
    pub labels: BTreeMap<String, String>,
    /// Rules that change labels of samples, or drop them.
    pub relabel: Vec<RelabelRule>,
    /// The way in.
    pub credentials: DeviceCredentials,
    /// The profiles.
    pub profiles: Vec<Profile>,
    /// The interfaces.
    pub interfaces: InterfaceFilter,
}

/// A way into a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceCredentials {
    /// SNMPv1.
    V1 {
        /// The community.
        community: Secret,
    },
    /// SNMPv2c.
    V2c {
        /// The community.
        community: Secret,
    },
    /// SNMPv3.
    V3 {
        /// Name of the user.
        user: String,
        /// Protocol and password of authentication.
        auth: Option<UserPassword>,
        /// Protocol and password of privacy.
        privacy: Option<UserPassword>,
        /// Name of the context; mostly empty.
        context: String,
    },
}

/// A protocol by its name, and a password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserPassword {
    /// Name of the protocol.
    pub protocol: String,
    /// The password.
    pub password: Secret,
}

impl DeviceCredentials {
    /// The error names the fault of the user.
    fn access(&self) -> Result<DeviceAccess, String> {
        let secret = |secret: &Secret| WireSecret::new(secret.text().as_bytes());
        Ok(match self {
            DeviceCredentials::V1 { community } => DeviceAccess::V1(secret(community)),
            DeviceCredentials::V2c { community } => DeviceAccess::V2c(secret(community)),
            DeviceCredentials::V3 {
                user,
                auth,
                privacy,
                context,
            } => DeviceAccess::V3(User {
                name: user.as_bytes().into(),
                auth: match auth {
                    None => None,
                    Some(auth) => {
                        let known = AuthProtocol::of_name(auth.protocol.as_bytes());
                        let names = AuthProtocol::NAMES;
                        Some((known.ok_or(format!("auth is none of {names}"))?, key(auth)?))
                    }
                },
                privacy: match privacy {
                    None => None,
                    Some(privacy) => {
                        let known = PrivProtocol::of_name(privacy.protocol.as_bytes());
                        let names = PrivProtocol::NAMES;
                        Some((
                            known.ok_or(format!("privacy is none of {names}"))?,
                            key(privacy)?,
                        ))
                    }
                },
                context_name: context.as_bytes().into(),
                context_engine: None,
            }),
        })
    }
}

fn key(of: &UserPassword) -> Result<KeySource, String> {
    match of.password.text().as_bytes() {
        b"" => Err("a password is empty".into()),
        password => Ok(KeySource::Password(WireSecret::new(password))),
    }
}

impl DeviceJob {
    /// The label `instance`: the address, without the port that all devices have.
    pub(crate) fn instance(&self) -> String {
        match device_address(&self.address) {
            Ok((host, SNMP_PORT)) => host,
            Ok(_) | Err(_) => self.address.clone(),
        }
    }
}

/// Host and port of `HOST`, `HOST:PORT`, `ADDRESS` or `[ADDRESS]:PORT`.
pub fn device_address(text: &str) -> Result<(String, u16), String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok((address.to_string(), SNMP_PORT));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok((address.ip().to_string(), address.port()));
    }
    let (host, port) = match text.rsplit_once(':') {
        None => (text, Some(SNMP_PORT)),
        Some((host, port)) => (host, port.parse().ok().filter(|port| *port > 0)),
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_name = (1..=253).contains(&host.len()) && host.bytes().all(is_plain);
    match port.filter(|_| is_name) {
        Some(port) => Ok((host.into(), port)),
        None => Err(format!("{text:?} is neither HOST nor HOST:PORT")),
    }
}

/// A device and its client.
pub struct DeviceClient {
    asker: DeviceAsker,
    host: String,
    port: u16,
    shared: Shared,
    timeout: Duration,
}

impl DeviceClient {
    /// The error names the fault of the configuration.
    pub fn new(job: &DeviceJob, shared: Shared) -> Result<DeviceClient, String> {
        let (host, port) = device_address(&job.address)?;
        let asker = DeviceAsker::new(&DeviceSetup {
            access: job.credentials.access()?,
            profiles: job.profiles.clone(),
            interfaces: job.interfaces.clone(),
            random,
        })?;
        Ok(DeviceClient {
            asker,
            host,
            port,
            shared,
            timeout: Duration::from_millis(job.timeout_ms),
        })
    }

    /// The last poll.
    pub fn asker(&self) -> &DeviceAsker {
        &self.asker
    }

    /// The device, for messages.
    pub(crate) fn url(&self) -> String {
        match self.host.contains(':') {
            true => format!("snmp://[{}]:{}", self.host, self.port),
            false => format!("snmp://{}:{}", self.host, self.port),
        }
    }

    /// Polls once; the text of a scrape.
    pub async fn poll(&mut self) -> Result<Vec<u8>, String> {
        self.asker.begin();
        let within = self.timeout;
        match timeout(within, self.ask()).await {
            Ok(asked) => asked,
            Err(_) => Err(self.asker.silence(within.as_secs_f64())),
        }
    }

    async fn ask(&mut self) -> Result<Vec<u8>, String> {
        let addresses = resolve(&self.host, self.port, &self.shared).await?;
        let cannot = |error: io::Error| match error.kind() {
            io::ErrorKind::ConnectionRefused => "no agent of SNMP has its port".to_string(),
            _ => format!("cannot ask it: {}", strerror(&error)),
        };
        let socket = open(&addresses).await.map_err(cannot)?;
        let mut buffer = vec![0; PACKET_MAX];
        let mut patience = PATIENCE;
        while let Some(packet) = self.asker.packet(RealClock.now()) {
            socket.send(packet).await.map_err(cannot)?;
            let answer = answer(&mut self.asker, &socket, &mut buffer);
            patience = match timeout(patience, answer).await {
                Ok(taken) => {
                    taken.map_err(cannot)?;
                    PATIENCE
                }
                Err(_) => patience.saturating_mul(2),
            };
        }
        Ok(self.asker.finish())
    }
}

/// A socket that hears the device alone.
async fn open(addresses: &[SocketAddr]) -> io::Result<UdpSocket> {
    let Some(address) = addresses.first() else {
        return Err(io::ErrorKind::AddrNotAvailable.into());
    };
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(address).await?;
    Ok(socket)
}

/// Waits for the answer; packets that are none are passed over.
async fn answer(asker: &mut DeviceAsker, socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<()> {
    loop {
        let size = socket.recv(buffer).await?;
        let packet = buffer.get(..size).unwrap_or_default();
        if asker.take(packet, RealClock.now()) == AnswerTaken::Next {
            return Ok(());
        }
    }
}

/// Bytes for ids that cannot be guessed.
fn random(bytes: &mut [u8]) {
    if machine::random(bytes).is_err() {
        unreachable!("BUG: a kernel without random numbers");
    }
}

/// A device that was asked once.
pub struct DeviceAsked {
    /// Number of its job.
    pub number: usize,
    /// The client, with the last poll.
    pub client: DeviceClient,
    /// The text of a scrape, or why there is none.
    pub text: Result<Vec<u8>, String>,
}

/// Asks devices once, some of them at a time, and gives each to `each` when it is done.
pub fn ask_devices(
    jobs: &[DeviceJob],
    at_once: usize,
    mut each: impl FnMut(DeviceAsked),
) -> Result<(), String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot ask devices: {}", strerror(&error)))?;
    let shared = Shared::default();
    let clients = jobs.iter().map(|job| {
        let client = DeviceClient::new(job, shared.clone());
        client.map_err(|why| format!("cannot ask {}: {why}", job.address))
    });
    let clients: Vec<DeviceClient> = clients.collect::<Result<_, _>>()?;
    let mut waiting: VecDeque<(usize, DeviceClient)> = clients.into_iter().enumerate().collect();
    runtime.block_on(async {
        let mut asked = JoinSet::new();
        loop {
            while asked.len() < at_once.max(1)
                && let Some((number, mut client)) = waiting.pop_front()
            {
                asked.spawn(async move {
                    let text = client.poll().await;
                    DeviceAsked {
                        number,
                        client,
                        text,
                    }
                });
            }
            match asked.join_next().await {
                None => return,
                Some(Ok(done)) => each(done),
                Some(Err(_)) => {}
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port() {
        for (text, host, port) in [
            ("192.0.2.1", "192.0.2.1", 161),
            ("192.0.2.1:1161", "192.0.2.1", 1161),
            ("2001:db8::1", "2001:db8::1", 161),
            ("[2001:db8::1]:1161", "2001:db8::1", 1161),
            ("core-1.example", "core-1.example", 161),
            ("core-1:7", "core-1", 7),
        ] {
            assert_eq!(device_address(text), Ok((host.into(), port)), "{text}");
        }
        for text in ["", "a b", "a:0", "a:x", "[::1]", "public@a", "a/b", ":161"] {
            assert!(device_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn users_have_known_protocols_and_passwords() {
        let user = |protocol: &str, password: &str| DeviceCredentials::V3 {
            user: "u".into(),
            auth: Some(UserPassword {
                protocol: protocol.into(),
                password: Secret::of_file(password),
            }),
            privacy: None,
            context: String::new(),
        };
        assert!(user("sha256", "long enough").access().is_ok());
        assert!(user("sha3", "long enough").access().is_err());
        assert!(user("sha256", "\n").access().is_err());
    }
}
