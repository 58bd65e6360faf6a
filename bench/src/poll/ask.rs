//! `kymo-bench ask`: the SNMP floor. Requests ifHCInOctets and ifHCOutOctets of all interfaces of a farm, 48 in each
//! request, with as many requests in flight as one system call sends, and only reads the answers.

use crate::args::Args;
use crate::bench::Bench;
use crate::child::Running;
use crate::fault::{Cannot, Fault, Result};
use kymo_sys::datagrams::{Datagrams, Outbox, bind_udp};
use kymo_wire::snmp::{Ask, IdWidth, Message, Oid, RequestMessage, Version};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use super::site::Site;

/// Varbinds of a request.
const VARBINDS: usize = 48;
/// Requests in flight.
const BATCH: usize = 64;
/// Measured rounds: a clock is too coarse for one.
const ROUNDS: u32 = 200;

/// Runs the floor as a child; returns CPU seconds of a round.
pub(super) fn floor(bench: &Bench, site: &Site) -> Result<f64> {
    let settings = site.farm.settings();
    let rounds = bench.pick(ROUNDS, 20);
    let mut command = Command::new(&bench.own);
    command.args(["ask", "--first", &settings.first.to_string()]);
    command.args(["--port", &settings.port.to_string()]);
    command.args(["--devices", &settings.devices.to_string()]);
    command.args(["--interfaces", &settings.interfaces.to_string()]);
    command.args(["--rounds", &rounds.to_string()]);
    let usage = Running::start(bench, &mut command)?.finish(Duration::from_secs(300))?;
    Ok(usage.cpu.as_secs_f64() / f64::from(rounds))
}

/// The child's work.
pub(crate) fn run(mut args: Args) -> Result<()> {
    let needs = |name: &str| Fault::new(format!("ask needs {name}"));
    let first: Ipv4Addr = args.value("--first")?.ok_or_else(|| needs("--first"))?;
    let port: u16 = args.value("--port")?.ok_or_else(|| needs("--port"))?;
    let devices: u32 = args.value("--devices")?.ok_or_else(|| needs("--devices"))?;
    let interfaces: u32 = args
        .value("--interfaces")?
        .ok_or_else(|| needs("--interfaces"))?;
    let rounds: u32 = args.value("--rounds")?.unwrap_or(1);
    let varbinds: usize = args.value("--varbinds")?.unwrap_or(VARBINDS);
    args.done()?;
    let mut requests = requests(first, port, (devices, interfaces), varbinds)?;
    let socket = bind_udp(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), 8 << 20)
        .cannot("bind")?
        .socket;
    let (mut datagrams, mut outbox) = (Datagrams::new(BATCH), Outbox::default());
    let (mut id, mut sum) = (1, 0i128);
    for _ in 0..rounds {
        for batch in requests.chunks_mut(BATCH) {
            for (address, request) in batch.iter_mut() {
                id += 1;
                request.set_id(id);
                outbox.push(*address, |out| out.extend_from_slice(request.bytes()));
            }
            outbox.send(&socket);
            let mut missing = batch.len();
            while missing > 0 {
                let mut files = [PollFd::new(&socket, PollFlags::IN)];
                let limit = Timespec {
                    tv_sec: 5,
                    tv_nsec: 0,
                };
                if poll(&mut files, Some(&limit)).cannot("wait for replies")? == 0 {
                    return Err(Fault::new(format!("{missing} replies did not come")));
                }
                missing -= datagrams.receive(&socket).cannot("receive")?.min(missing);
                for datagram in datagrams.iter_mut() {
                    sum += read(datagram.bytes)?;
                }
            }
        }
    }
    match sum {
        0 => Err(Fault::new("nothing was counted")),
        _ => Ok(()),
    }
}

fn read(packet: &[u8]) -> Result<i128> {
    let message = Message::decode_response(packet).cannot("read a reply")?;
    let numbers = message.varbinds.map(|varbind| varbind.ok()?.1.number());
    numbers
        .sum::<Option<i128>>()
        .ok_or_else(|| Fault::new("a reply without a number"))
}

fn requests(
    first: Ipv4Addr,
    port: u16,
    (devices, interfaces): (u32, u32),
    varbinds: usize,
) -> Result<Vec<(SocketAddr, RequestMessage)>> {
    let table = Oid::parse("1.3.6.1.2.1.31.1.1.1").ok_or_else(|| Fault::new("no OID"))?;
    let mut all = Vec::new();
    for device in 0..devices {
        let address = Ipv4Addr::from(u32::from(first) + device);
        let count = interfaces / devices + u32::from(device < interfaces % devices);
        let names: Vec<Oid> = (1..=count)
            .flat_map(|row| [table.with(&[6, row]), table.with(&[10, row])])
            .collect();
        for names in names.chunks(varbinds.max(1)) {
            let request =
                RequestMessage::new(Ask::Get, Version::V2c, b"public", names, IdWidth::Bits31);
            all.push((SocketAddr::from((address, port)), request));
        }
    }
    Ok(all)
}
