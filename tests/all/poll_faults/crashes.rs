//! The poller is killed, and starts again.

use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use kymo_agentfarm::traffic::{Direction, rate};
use kymo_tests::kymo;
use kymo_tests::rrd_client::Client;
use kymo_tests::served::Served;

use super::bench::{CYCLE_S, Counters, Polling, Stage, now_ns};

/// From the last reply of a cycle to the kill. Values wait for others for a tenth of the cycle before they are kept.
const DELAYS_MS: [u64; 10] = [0, 50, 100, 150, 180, 200, 220, 250, 400, 700];
/// The cycle is over if no reply came for this long.
const QUIET: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(60);
/// A point that has a value twice, or one of another poll, is off by half at least.
const POINT_OFF: f64 = 0.9;
/// Bound for the mean of all points, on a busy machine.
const MEAN_OFF: f64 = 0.1;

/// After kill -9 in the middle of cycles, files are whole and their values are true.
#[test]
fn what_was_killed_goes_on_where_it_was() {
    let mut stage = Stage::new(2, 40);
    stage.configure(Counters::Named);
    for _ in 0..4 {
        let mut polling = stage.poll();
        stage.await_values(1, 19, now_ns(), 1);
        polling.assert_alive(&stage);
        polling.child().kill().expect("a process");
        polling.child().wait().expect("an end");
    }
    let begun_ns = now_ns();
    let mut polling = stage.poll();
    for device in 0..2 {
        for interface in [0, 7, 19] {
            stage.await_values(device, interface, begun_ns, 1);
        }
    }
    polling.assert_alive(&stage);
}

/// Whenever kill -9 falls between the answers and the files, a value is
/// kept or lost: no point has one twice, in part, or of another poll.
#[test]
fn a_kill_between_poll_and_files_leaves_no_wrong_point() {
    let mut stage = Stage::new(2, 40);
    stage.configure(Counters::Named);
    let file = |device, interface| {
        let name = format!("rrd/d{device}_{interface}.rrd");
        stage.scratch.path(&name)
    };
    kill_and_judge(&stage, &|| stage.poll(), &file);
}

/// The kill falls between the answers and the keeper of `kymo serve`, which stores the values.
#[test]
fn a_kill_between_poll_and_keeper_leaves_no_wrong_point() {
    let mut stage = Stage::new(2, 40);
    stage.configure(Counters::Named);
    let (config, data) = (stage.scratch.text("kymo.toml"), stage.scratch.path("data"));
    std::fs::write(&config, "user = \"\"\n[listen]\ncollectd = []\n").expect("a file");
    let folder = data.to_string_lossy();
    let words = [
        "--config",
        &config,
        "--data",
        &folder,
        "--listen",
        "127.0.0.1:0",
    ];
    let mut served = Served::start(&words);
    served.address();
    served.has_said("rrdcached's protocol on");
    let start = || {
        let mut command = Command::new(kymo());
        command.arg("poll").arg(stage.configuration());
        command.args(["--files", "ask", "--keeper"]);
        stage.start(command.arg(data.join("keeper-write.sock")))
    };
    let file = |device, interface| {
        let name = format!("mrtg/mrtg/d{device}_{interface}.rrd");
        let mut client = Client::unix(&data.join("rrdcached.sock")).expect("a client");
        client.text(&format!("FLUSH {name}"));
        data.join("rrd").join(name)
    };
    kill_and_judge(&stage, &start, &file);
}

/// Kills a poller repeatedly, at different times after the answers, and then checks all points.
fn kill_and_judge(stage: &Stage, start: &dyn Fn() -> Polling, file: &dyn Fn(u32, u32) -> PathBuf) {
    kill_after(stage, start(), CYCLE_S * 1000);
    let delays_ms = [DELAYS_MS; 2].concat();
    let was_kept: Vec<bool> = delays_ms
        .into_iter()
        .map(|delay_ms| {
            let begun_ns = kill_after(stage, start(), delay_ms);
            let newest = stage.newest_of(&file(1, 19));
            newest.is_some_and(|sample| sample.stamp_ns > begun_ns)
        })
        .collect();
    let both = [true, false].map(|kept| was_kept.contains(&kept));
    assert_eq!(
        both,
        [true; 2],
        "kills were all of one kind: {was_kept:?}\n{}",
        stage.log()
    );
    let mut polling = start();
    sleep(Duration::from_secs(5 * CYCLE_S));
    polling.assert_alive(stage);
    for (device, interface) in [(0, 0), (0, 13), (1, 0), (1, 19)] {
        let points = stage.points_of(&file(device, interface));
        // The first known point begins with unknown time.
        let known: Vec<[f64; 2]> = points
            .iter()
            .copied()
            .filter(|point| !point[0].is_nan())
            .skip(1)
            .collect();
        assert!(known.len() >= 6, "{points:?}\n{}", stage.log());
        for (way, direction) in [Direction::In, Direction::Out].into_iter().enumerate() {
            let exact = rate(device, interface, direction) as f64;
            let parts: Vec<f64> = known.iter().map(|point| point[way] / exact).collect();
            let mean = parts.iter().sum::<f64>() / parts.len() as f64;
            let is_near = |part: &f64| (part - 1.0).abs() < POINT_OFF;
            assert!(
                parts.iter().all(is_near),
                "d{device}_{interface}: {parts:?} of {exact}"
            );
            assert!(
                (mean - 1.0).abs() < MEAN_OFF,
                "d{device}_{interface}: {parts:?} of {exact}"
            );
        }
    }
}

/// Kills the poller `delay_ms` after the agents' last answer in its first cycle; returns the time of the start.
fn kill_after(stage: &Stage, mut polling: Polling, delay_ms: u64) -> u64 {
    let begun_ns = now_ns();
    stage.farm.forget_counts();
    let until = Instant::now() + PATIENCE;
    let (mut answered, mut since) = (0, Instant::now());
    while answered == 0 || since.elapsed() < QUIET {
        assert!(Instant::now() < until, "nothing was asked\n{}", stage.log());
        let replies = stage.farm.counts().replies;
        if replies != answered {
            (answered, since) = (replies, Instant::now());
        }
        sleep(Duration::from_millis(1));
    }
    sleep(Duration::from_millis(delay_ms));
    polling.child().kill().expect("a process");
    polling.child().wait().expect("an end");
    begun_ns
}
