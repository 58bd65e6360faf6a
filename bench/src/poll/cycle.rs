//! A cycle of a daemon that stores values: MRTG writes its files, kymo sends them to its keeper.

use super::poller::{Daemon, Who};
use super::site::{Globals, Site, Spoken};
use super::{DEVICES, DEVICES_QUICK, INTERVAL_S, TARGETS, TARGETS_QUICK, ask};
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::{ratio, significant};
use crate::report::Outcome;
use crate::row::Row;

pub(super) const ROW: Row = Row {
    name: "poll-cycle",
    work: "CPU of a cycle of a daemon, 3,164 targets of 32 devices, values stored; kymo: .rrd on demand, poller and what it adds to the keeper together, once requests have grown (ten cycles), in a burst and spread, and in a burst with SNMPv3, SHA-256 and AES-128",
    bar: "≤ 10 ms in a burst, ≤ 40 ms spread, ≤ 3 times the burst's with SNMPv3",
    aim: "6, 20",
    run,
};

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let (devices, targets) = (
        bench.pick(DEVICES, DEVICES_QUICK),
        bench.pick(TARGETS, TARGETS_QUICK),
    );
    let site = Site::new(bench, devices, targets)?;
    let cycles = bench.steps(12, 2);
    let (mut of_mrtg, mut of_burst) = (None, None);
    for (who, spoken, bar, aim) in [
        (Who::Mrtg, Spoken::V2c, None, 0.0),
        (Who::KymoStored, Spoken::V2c, Some(10.0), 6.0),
        (Who::KymoSpread, Spoken::V2c, Some(40.0), 20.0),
        (Who::KymoStored, Spoken::V3, None, 0.0),
    ] {
        if !who.is_here(bench) {
            continue;
        }
        let globals = Globals {
            interval_s: INTERVAL_S,
            is_daemon: true,
        };
        let configuration = site.configure_version(bench, globals, spoken)?;
        site.farm.forget_counts();
        let daemon = Daemon::start(bench, who, &configuration)?;
        daemon.settle_grown(bench, who, &site, INTERVAL_S)?;
        site.farm.forget_counts();
        let spent = daemon.cycle(INTERVAL_S, cycles)?;
        let counts = site.farm.counts();
        daemon.end()?;
        let ms = spent.added() * 1e3;
        let version = if spoken == Spoken::V3 {
            " with SNMPv3"
        } else {
            ""
        };
        let mut figure = format!("{}{version}: {} ms", who.name(), significant(ms));
        if spent.keeper > 0.0 {
            figure += &format!(
                " ({} of it the keeper, which uses {} more when nobody polls)",
                significant((spent.keeper - spent.keeper_alone).max(0.0) * 1e3),
                significant(spent.keeper_alone * 1e3)
            );
        }
        figure += &format!(", {} requests", counts.requests / cycles);
        match (who, of_mrtg) {
            (Who::Mrtg, _) => of_mrtg = Some(ms),
            (_, Some(of_mrtg)) => figure += &format!(", {}", ratio(ms, of_mrtg)),
            _ => {}
        }
        outcome.figure(figure);
        match (who, spoken, of_burst) {
            (Who::KymoStored, Spoken::V2c, _) => of_burst = Some(ms),
            (Who::KymoStored, Spoken::V3, Some(of_burst)) => {
                outcome.check(Some(ms / of_burst), 3.0, 1.5);
            }
            _ => {}
        }
        if let Some(bar) = bar {
            outcome.check(Some(ms), bar, aim);
        }
    }
    let floor = ask::floor(bench, &site)? * 1e3;
    outcome.figure(format!(
        "bare SNMP, 48 varbinds a request: {} ms",
        significant(floor)
    ));
    Ok(outcome)
}
