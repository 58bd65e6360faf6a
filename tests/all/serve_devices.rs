//! Devices that `kymo serve` polls by SNMP (`[[device]]`): simulated ones that die, move their interfaces and lie, and
//! Debian's snmpd in each version; the expressions of snmp_exporter's dashboards have values.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;

use kymo_agentfarm::{Broken, Farm, Lie, Settings};
use kymo_tests::served::{Served, eventually, eventually_if_busy, get};
use kymo_tests::snmpd::Snmpd;
use kymo_tests::{Scratch, machine};
use serde_json::Value;

use crate::poll_neighbours::{HOSTILE, tables};

/// The community of simulated devices: in every packet, and nowhere else.
const COMMUNITY: &str = "kept-secret-9";

/// A `kymo serve` that polls devices.
struct DeviceHub {
    served: Served,
    address: String,
    scratch: Scratch,
}

impl DeviceHub {
    fn start(scratch: Scratch, tables: &str) -> DeviceHub {
        let config = format!("user = \"\"\n[listen]\ncollectd = []\n{tables}");
        let mut served = Served::configured(&scratch, &scratch.path("data"), &config);
        let address = served.address();
        DeviceHub {
            served,
            address,
            scratch,
        }
    }

    /// The result of an instant query.
    fn query(&self, expr: &str) -> Vec<Value> {
        let escaped: String = expr.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = get(&self.address, &format!("/api/v1/query?query={escaped}"), "");
        let found = answer["data"]["result"].as_array().cloned();
        found.unwrap_or_else(|| panic!("{expr}: {answer}"))
    }

    /// The value of an expression with one result.
    fn value(&self, expr: &str) -> Option<f64> {
        match self.query(expr).as_slice() {
            [one] => one["value"][1].as_str()?.parse().ok(),
            _ => None,
        }
    }

    /// Waits until an expression has this value.
    fn is(&self, expr: &str, value: f64) {
        let found = eventually(|| (self.value(expr)? == value).then_some(()));
        found.unwrap_or_else(|| {
            let targets = get(&self.address, "/api/v1/targets", "");
            let found = self.query(expr);
            panic!(
                "{expr} is not {value}: {found:?}, {targets:#}, {:#?}",
                self.served.said
            )
        });
    }

    /// Waits for a result, and gives a label of its series.
    fn label(&self, expr: &str, label: &str) -> BTreeSet<String> {
        let found = eventually(|| Some(self.query(expr)).filter(|found| !found.is_empty()));
        let found = found.unwrap_or_else(|| panic!("nothing for {expr}: {:#?}", self.served.said));
        let labels = found
            .iter()
            .map(|one| one["metric"][label].as_str().unwrap_or("").to_string());
        labels.collect()
    }

    /// Waits until the targets' states have a text.
    fn reports(&self, text: &str) {
        let state = || get(&self.address, "/api/v1/targets", "").to_string();
        let has = eventually(|| state().contains(text).then_some(()));
        has.unwrap_or_else(|| panic!("no {text}: {}", state()));
    }
}

fn farm(at: [u8; 4], devices: u32) -> Farm {
    let farm = Farm::start(Settings {
        first: Ipv4Addr::from(at),
        port: 0,
        devices,
        interfaces: 4 * devices,
        community: COMMUNITY.as_bytes().to_vec(),
    });
    farm.expect("a farm")
}

/// A table of a simulated device, which is polled each second.
fn table(farm: &Farm, device: u32, scratch: &Scratch, more: &str) -> String {
    fs::write(scratch.path("community"), format!("{COMMUNITY}\n")).expect("a file");
    let (address, port) = (farm.address(device), farm.settings().port);
    let file = scratch.text("community");
    format!(
        "[[device]]\naddress = \"{address}:{port}\"\nname = \"d{device}\"\ninterval = \"1s\"\ntimeout = \"1s\"\n\
         community_file = \"{file}\"\n{more}\n"
    )
}

