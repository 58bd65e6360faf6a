//! Time to find the name of a control group: a folder of docker's containers with files of a usual size, each read once.
//!
//!     cargo run --release -p kymo-kernel --example group_names_speed -- FOLDER

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

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
        let start = Instant::now();
        let named = paths
            .iter()
            .filter(|path| !containers.of_group(&root, path.as_bytes()).name.is_empty());
        let named = named.count();
        let each_us = start.elapsed().as_secs_f64() * 1e6 / f64::from(GROUPS);
        println!("{round} round: {named} names, {each_us:.1} us each");
    }
    Ok(())
}
