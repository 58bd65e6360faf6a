//! A keeper stopped by a signal with requests in flight: requests that need no keeper are answered meanwhile, requests
//! about stored series end with the keeper's name, and the hub notices by itself when the keeper answers again.

use kymo_tests::Scratch;
use kymo_tests::machine::{StallingDisk, must_skip, skipped};
use kymo_tests::rrd_client::Client;
use kymo_tests::served::{Served, ask, eventually, get, kill};

/// Requests for the keeper's series.
const STORED: [&str; 3] = [
    "/kymo/v1/hosts",
    "/kymo/v1/programs",
    "/kymo/v1/series?fields=@web1/load/load.rrd:shortterm&from=-3600",
];
/// Requests about this machine. The ring begins after the start of the ranges, so their answers need history.
const OWN: [&str; 7] = [
    "/kymo/v1/processes",
    "/kymo/v1/series?fields=cpu.user,@web1/load/load.rrd:shortterm&from=-3600",
    "/kymo/v1/series?fields=cpu.user&from=-3600",
    "/kymo/v1/status",
    "/kymo/v1/fields",
    "/kymo/v1/events?from=-3600",
    "/metrics",
];

/// Continues a stopped process at drop, also when the test has failed.
struct Stopped(u32);

impl Drop for Stopped {
    fn drop(&mut self) {
        kill("-CONT", self.0);
    }
}

/// All requests shared two turns and one connection, so two requests to a keeper that hung blocked the whole page.
#[test]
fn a_stopped_keeper_takes_away_what_it_keeps_and_nothing_else() {
    let scratch = Scratch::new("keeper-stopped");
    let mut served = Served::configured(&scratch, &scratch.path("data"), "");
    let address = served.address();
    served.has_said("keeper: user");
    let answered = |path: &str| ask(&address, "GET", path, "", "").expect("an answer");
    let all = || OWN.iter().chain(&STORED);
    // Before the first sample there is no time before the recording, so no history.
    let is_ready = || {
        let is_recorded = !get(&address, "/kymo/v1/status", "")["recorded_from"].is_null();
        (is_recorded && all().all(|path| answered(path).0 == 200)).then_some(())
    };
    eventually(is_ready).expect("everything answers");
    let stopped = Stopped(served.child("keeper").expect("a keeper"));
    kill("-STOP", stopped.0);
    std::thread::scope(|scope| {
        let answered = &answered;
        let waiting: Vec<_> = (0..12)
            .map(|n| scope.spawn(move || answered(STORED[n % STORED.len()])))
            .collect();
        let own: Vec<_> = OWN
            .iter()
            .map(|path| (path, scope.spawn(move || answered(path))))
            .collect();
        for (path, answer) in own {
            let (status, body) = answer.join().expect("no panic");
            assert_eq!(status, 200, "{path}: {body}");
            if path.contains("3600") {
                assert!(
                    body.contains("\"problem\":\"") && body.contains("the keeper "),
                    "{path}: {body}"
                );
            }
        }
        // Requests that wait for a connection end as soon as one request had no answer, those for history after 2 s.
        // Requests in flight have to wait for their time limit.
        assert!(
            waiting.iter().any(|answer| !answer.is_finished()),
            "all questions to the keeper have ended before the others"
        );
        let refused: Vec<String> = waiting
            .into_iter()
            .map(|answer| {
                let (status, body) = answer.join().expect("no panic");
                assert_eq!(status, 503, "{body}");
                body
            })
            .collect();
        let late = "the keeper did not answer in 5 s";
        assert!(refused.iter().any(|body| body.contains(late)));
        for body in &refused {
            assert!(body.contains("the keeper "), "{body}");
            assert!(!body.contains("os error"), "{body}");
        }
    });
    // The hub no longer waits for the keeper.
    for path in STORED {
        let (status, body) = answered(path);
        assert_eq!(status, 503, "{path}: {body}");
        assert!(body.contains("the keeper has not answered for "), "{body}");
    }
    for path in OWN {
        assert_eq!(answered(path).0, 200, "{path}");
    }
    drop(stopped);
    let answers_again = || all().all(|path| answered(path).0 == 200).then_some(());
    eventually(answers_again).expect("the keeper answers again");
    assert!(get(&address, OWN[2], "").get("problem").is_none());
}

/// A disk that accepts no writes: the keeper waits in the kernel, with its lock held.
#[test]
fn a_disk_that_stalls_takes_away_what_is_on_it_and_nothing_else() {
    if must_skip(&["mkfs.ext4", "mount", "fsfreeze"]) {
        return;
    }
    let scratch = Scratch::new("disk-stalls");
    let Some(disk) = StallingDisk::mount(&scratch.path("disk")) else {
        return skipped("no file system can be mounted and frozen");
    };
    let data = scratch.path("data");
    let config = format!(
        "[store]\nfolder = \"{}/store\"\n",
        scratch.path("disk").display()
    );
    let mut served = Served::configured(&scratch, &data, &config);
    let address = served.address();
    served.has_said("keeper: user");
    let answered = |path: &str| ask(&address, "GET", path, "", "").expect("an answer");
    let all = || OWN.iter().chain(&STORED);
    let is_ready = || {
        let is_recorded = !get(&address, "/kymo/v1/status", "")["recorded_from"].is_null();
        (is_recorded && all().all(|path| answered(path).0 == 200)).then_some(())
    };
    eventually(is_ready).expect("everything answers");
    let socket = data.join("rrdcached.sock");
    let created = Client::unix(&socket)
        .expect("a client")
        .text("CREATE a.rrd DS:x:GAUGE:60:U:U RRA:LAST:0.5:1:9");
    assert!(created.starts_with('0'), "{created}");
    assert!(disk.freeze(), "a frozen file system");
    std::thread::scope(|scope| {
        // Sends values until the keeper waits for the disk with all its threads.
        scope.spawn(|| {
            let mut client = Client::unix(&socket).expect("a client");
            for second in 0..100_000 {
                let update = format!("UPDATE a.rrd {}:1\n", 2_000_000_000 + second);
                if client.ask(update.trim_end().as_bytes()).is_err() {
                    return;
                }
            }
        });
        let is_silent = || (answered(STORED[2]).0 == 503).then_some(());
        eventually(is_silent).expect("a keeper that waits for its disk");
        for path in OWN {
            let (status, body) = answered(path);
            assert_eq!(status, 200, "{path}: {body}");
        }
        assert!(disk.thaw(), "a file system that goes on");
        let answers_again = || all().all(|path| answered(path).0 == 200).then_some(());
        eventually(answers_again).expect("the keeper answers again");
    });
}
