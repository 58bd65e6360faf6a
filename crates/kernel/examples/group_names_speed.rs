//! CPU time to find the name of a control group: a folder of docker's containers with files of a usual size, each read
//! once. CPU time, as other programs of the machine may run.
//!
//!     cargo run --release -p kymo-kernel --example group_names_speed -- FOLDER

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;

use kymo_kernel::containers::Containers;
use kymo_sys::kernel_file::Root;

const GROUPS: u32 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("FOLDER is missing")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder.join("proc"))?;
    let environment: Vec<String> = (0..60)
        .map(|n| format!("\"VARIABLE_{n}=some value of it\""))
        .collect();
    let mut paths = Vec::new();
    for n in 0..GROUPS {
        let id = format!("{n:064x}");
        let container = folder.join(format!("var/lib/docker/containers/{id}"));
        std::fs::create_dir_all(&container)?;
        let text = format!(
            r#"{{"State":{{"Running":true}},"ID":"{id}","Config":{{"Env":[{}],"Image":"nginx:1.25","Labels":{{"a":"b"}}}},"Name":"/web{n}"}}"#,
            environment.join(",")
        );
        std::fs::write(container.join("config.v2.json"), text)?;
        paths.push(format!("/system.slice/docker-{id}.scope"));
    }
    let root = Root::open(folder)?;
    for round in ["first", "second"] {
        let mut containers = Containers::default();
        let start_ns = cpu_ns()?;
        let named = paths
            .iter()
            .filter(|path| !containers.of_group(&root, path.as_bytes()).name.is_empty());
        let named = named.count();
        let each_ns = (cpu_ns()? - start_ns) / u64::from(GROUPS);
        println!("{round} round: {named} names, {each_ns} ns of CPU each");
    }
    Ok(())
}

/// CPU time of this thread so far, by the kernel's scheduler.
fn cpu_ns() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text
        .split(' ')
        .next()
        .ok_or("the kernel counts no CPU time")?;
    Ok(first.parse()?)
}
