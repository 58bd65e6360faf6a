//! Multicast groups of collectd's network plugin. Real collectds send to a group on the loopback interface, and each `kymo serve`
//! that has joined it takes the values. Needs Debian's collectd-core.

use std::fs;
use std::process::{Command, Stdio};

use kymo_tests::machine::skipped;
use kymo_tests::rrd_client::Client;
use kymo_tests::served::{Served, eventually};
use kymo_tests::{Running, Scratch, free_port, run};

/// collectd's own group.
const GROUP: &str = "239.192.74.66";

/// A group with a port, as both sides write it.
struct Group {
    address: String,
    port: u16,
}

impl Group {
    fn shown(&self) -> String {
        match self.address.contains(':') {
            true => format!("[{}]:{}", self.address, self.port),
            false => format!("{}:{}", self.address, self.port),
        }
    }

    fn config(&self, users: &str, interface: &str) -> String {
        format!(
            "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = [\"{}\"]\n\
             [collectd]\nsecurity = \"sign\"\nauth_file = \"{users}\"\nallow = [\"0.0.0.0/0\", \"::/0\"]\n{interface}",
            self.shown()
        )
    }

    fn collectd(&self, scratch: &Scratch) -> Running {
        let folder = scratch.path("collectd");
        fs::create_dir_all(&folder).expect("a folder");
        let (config, shown) = (folder.join("collectd.conf"), folder.display());
        let text = format!(
            "Hostname \"sender\"\nFQDNLookup false\nInterval 1\nBaseDir \"{shown}\"\nPIDFile \"{shown}/pid\"\n\
             PluginDir \"/usr/lib/collectd\"\nTypesDB \"/usr/share/collectd/types.db\"\n\
             LoadPlugin load\nLoadPlugin cpu\nLoadPlugin memory\nLoadPlugin network\n\
             <Plugin network>\n  <Server \"{}\" \"{}\">\n    SecurityLevel Sign\n    Username \"user0\"\n\
             Password \"foo\"\n    Interface \"lo\"\n  </Server>\n</Plugin>\n",
            self.address, self.port
        );
        fs::write(&config, text).expect("a configuration");
        let mut command = Command::new("/usr/sbin/collectd");
        let command = command.arg("-f").arg("-C").arg(&config);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Running(child.expect("collectd starts"))
    }
}

#[test]
fn each_hub_of_a_group_takes_its_values() {
    let scratch = Scratch::new("multicast");
    let group = Group {
        address: GROUP.into(),
        port: free_port(),
    };
    let users = scratch.text("users");
    fs::write(&users, "user0: foo\n").expect("a file of users");
    let config = group.config(&users, "interface = \"lo\"\n");
    // Two of them at one port.
    let hubs = ["one", "two"].map(|name| {
        let data = scratch.path(name);
        let mut served = Served::configured(&scratch, &data, &config);
        served.has_said(&format!("collectd's datagrams on {}", group.shown()));
        (served, data)
    });
    let _sender = group.collectd(&scratch);
    for (_served, data) in &hubs {
        let last = || {
            let mut client = Client::unix(&data.join("rrdcached.sock")).ok()?;
            let answer = client.text("LAST sender/load/load.rrd");
            answer.strip_prefix("0 ")?.parse::<u64>().ok()
        };
        eventually(last).unwrap_or_else(|| panic!("{} has no values", data.display()));
    }
}

/// The loopback interface carries no multicast of IPv6, so this looks at the kernel's list of groups alone.
#[test]
fn a_group_of_ipv6_is_joined_on_its_interface() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        return skipped("IPv6: a multicast group");
    }
    let scratch = Scratch::new("multicast-ipv6");
    // A group that no other test joins.
    let port = free_port();
    let (address, listed) = (format!("ff18::{port:x}"), format!("ff18{port:028x}"));
    let group = Group { address, port };
    let users = scratch.text("users");
    fs::write(&users, "user0: foo\n").expect("a file of users");
    let joined = || {
        let groups = fs::read_to_string("/proc/net/igmp6").expect("groups");
        let mut groups = groups.lines().map(|line| line.split_whitespace().skip(1));
        groups.any(|mut line| line.next() == Some("lo") && line.next() == Some(&listed))
    };
    assert!(!joined());
    let config = group.config(&users, "interface = \"lo\"\n");
    let mut served = Served::configured(&scratch, &scratch.path("data"), &config);
    served.has_said(&format!("collectd's datagrams on {}", group.shown()));
    assert!(joined());
}

#[test]
fn a_group_wants_protection_and_its_interface() {
    let scratch = Scratch::new("multicast-refused");
    let users = scratch.text("users");
    fs::write(&users, "user0: foo\n").expect("a file of users");
    let group = Group {
        address: GROUP.into(),
        port: free_port(),
    };
    let shown = group.shown();
    for (config, part) in [
        (
            format!("user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = [\"{shown}\"]\n"),
            "anybody could send",
        ),
        (
            group.config(&users, "interface = \"none0\"\n"),
            "No such device",
        ),
        (
            "user = \"\"\n[collectd]\ninterface = \"lo\"\n".into(),
            "no address of [listen] collectd is that of a multicast group",
        ),
    ] {
        let file = scratch.text("kymo.toml");
        fs::write(&file, config).expect("a configuration");
        let data = scratch.text("data");
        let output = run(&["serve", "--config", &file, "--data", &data]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(part), "{text}");
    }
}
