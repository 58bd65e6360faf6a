//! `agentfarm`: the farm as a program, see `agentfarm --help`.

#![allow(clippy::print_stderr, reason = "a person reads it")]

use std::io::Write;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use kymo_agentfarm::{Farm, Order, Settings, USAGE, When};
use kymo_sys::machine::{Signal, Signals, usage};

const HEAD: &str = "\
usage: agentfarm [--first ADDRESS] [--port PORT] [--devices N] [--interfaces N]
                 [--community TEXT] [ORDER ...]
SNMP agents at loopback addresses that follow each other (127.0.1.1, port 1161, 32 of them with
3164 interfaces together, community public). SIGUSR1 and the end print counts and CPU.
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        say(&format!("{HEAD}{USAGE}"));
        return ExitCode::SUCCESS;
    }
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!("agentfarm: {cause}");
            ExitCode::from(2)
        }
    }
}

/// Prints a text. A closed pipe does not end the farm.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn run(words: &[String]) -> Result<(), String> {
    let (settings, mut orders) = understand(words)?;
    let signals = Signals::block();
    let port = settings.port;
    let farm =
        Farm::start(settings).map_err(|error| format!("cannot bind port {port}: {error}"))?;
    let started = Instant::now();
    carry_out(&farm, &mut orders, started.elapsed());
    let settings = farm.settings();
    say(&format!(
        "agentfarm: {} devices from {}:{} to {}, {} interfaces\n",
        settings.devices,
        settings.first,
        settings.port,
        farm.address(settings.devices.saturating_sub(1)),
        settings.interfaces
    ));
    loop {
        match signals.wait(until_next(&orders, started.elapsed())) {
            Some(Signal::Stop) => break,
            Some(Signal::Flush) => report(&farm),
            Some(Signal::Wake) => {
                for order in orders.iter().filter(|order| order.when == When::Signal) {
                    apply(&farm, order);
                }
            }
            _ => {}
        }
        carry_out(&farm, &mut orders, started.elapsed());
    }
    report(&farm);
    Ok(())
}

fn understand(words: &[String]) -> Result<(Settings, Vec<Order>), String> {
    let mut settings = Settings {
        first: Ipv4Addr::new(127, 0, 1, 1),
        port: 1161,
        devices: 32,
        interfaces: 3164,
        community: b"public".to_vec(),
    };
    let mut orders = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with("--") {
            orders.push(word.parse()?);
            continue;
        }
        let value = words
            .next()
            .ok_or_else(|| format!("{word} needs a value"))?;
        let cannot =
            |cause: &dyn std::fmt::Display| format!("cannot understand {word} {value}: {cause}");
        match word.as_str() {
            "--first" => settings.first = value.parse().map_err(|cause| cannot(&cause))?,
            "--port" => settings.port = value.parse().map_err(|cause| cannot(&cause))?,
            "--devices" => settings.devices = value.parse().map_err(|cause| cannot(&cause))?,
            "--interfaces" => {
                settings.interfaces = value.parse().map_err(|cause| cannot(&cause))?
            }
            "--community" => settings.community = value.clone().into_bytes(),
            _ => return Err(format!("unknown switch: {word}")),
        }
    }
    if !settings.first.is_loopback() || settings.devices == 0 {
        return Err("cannot run: one device at least, and addresses of 127.0.0.0/8".into());
    }
    Ok((settings, orders))
}

/// Carries out due orders and removes them.
fn carry_out(farm: &Farm, orders: &mut Vec<Order>, since_start: Duration) {
    orders.retain(|order| match order.when {
        When::After(seconds) if seconds <= since_start.as_secs_f64() => {
            apply(farm, order);
            false
        }
        _ => true,
    });
}

fn until_next(orders: &[Order], since_start: Duration) -> Duration {
    let next = orders.iter().filter_map(|order| match order.when {
        When::After(seconds) => Some(seconds - since_start.as_secs_f64()),
        When::Signal => None,
    });
    let seconds = next.fold(3600.0, f64::min);
    Duration::from_secs_f64(seconds.max(0.001))
}

fn apply(farm: &Farm, order: &Order) {
    for device in 0..farm.settings().devices {
        if order.devices.contains(&device) {
            farm.change(device, |behaviour, now_ns| {
                order.carry_out(behaviour, now_ns)
            });
        }
    }
}

fn report(farm: &Farm) {
    let cpu = usage();
    let cpu_us = cpu.user_us + cpu.system_us;
    say(&format!("{} cpu-us {cpu_us}\n", farm.counts()));
}
