//! Import of files with all their rows: no row is lost when the files go, even after a run that was cut short.

use crate::common::{Bench, START, base, folder, oracle};
use kymo_rrd::Rrd;
use kymo_rrd::create::{Create, create};
use kymo_store::status::status;
use kymo_store::verify::verify;
use kymo_store::{Files, Settings, WholeFile};
use kymo_sys::disk::Disk;
use std::sync::Arc;
use std::time::Duration;

/// Files with rows; files of one type differ only in their names.
fn bench(count: usize) -> Bench {
    let mut bench = Bench::new(3, 0);
    for i in 0..count {
        let mut bytes = crate::common::rrd([&b"GAUGE"[..], b"COUNTER"][i % 2]).to_bytes();
        let values: Vec<String> = (1..30)
            .map(|n| format!("{}:{}", START + 10 * n, n * n))
            .collect();
        let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        bytes = oracle(&bytes, &values);
        let name = format!("f{i}.rrd");
        bench.disk.set_bytes(&base().join(&name), bytes.clone());
        bench.files.push((name, bytes));
    }
    bench.settings = Settings {
        files: Files::After(Duration::from_secs(1 << 30)),
        ..Settings::new(folder(), base())
    };
    bench
}

/// Imports those files that the store lacks; returns how many.
fn import(bench: &Bench, names: &[String]) -> usize {
    let store = bench.store();
    let read = names
        .iter()
        .filter_map(|name| store.read_whole(name.as_bytes()).unwrap());
    let files: Vec<WholeFile> = read.collect();
    for error in store.import(&files) {
        assert!(error.is_none(), "{error:?}");
    }
    files.len()
}

fn names(bench: &Bench) -> Vec<String> {
    bench.files.iter().map(|(name, _)| name.clone()).collect()
}

fn judge(bench: &Bench, names: &[String], story: &str) {
    for (name, bytes) in bench.files.iter().filter(|(name, _)| names.contains(name)) {
        let exported = bench.store().export(name.as_bytes()).unwrap();
        assert_eq!(exported.damaged, 0);
        assert!(exported.bytes == *bytes, "{story}: {name}");
    }
}

#[test]
fn files_are_in_the_store_and_may_go() {
    let mut bench = bench(45);
    bench.open();
    let all = names(&bench);
    // Batches that end within a stripe, and whole stripes whose blocks have the same bytes.
    for some in [&all[..5], &all[5..33], &all[33..]] {
        assert_eq!(import(&bench, some), some.len());
    }
    assert_eq!(import(&bench, &all), 0);
    bench.store().finish_import().unwrap();
    bench.reopen();
    assert_eq!(import(&bench, &all), 0);
    for name in &all {
        bench.disk.unlink(&base().join(name)).unwrap();
    }
    judge(&bench, &all, "imported");
    let summary = verify(Arc::new(bench.disk.clone()), &folder(), &mut |_| {}).unwrap();
    assert_eq!(summary.damaged, 0);
    let wanted: Vec<&[u8]> = all.iter().map(|name| name.as_bytes()).collect();
    let errors = bench.store().export_in_place(&wanted);
    assert!(errors.iter().all(Option::is_none), "{errors:?}");
    for (name, bytes) in &bench.files {
        assert!(bench.bytes(name) == *bytes, "{name}");
    }
}

#[test]
fn files_whose_values_the_store_has_already() {
    let mut bench = bench(4);
    bench.settings.chunk_values = 3;
    bench.open();
    let all = names(&bench);
    for number in 30..60 {
        for name in &all[1..] {
            let text = format!("{}:{}", START + 10 * number, number * number);
            bench.update(name, &[&text]).unwrap();
        }
        if number < 50 {
            bench.store().maintain();
        }
        if number == 40 {
            bench.flush(&all[1]).unwrap();
        }
    }
    bench.reopen();
    assert_eq!(import(&bench, &all), 4);
    assert_eq!(import(&bench, &all), 0);
    bench.store().finish_import().unwrap();
    bench.reopen();
    for (name, bytes) in &mut bench.files {
        let acked = bench.acked.iter().filter(|acked| acked.name == *name);
        let values: Vec<&[u8]> = acked.map(|acked| &acked.text[..]).collect();
        *bytes = oracle(bytes, &values);
        bench.disk.unlink(&base().join(&*name)).unwrap();
    }
    judge(&bench, &all, "known before");
}

/// Stripes with the same rows have the same frames: one block once counted as a copy of the other.
#[test]
fn series_with_the_same_rows_keep_their_own() {
    let mut bench = bench(64);
    bench.open();
    let all = names(&bench);
    let (of_one_kind, others): (Vec<_>, Vec<_>) = all
        .iter()
        .cloned()
        .enumerate()
        .partition(|(at, _)| at % 2 == 0);
    let sorted = of_one_kind.into_iter().chain(others).map(|(_, name)| name);
    let sorted: Vec<String> = sorted.collect();
    for stripe in sorted.chunks(16) {
        import(&bench, stripe);
    }
    bench.store().finish_import().unwrap();
    bench.reopen();
    for name in &all {
        bench.disk.unlink(&base().join(name)).unwrap();
    }
    judge(&bench, &all, "the same");
}