/// Expressions of dashboards and alerts for snmp_exporter's if_mib and system, as sites publish them.
const DASHBOARDS: [&str; 22] = [
    "up{job=\"snmp\",instance=\"d0\"}",
    "sysUpTime{job=\"snmp\",instance=\"d0\"} / 100",
    "sysName{instance=\"d0\"}",
    "sysDescr",
    "sum(irate(ifHCInOctets{instance=\"d0\",ifName=~\"Gi.*\"}[1m])) by (ifName, ifAlias) * 8",
    "rate(ifHCOutOctets{instance=\"d0\"}[1m]) * 8",
    "topk(5, rate(ifHCInOctets{instance=~\"d.*\"}[1m]) * 8 / (ifHighSpeed * 1000000))",
    "rate(ifHCInOctets[1m]) * 800 / on(instance, ifIndex) ifSpeed",
    "sum(rate(ifInErrors{instance=\"d0\"}[1m]) + rate(ifOutErrors{instance=\"d0\"}[1m])) by (ifDescr)",
    "rate(ifInDiscards[1m])",
    "rate(ifOutDiscards[1m])",
    "rate(ifHCInUcastPkts{instance=\"d0\"}[1m])",
    "rate(ifHCInMulticastPkts[1m]) + rate(ifHCInBroadcastPkts[1m])",
    "rate(ifHCOutMulticastPkts[1m]) + rate(ifHCOutBroadcastPkts[1m])",
    "count(ifOperStatus{instance=\"d0\"} == 1)",
    "ifAdminStatus == 1 and ifOperStatus == 1",
    "ifMtu{ifName=\"Gi0/1\"}",
    "(sysUpTime - on(instance) group_right() ifLastChange) / 100",
    "ifType_info{ifType=\"ethernetCsmacd\"}",
    "label_replace(ifPhysAddress, \"mac\", \"$1\", \"ifPhysAddress\", \"(.*)\")",
    "ifNumber",
    "snmp_scrape_walk_duration_seconds{module=\"interfaces\"} + snmp_scrape_pdus_returned",
];

#[test]
fn expressions_of_dashboards_have_values() {
    let scratch = Scratch::new("devices-boards");
    let farm = farm([127, 0, 31, 1], 1);
    let tables = table(&farm, 0, &scratch, "labels = { site = \"north\" }");
    let hub = DeviceHub::start(scratch, &tables);
    hub.is(
        "count_over_time(up{instance=\"d0\",site=\"north\"}[1m]) > bool 3",
        1.0,
    );
    for expr in DASHBOARDS {
        let has = eventually(|| (!hub.query(expr).is_empty()).then_some(()));
        assert!(has.is_some(), "{expr} has no value: {:#?}", hub.served.said);
    }
    let labels = |label: &str| hub.label("ifHCInOctets{instance=\"d0\",ifName=\"Gi0/2\"}", label);
    assert_eq!(labels("ifDescr"), ["GigabitEthernet0/2".to_string()].into());
    assert_eq!(labels("ifAlias"), ["port 2 of dev0".to_string()].into());
    assert_eq!(labels("ifIndex"), ["2".to_string()].into());
    let speed = hub.label("ifHighSpeed_info{ifName=\"Gi0/2\"}", "ifHighSpeed");
    assert_eq!(speed, ["1000".to_string()].into());
    let kind = get(&hub.address, "/api/v1/metadata?metric=ifHCInOctets", "");
    assert_eq!(kind["data"]["ifHCInOctets"][0]["type"], "counter", "{kind}");
    is_secret(&hub);
}

/// The community is in no message, no command line, and no answer.
fn is_secret(hub: &DeviceHub) {
    let pid = hub.served.child("scrape").expect("a process that polls");
    let words = fs::read(format!("/proc/{pid}/cmdline")).expect("its words");
    assert!(!String::from_utf8_lossy(&words).contains(COMMUNITY));
    assert!(!hub.served.said.iter().any(|line| line.contains(COMMUNITY)));
    let targets = get(&hub.address, "/api/v1/targets", "").to_string();
    assert!(!targets.contains(COMMUNITY), "{targets}");
}

