//! What a sample costs without a writer: `sample_cost N [z]`.
use kymo_kernel::{
    sampler::{Due, Plan, Sampler},
    source::kind,
    tasks::TaskPlan,
};
use kymo_sys::{
    clock::{Clock, RealClock},
    kernel_file::Root,
    machine,
};
use std::sync::Arc;

#[allow(clippy::print_stdout, clippy::unwrap_used)]
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let n: u64 = args[1].parse().unwrap();
    let z = args.get(2).is_some_and(|a| a == "z");
    let root = Arc::new(Root::open("/".as_ref()).unwrap());
    let kinds = if z {
        vec![]
    } else {
        vec![
            kind::STAT,
            kind::LOADAVG,
            kind::DISKSTATS,
            kind::NET_DEV,
            kind::MEMINFO,
            kind::VMSTAT,
        ]
    };
    let tasks = z.then(|| TaskPlan {
        threads: false,
        io: true,
        ..TaskPlan::default()
    });
    let plan = Plan {
        kinds,
        tasks,
        slow_ns: 10_000_000,
        interval_ns: 0,
        backoff: false,
    };
    let mut sampler = Sampler::new(root, plan, machine::raise_open_files() - 256);
    let (mut bytes, mut costs) = (0, [0u64; 64]);
    let start = RealClock.mono_ns();
    for i in 0..n {
        sampler.sample(&RealClock, i % 60 == 0, Due::Now, |kind, cost, section| {
            bytes += section.len();
            costs[kind as usize] += kymo_base::cost::decode(cost);
        });
    }
    let wall = RealClock.mono_ns() - start;
    let usage = machine::usage();
    println!(
        "{n} samples, {} us wall each, {:?}, {} bytes each; sizes {:?}",
        wall as f64 / 1e3 / n as f64,
        usage,
        bytes as u64 / n,
        sampler.sizes()
    );
    for (kind, cost) in costs.iter().enumerate().filter(|(_, c)| **c > 0) {
        println!("kind {kind}: {} ns", cost / n);
    }
}