#[test]
fn a_run_that_was_cut_short_is_taken_up_again() {
    for step in 0..60 {
        let mut bench = bench(12);
        bench.open();
        let all = names(&bench);
        import(&bench, &all[..4]);
        let next = bench.disk.counts().operations + 1 + step;
        let faults = kymo_sys::sim_disk::Faults {
            power_off_at: Some(next),
            ..Default::default()
        };
        bench.disk.set_faults(faults);
        let read = all
            .iter()
            .filter_map(|name| bench.store().read_whole(name.as_bytes()).ok()?);
        let files: Vec<WholeFile> = read.collect();
        bench.store().import(&files);
        let _cut = bench.store().finish_import();
        bench.store = None;
        match step % 3 {
            0 => bench.disk.kill(),
            _ => bench.disk.crash_by_chance(step),
        }
        bench.disk.set_faults(Default::default());
        for (name, bytes) in &bench.files {
            assert!(
                bench.bytes(name) == *bytes,
                "step {step}: {name} was touched"
            );
        }
        bench.open();
        let known = bench.store().paths().into_iter();
        let known: Vec<String> = known
            .map(|path| String::from_utf8(path[base().as_os_str().len() + 1..].to_vec()).unwrap())
            .collect();
        judge(&bench, &known, &format!("step {step}, reopened"));
        import(&bench, &all);
        bench.store().finish_import().unwrap();
        for name in &all {
            bench.disk.unlink(&base().join(name)).unwrap();
        }
        judge(&bench, &all, &format!("step {step}"));
        bench.reopen();
        judge(&bench, &all, &format!("step {step}, reopened at last"));
    }
}

#[test]
fn archives_longer_than_a_frame_take_several_blocks() {
    let mut bench = bench(0);
    let definitions: [&[u8]; 3] = [
        b"DS:x:GAUGE:60:U:U",
        b"RRA:AVERAGE:0.5:1:5000000",
        b"RRA:MAX:0.5:1:10",
    ];
    let request = Create {
        file_name: b"long.rrd",
        step: 10,
        start: Some(START),
        definitions: &definitions,
    };
    let mut rrd: Rrd = create(&request, START, &mut { 5 }, None, &[]).unwrap();
    for (number, cell) in rrd.cells.iter_mut().enumerate() {
        *cell = number as f64;
    }
    let (name, bytes) = ("long.rrd".to_string(), rrd.to_bytes());
    bench.disk.set_bytes(&base().join(&name), bytes.clone());
    bench.files.push((name.clone(), bytes));
    bench.open();
    assert_eq!(import(&bench, std::slice::from_ref(&name)), 1);
    bench.store().finish_import().unwrap();
    bench.reopen();
    bench.disk.unlink(&base().join(&name)).unwrap();
    judge(&bench, &[name], "long");
}

/// Rows of a CREATE lie in blocks before any block has the state of their series.
#[test]
fn rows_that_came_with_a_create_outlive_merges_before_their_series_is_saved() {
    let mut bench = bench(6);
    bench.settings = Settings {
        files: Files::Never,
        segment_bytes: 6000,
        ..crate::common::settings()
    };
    bench.open();
    let rrd = |bytes: &[u8]| Rrd::parse(bytes).unwrap();
    let busy = bench.files.pop().unwrap();
    let store = bench.store();
    let blank = crate::common::rrd(b"COUNTER");
    store.install(busy.0.as_bytes(), &blank, false).unwrap();
    let segments = |bench: &Bench| {
        let files = bench.disk.files().into_iter().map(|(path, _)| path);
        let segments = files.filter(|path| path.to_string_lossy().contains("segment-"));
        segments.collect::<Vec<_>>()
    };
    let mut then = Vec::new();
    for number in 1..900 {
        if let Some(at) = [100, 120, 140].iter().position(|&at| at == number) {
            let (name, bytes) = &bench.files[2 * at];
            let store = bench.store();
            store.install(name.as_bytes(), &rrd(bytes), false).unwrap();
            then.extend(segments(&bench).pop());
        }
        let text = format!("{}:{number}", START + 600 * number);
        bench.update(&busy.0, &[&text]).unwrap();
        bench.store().maintain();
    }
    let now = segments(&bench);
    assert!(
        then.iter().all(|path| !now.contains(path)),
        "nothing was merged"
    );
    let status = status(Arc::new(bench.disk.clone()), &*bench.clock, &folder());
    assert_eq!(status.unwrap().unsaved.series, 3);
    let gauges = ["f0.rrd", "f2.rrd", "f4.rrd"].map(String::from);
    judge(&bench, &gauges, "merged");
    bench.reopen();
    judge(&bench, &gauges, "opened again");
}