#[test]
fn a_device_that_dies_comes_back_with_other_indices() {
    let scratch = Scratch::new("devices-dies");
    let farm = farm([127, 0, 32, 1], 2);
    let tables = [0, 1].map(|device| table(&farm, device, &scratch, ""));
    let hub = DeviceHub::start(scratch, &tables.concat());
    let first = "ifHCInOctets{instance=\"d0\",ifName=\"Gi0/1\"}";
    assert_eq!(hub.label(first, "ifIndex"), ["1".to_string()].into());
    farm.change(0, |device, _| device.dead = true);
    hub.is("up{instance=\"d0\"}", 0.0);
    hub.reports("no answer within 1 s");
    assert!(hub.query(first).is_empty(), "its series have ended");
    hub.is("up{instance=\"d1\"}", 1.0);
    farm.change(0, |device, now_ns| {
        device.dead = false;
        device.restart(now_ns);
        device.renumber(1, now_ns);
    });
    hub.is("up{instance=\"d0\"}", 1.0);
    // The name stays with its counters, at another index.
    let moved = hub.label(first, "ifIndex");
    assert_eq!(moved.len(), 1, "{moved:?}");
    assert_ne!(moved, ["1".to_string()].into());
    let count = "count(ifHCInOctets{instance=\"d0\"})";
    hub.is(count, 4.0);
    farm.change(0, |device, now_ns| device.vanish(1, now_ns));
    hub.is(count, 3.0);
}

#[test]
fn a_device_that_falls_silent_is_named_by_why() {
    let scratch = Scratch::new("devices-why");
    let farm = farm([127, 0, 71, 1], 2);
    let tables = [0, 1].map(|device| table(&farm, device, &scratch, ""));
    let hub = DeviceHub::start(scratch, &tables.concat());
    for device in ["d0", "d1"] {
        let polls = format!("count_over_time(sysUpTime{{instance=\"{device}\"}}[1m])");
        hub.is(&format!("{polls} > bool 9"), 1.0);
    }
    let said = || get(&hub.address, "/kymo/v1/why?at=now", "").to_string();
    let says = |text: &str| {
        let found = eventually_if_busy(|| Some(said()).filter(|said| said.contains(text)));
        found.unwrap_or_else(|| panic!("no {text}: {}", said()))
    };
    assert!(!said().contains("device d"), "{}", said());
    farm.change(0, |device, _| device.dead = true);
    let answer = says("device d0 answered nothing since ");
    assert!(!answer.contains("device d1"), "{answer}");
    farm.change(0, |device, now_ns| {
        device.dead = false;
        device.restart(now_ns);
    });
    says("device d0 answered nothing from ");
}

#[test]
fn devices_that_lie_delay_no_other_one() {
    let scratch = Scratch::new("devices-lie");
    let lies = [
        Lie::Id,
        Lie::Names,
        Lie::Community,
        Lie::Address,
        Lie::Fewer,
        Lie::More,
        Lie::Reversed,
        Lie::Texts,
        Lie::Endless,
        Lie::Stuck,
    ];
    let broken = Broken::ALL.map(|(_, broken)| Lie::Broken(broken));
    let lies: Vec<Lie> = lies.into_iter().chain(broken).collect();
    let count = u32::try_from(lies.len()).expect("a number");
    let farm = farm([127, 0, 33, 1], count + 1);
    for (device, lie) in (0..).zip(&lies) {
        farm.change(device, |device, _| device.lie = Some(*lie));
    }
    let tables: Vec<String> = (0..=count)
        .map(|device| table(&farm, device, &scratch, ""))
        .collect();
    let hub = DeviceHub::start(scratch, &tables.concat());
    let good = format!("{{instance=\"d{count}\"}}");
    hub.is(&format!("count_over_time(up{good}[1m]) > bool 5"), 1.0);
    hub.is(&format!("min_over_time(up{good}[1m])"), 1.0);
    hub.is(&format!("count(ifHCInOctets{good})"), 4.0);
    hub.is("count(up)", f64::from(count + 1));
    for device in 0..count {
        farm.change(device, |device, _| device.lie = None);
    }
    hub.is("sum(up)", f64::from(count + 1));
    hub.is("count(ifHCInOctets)", f64::from(4 * (count + 1)));
}

