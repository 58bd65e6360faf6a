//! Devices as an mrtg.cfg, in the lines that cfgmaker writes by default. Texts of devices become parts of a file that has
//! commands in it for MRTG: they are one line each, and a reference has plain signs alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kymo_poll::devices::FoundInterface;
use kymo_scrape::{DeviceCredentials, SNMP_PORT, UserPassword, device_address};

use super::answer::Answer;

/// Choices of cfgmaker's options.
pub(super) struct CfgOptions<'a> {
    /// References to interfaces, in the order in which they are tried.
    pub(super) refs: &'a [String],
    /// Descriptions of interfaces, in the order in which they are tried; empty: the reference.
    pub(super) descriptions: &'a [String],
    /// Lines for the begin.
    pub(super) global: &'a [String],
    /// True if interfaces that are down are taken.
    pub(super) down: bool,
    /// True if loopback interfaces are taken.
    pub(super) loopback: bool,
}

/// A device, with its interfaces.
pub(super) struct CfgDevice<'a> {
    pub(super) address: &'a str,
    pub(super) credentials: &'a DeviceCredentials,
    pub(super) interfaces: &'a [FoundInterface],
    pub(super) answer: &'a Answer,
}

/// The file.
pub(super) fn text(devices: &[CfgDevice<'_>], options: &CfgOptions<'_>) -> String {
    let mut out = "# Made by kymo discover --mrtg\n\n".to_string();
    for line in options.global {
        let _ = writeln!(out, "{line}");
    }
    if devices
        .iter()
        .any(|device| version(device.credentials) == 3)
    {
        out.push_str("EnableSnmpV3: yes\n");
    }
    let has_v6 = |device: &CfgDevice<'_>| device.connect().contains("@[");
    if devices.iter().any(has_v6) {
        out.push_str("EnableIPv6: yes\n");
    }
    for device in devices {
        device.put(options, &mut out);
    }
    out
}

fn version(credentials: &DeviceCredentials) -> u8 {
    match credentials {
        DeviceCredentials::V1 { .. } => 1,
        DeviceCredentials::V2c { .. } => 2,
        DeviceCredentials::V3 { .. } => 3,
    }
}

impl CfgDevice<'_> {
    fn put(&self, options: &CfgOptions<'_>, out: &mut String) {
        let system = |name: &str| line(self.answer.system.get(name).map_or("", |text| text));
        let _ = write!(
            out,
            "\n######################################################################\n\
             # System: {}\n# Description: {}\n# Contact: {}\n# Location: {}\n\
             ######################################################################\n\n\n",
            system("sysName"),
            system("sysDescr"),
            system("sysContact"),
            system("sysLocation"),
        );
        for interface in self.interfaces {
            let lines = CfgInterface::new(self, interface, options);
            lines.put(out);
        }
    }

    /// Text behind a reference: community, host and options.
    fn connect(&self) -> String {
        let (host, port) = device_address(self.address).unwrap_or_default();
        let host = match host.contains(':') {
            true => format!("[{host}]"),
            false => host,
        };
        let community = match self.credentials {
            DeviceCredentials::V1 { community } | DeviceCredentials::V2c { community } => {
                community.text().replace('@', "\\@").replace(' ', "\\ ")
            }
            DeviceCredentials::V3 { .. } => "public".into(),
        };
        let port = match port {
            SNMP_PORT => String::new(),
            port => port.to_string(),
        };
        let version = version(self.credentials);
        format!("{community}@{host}:{port}::::{version}")
    }

    /// SnmpOptions of a user.
    fn user(&self) -> Option<String> {
        let DeviceCredentials::V3 {
            user,
            auth,
            privacy,
            context,
        } = self.credentials
        else {
            return None;
        };
        let mut all = vec![format!("username=>{}", perl(user))];
        let mut put = |kind: &str, of: &Option<UserPassword>| {
            if let Some(of) = of {
                all.push(format!("{kind}protocol=>{}", perl(&of.protocol)));
                all.push(format!("{kind}password=>{}", perl(of.password.text())));
            }
        };
        put("auth", auth);
        put("priv", privacy);
        if !context.is_empty() {
            all.push(format!("contextname=>{}", perl(context)));
        }
        Some(all.join(","))
    }
}