#[test]
fn neighbours_are_series_with_the_names_of_interfaces() {
    if machine::must_skip(&["snmpd"]) {
        return;
    }
    let agent = Snmpd::start("127.0.34.2", &tables("core-1", "core-2"));
    let scratch = Scratch::new("devices-neighbours");
    let table = format!(
        "[[device]]\naddress = \"{}\"\nname = \"one\"\ninterval = \"1s\"\ntimeout = \"1s\"\nnot_types = []\n\
         profiles = [\"system\", \"interfaces\", \"neighbours\"]\n",
        agent.address
    );
    let hub = DeviceHub::start(scratch, &table);
    let named = "lldpRemSysName{instance=\"one\",lldpRemSysName=\"core-2\",sysName=\"core-1\",ifName=\"lo\",lldpRemPortId=\"lo\"}";
    hub.is(named, 1.0);
    let found = hub.label("lldpRemSysName{ifName=\"xe-0/0/2\"}", "lldpRemPortDesc");
    assert_eq!(found, [HOSTILE.to_string()].into());
    let found = hub.label("lldpRemSysName{ifName=\"xe-0/0/2\"}", "lldpRemChassisId");
    assert_eq!(found, ["00:1b:2c:03:04:05".to_string()].into());
    // The page's question for traffic, and a poll that has kept what the first one found.
    let traffic = "count((rate(ifHCInOctets[15m]) or rate(ifInOctets[15m])) * 8 and on(instance, ifName) lldpRemSysName)";
    hub.is(traffic, 1.0);
    hub.is("snmp_scrape_packets_sent{module=\"neighbours\"}", 0.0);
    hub.is("count(lldpRemSysName)", 2.0);
}

/// Passwords of the user at snmpd.
const SIGNING: &str = "s3cr3t-signing";
const PRIVATE: &str = "s3cr3t-private";