/// A text as Perl has it.
fn perl(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// The lines of an interface.
struct CfgInterface {
    head: String,
    problems: Vec<String>,
    target: String,
}

impl CfgInterface {
    fn new(device: &CfgDevice<'_>, own: &FoundInterface, options: &CfgOptions<'_>) -> CfgInterface {
        let answer = device.answer;
        let of = |texts: &BTreeMap<String, String>| {
            let text = texts.get(&own.index);
            text.map(|text| line(text)).unwrap_or_default()
        };
        let (ip, mac) = (
            of(&answer.addresses),
            of(&answer.macs).to_lowercase().replace(':', "-"),
        );
        let (descr, alias) = (line(&own.descr), line(&own.alias));
        let name = match own.name == own.index {
            true => String::new(),
            false => line(&own.name),
        };
        let head = format!(
            "### Interface {} >> Descr: '{descr}' | Name: '{name}' | Ip: '{}' | Eth: '{}' ###\n",
            own.index,
            shown(&ip, "No Ip"),
            shown(&mac, "No Ethernet Id"),
        );
        let speed_bytes = answer.speed_bits(&own.index) / 8;
        let mut problems = problems(own, speed_bytes, options);
        let reference = reference(device, own, (&ip, &mac), options).unwrap_or_else(|| {
            let refs = options.refs.join(",");
            problems.push(format!("--ifref={refs} is not unique for this interface"));
            own.index.clone()
        });
        let (host, _) = device_address(device.address).unwrap_or_default();
        let id = format!("{}_{}", plain(&host), trimmed(&reference));
        let title = description(own, &reference, (&ip, &mac), options);
        let system = |name: &str| html(&line(answer.system.get(name).map_or("", |text| text)));
        let mut target = format!(
            "\nTarget[{id}]: {}:{}\n",
            reference.replace(' ', "\\ ").replace(':', "\\:"),
            device.connect()
        );
        if let Some(user) = device.user() {
            let _ = writeln!(target, "SnmpOptions[{id}]: {user}");
        }
        if version(device.credentials) > 1 && !answer.has_large.contains(&own.index) {
            let _ = writeln!(target, "noHC[{id}]: yes");
        }
        let title = format!("{} -- {}", html(&title), system("sysName"));
        let _ = write!(
            target,
            "SetEnv[{id}]: MRTG_INT_IP=\"{}\" MRTG_INT_DESCR=\"{}\"\nMaxBytes[{id}]: {speed_bytes}\n\
             Title[{id}]: {title}\nPageTop[{id}]: <h1>{title}</h1>\n",
            shown(&ip, "No Ip").replace('"', "'"),
            descr.replace('"', "'"),
        );
        target += &table_text([
            (
                "System:",
                format!("{} in {}", system("sysName"), system("sysLocation")),
            ),
            ("Maintainer:", system("sysContact")),
            ("Description:", html(&format!("{descr} {alias} "))),
            ("ifType:", html(&line(&own.kind))),
            ("ifName:", html(&name)),
            ("Max Speed:", speed(speed_bytes)),
            ("Ip:", html(&shown(&ip, "No Ip"))),
        ]);
        CfgInterface {
            head,
            problems,
            target,
        }
    }

    fn put(&self, out: &mut String) {
        out.push_str(&self.head);
        if self.problems.is_empty() {
            out.push_str(&self.target);
        } else {
            out.push_str("### The following interface is commented out because:\n");
            for problem in &self.problems {
                let _ = writeln!(out, "### * {problem}");
            }
            for line in self.target.lines() {
                let _ = writeln!(out, "# {line}");
            }
        }
        out.push_str("\n\n");
    }
}

/// A text, or the words for none.
fn shown(text: &str, none: &str) -> String {
    match text {
        "" => none.into(),
        text => text.into(),
    }
}

/// The table of a page's top.
fn table_text(rows: [(&str, String); 7]) -> String {
    let row = |(label, value): (&str, String)| {
        format!(
            "\t\t\t\t<tr>\n\t\t\t\t\t<td>{label}</td>\n\t\t\t\t\t<td>{value}</td>\n\t\t\t\t</tr>\n"
        )
    };
    let rows: String = rows.into_iter().map(row).collect();
    format!("\t\t<div id=\"sysdetails\">\n\t\t\t<table>\n{rows}\t\t\t</table>\n\t\t</div>\n")
}

/// Reasons to comment an interface out.
fn problems(own: &FoundInterface, speed_bytes: u64, options: &CfgOptions<'_>) -> Vec<String> {
    let down = [
        (own.admin == Some(2.0), "it is administratively DOWN"),
        (own.admin == Some(3.0), "it is in administrative TEST mode"),
        (own.oper == Some(2.0), "it is operationally DOWN"),
        (own.oper == Some(3.0), "it is in operational TEST mode"),
    ];
    let down = down.into_iter().filter(|_| !options.down);
    let others = [
        (
            own.kind == "softwareLoopback" && !options.loopback,
            "it is a Software Loopback interface",
        ),
        (speed_bytes == 0, "has no ifSpeed property"),
    ];
    let all = down.chain(others).filter(|(is, _)| *is);
    all.map(|(_, why)| why.to_string()).collect()
}

/// The first reference that names this interface alone; `None`: there is none.
fn reference(
    device: &CfgDevice<'_>,
    own: &FoundInterface,
    (ip, mac): (&str, &str),
    options: &CfgOptions<'_>,
) -> Option<String> {
    let alone = |text: &str, of: fn(&FoundInterface) -> &str| {
        let same = device.interfaces.iter().filter(|one| of(one) == text);
        is_safe(text) && same.count() == 1
    };
    let once = |text: &str, all: &BTreeMap<String, String>| {
        !text.is_empty() && all.values().filter(|one| line(one) == text).count() == 1
    };
    options.refs.iter().find_map(|kind| match kind.as_str() {
        "name" if own.name != own.index && alone(&own.name, |one| &one.name) => {
            Some(format!("#{}", own.name))
        }
        "descr" if alone(&own.descr, |one| &one.descr) => Some(format!("\\{}", own.descr)),
        "ip" if once(ip, &device.answer.addresses) => Some(format!("/{ip}")),
        "eth"
            if !mac.is_empty()
                && once(&mac.to_uppercase().replace('-', ":"), &device.answer.macs) =>
        {
            Some(format!("!{mac}"))
        }
        "nr" => Some(own.index.clone()),
        _ => None,
    })
}

fn description(
    own: &FoundInterface,
    reference: &str,
    (ip, mac): (&str, &str),
    options: &CfgOptions<'_>,
) -> String {
    let found = options.descriptions.iter().find_map(|kind| {
        let text = match kind.as_str() {
            "nr" => format!("Interface {}", own.index),
            "name" => format!("#{}", line(&own.name)),
            "descr" => line(&own.descr),
            "alias" if !own.alias.is_empty() => {
                format!("{} {} ", line(&own.descr), line(&own.alias))
            }
            "ip" => ip.to_string(),
            "eth" => mac.to_string(),
            _ => String::new(),
        };
        (!text.is_empty()).then_some(text)
    });
    let shown = || reference.trim_start_matches(['#', '\\', '/', '!']);
    found.unwrap_or_else(|| format!("Traffic Analysis for {}", shown()))
}

/// True for a text that MRTG reads as a name: no sign of a shell, of Perl or of its own.
fn is_safe(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./+: ".contains(&byte);
    !text.is_empty() && text.trim() == text && text.bytes().all(is_plain)
}

/// The part of a target's name, as cfgmaker makes it of a reference.
fn trimmed(reference: &str) -> String {
    let mut out = String::new();
    for sign in reference.chars() {
        match "#!/\\: @%".contains(sign) {
            true if out.ends_with('_') => {}
            true => out.push('_'),
            false => out.push(sign),
        }
    }
    plain(out.trim_matches('_'))
}

fn plain(text: &str) -> String {
    let sign = |sign: char| match sign.is_ascii_alphanumeric() || "-_.+".contains(sign) {
        true => sign,
        false => '_',
    };
    text.chars().map(sign).collect()
}

/// A text of a device on one line.
fn line(text: &str) -> String {
    let sign = |sign: char| if sign.is_control() { ' ' } else { sign };
    text.chars().map(sign).collect()
}

fn html(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

/// A speed in cfgmaker's words: `125.0 MBytes/s`.
fn speed(bytes: u64) -> String {
    let digits = bytes.to_string().len();
    let units = ["Bytes/s", "kBytes/s", "MBytes/s", "GBytes/s"];
    let step = (digits.saturating_sub(2) / 3).min(units.len() - 1);
    let mut divided = bytes as f64;
    for _ in 0..step {
        divided /= 1000.0;
    }
    format!("{divided:.1} {}", units[step])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_device_are_no_lines_and_no_commands() {
        assert_eq!(line("a\nTarget[x]: `id`"), "a Target[x]: `id`");
        for (text, is) in [
            ("Gi0/1", true),
            ("a b", true),
            ("`id`", false),
            ("a&b", false),
            ("$x", false),
            ("", false),
            (" a", false),
        ] {
            assert_eq!(is_safe(text), is, "{text}");
        }
        for (reference, name) in [
            ("#Gi0/1", "Gi0_1"),
            ("\\a b: c", "a_b_c"),
            ("/10.0.0.1", "10.0.0.1"),
            ("7", "7"),
        ] {
            assert_eq!(trimmed(reference), name);
        }
    }

    /// A device whose texts would be keywords, commands and HTML.
    #[test]
    fn a_hostile_device_adds_no_line() {
        let evil = "x\n\nTarget[y]: `id`:public@h\r\n<script>\u{2028}";
        let mut answer = Answer::default();
        for name in ["sysName", "sysDescr", "sysContact", "sysLocation"] {
            answer.system.insert(name.into(), evil.into());
        }
        answer.macs.insert("1".into(), evil.into());
        answer.addresses.insert("1".into(), evil.into());
        let interface = FoundInterface {
            index: "1".into(),
            name: evil.into(),
            alias: evil.into(),
            descr: evil.into(),
            kind: evil.into(),
            ..FoundInterface::default()
        };
        let refs = ["name", "descr", "nr"].map(String::from);
        for description in ["alias", "descr", "name", "ip", "eth"] {
            let device = CfgDevice {
                address: "192.0.2.1",
                credentials: &DeviceCredentials::V2c {
                    community: kymo_scrape::Secret::of_file("c"),
                },
                interfaces: std::slice::from_ref(&interface),
                answer: &answer,
            };
            let options = CfgOptions {
                refs: &refs,
                descriptions: &[description.into()],
                global: &[],
                down: true,
                loopback: true,
            };
            let text = text(&[device], &options);
            let targets = text.lines().filter(|line| line.contains("Target["));
            let starts =
                targets.filter(|line| line.trim_start_matches("# ").starts_with("Target["));
            let starts: Vec<&str> = starts.collect();
            assert_eq!(
                starts,
                ["# Target[192.0.2.1_1]: 1:c@192.0.2.1:::::2"],
                "{text}"
            );
            let html = text.split_once("PageTop[").map_or("", |(_, html)| html);
            assert!(!html.contains("<script>"), "{text}");
        }
    }

    #[test]
    fn speeds_are_in_units_as_cfgmaker_has_them() {
        for (bytes, text) in [
            (0, "0.0 Bytes/s"),
            (1250, "1250.0 Bytes/s"),
            (12_500, "12.5 kBytes/s"),
            (1_250_000, "1250.0 kBytes/s"),
            (12_500_000, "12.5 MBytes/s"),
            (125_000_000, "125.0 MBytes/s"),
            (1_250_000_000, "1250.0 MBytes/s"),
        ] {
            assert_eq!(speed(bytes), text);
        }
    }
}