#[test]
fn snmpd_is_polled_in_each_version() {
    if machine::must_skip(&["snmpd", "snmpwalk"]) {
        return;
    }
    let lines = format!(
        "createUser kymo SHA-256 \"{SIGNING}\" AES \"{PRIVATE}\"\nrouser kymo priv\nload 1\n\
         extend fan /bin/echo \"fan 1200 rpm\"\nextend pump /bin/echo off\n"
    );
    let agent = Snmpd::start("127.0.34.1", &lines);
    let scratch = Scratch::new("devices-snmpd");
    for (name, text) in [
        ("signing", SIGNING),
        ("private", PRIVATE),
        ("wrong", "something else"),
    ] {
        fs::write(scratch.path(name), text).expect("a file");
    }
    fs::create_dir_all(scratch.path("profiles")).expect("a folder");
    let own = "[[table]]\nindex = [\"hrSWRunIndex\"]\nlabels = { hrSWRunName = \"1.3.6.1.2.1.25.4.2.1.2\" }\n\
               gauge = { hrSWRunStatus = \"1.3.6.1.2.1.25.4.2.1.7\" }\n\
               [[table]]\nindex = [\"ifIndex\"]\nstates = { ifState = \"1.3.6.1.2.1.2.2.1.8\" }\n\
               words = { ifState = { 1 = \"up\", 2 = \"down\" } }\n\
               [[table]]\nindex = [\"token:string\"]\n\
               extract = { rpm = { value = \"1.3.6.1.4.1.8072.1.3.2.3.1.1\", regex = [[\"fan ([0-9]+) rpm\", \"$1\"], [\"off\", \"0\"]] } }\n";
    fs::write(scratch.path("profiles/programs.toml"), own).expect("a profile");
    let device = |name: &str, more: &str| {
        format!(
            "[[device]]\naddress = \"{}\"\nname = \"{name}\"\ninterval = \"1s\"\ntimeout = \"1s\"\n\
             interfaces = \"all\"\nnot_types = []\n{more}\n",
            agent.address
        )
    };
    let user = |auth: &str| {
        format!(
            "version = \"3\"\nuser = \"kymo\"\nauth_file = \"{}\"\nprivacy_file = \"{}\"",
            scratch.text(auth),
            scratch.text("private")
        )
    };
    let all =
        "profiles = [\"system\", \"interfaces\", \"cpu\", \"memory\", \"storage\", \"programs\"]";
    let tables = [
        format!("[poll]\nprofiles = \"{}\"\n", scratch.text("profiles")),
        device("v1", "version = \"1\""),
        device("v2c", all),
        device("v3", &user("signing")),
        device("wrong", &user("wrong")),
    ];
    let hub = DeviceHub::start(scratch, &tables.concat());
    for name in ["v1", "v2c", "v3"] {
        hub.is(&format!("up{{instance=\"{name}\"}}"), 1.0);
        let names = hub.label(&format!("ifOperStatus{{instance=\"{name}\"}}"), "ifName");
        assert_eq!(names, walked(&agent, "1.3.6.1.2.1.31.1.1.1.1"), "{name}");
        let mtu = hub.value(&format!("ifMtu{{instance=\"{name}\",ifName=\"lo\"}}"));
        assert_eq!(mtu, Some(65_536.0), "{name}");
    }
    assert!(
        hub.query("ifHCInOctets{instance=\"v1\"}").is_empty(),
        "v1 has no Counter64"
    );
    assert!(!hub.query("ifHCInOctets{instance=\"v3\"}").is_empty());
    hub.is("up{instance=\"wrong\"}", 0.0);
    hub.reports("the user has another password");
    let answer = get(&hub.address, "/api/v1/targets", "").to_string();
    assert!(!answer.contains("s3cr3t"), "{answer}");
    let storage = hub.label("hrStorageSize{instance=\"v2c\"} > 0", "hrStorageDescr");
    assert!(storage.contains("Physical memory"), "{storage:?}");
    for expr in [
        "laLoadFloat{laNames=\"Load-1\"} >= 0",
        "memTotalReal{instance=\"v2c\"} > memAvailReal",
        "hrMemorySize > 0",
        "100 * hrStorageUsed{hrStorageDescr=\"/\"} / hrStorageSize",
        "rate(ssCpuRawUser[1m]) >= 0",
        "hrSWRunStatus{hrSWRunName=~\".*snmpd.*\"}",
        "rpm{token=\"fan\"} == 1200",
        "rpm{token=\"pump\"} == 0",
        "ifState{ifIndex=\"1\",ifState=\"up\"} == 1",
        "ifState{ifIndex=\"1\",ifState=\"down\"} == 0",
    ] {
        let has = eventually(|| (!hub.query(expr).is_empty()).then_some(()));
        assert!(has.is_some(), "{expr}");
    }
    drop(hub.scratch);
}

/// Texts of a column, by net-snmp's own client.
fn walked(agent: &Snmpd, column: &str) -> BTreeSet<String> {
    let output = Command::new("snmpwalk")
        .args([
            "-v2c",
            "-cpublic",
            "-Oqv",
            &agent.address.to_string(),
            column,
        ])
        .output();
    let text = String::from_utf8_lossy(&output.expect("snmpwalk").stdout).into_owned();
    text.lines()
        .map(|line| line.trim_matches('"').to_string())
        .collect()
}
