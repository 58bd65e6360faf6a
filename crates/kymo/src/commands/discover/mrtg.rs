//! Devices as an mrtg.cfg, in the lines that cfgmaker writes by default. Texts of devices become parts of a file that has
//! commands in it for MRTG: they are one line each, and a reference has plain signs alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;
use kymo_poll::devices::FoundInterface;
use kymo_scrape::{DeviceCredentials, SNMP_PORT, UserPassword, device_address};

use super::answer::Answer;
use super::oid_pick::has_object;
use super::perl::{PerlCase, PerlRules, Variables, quoted};

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
    /// Filter and templates.
    pub(super) rules: &'a PerlRules,
    /// Numbers of ifType by their words.
    pub(super) types: &'a BTreeMap<String, String>,
}

/// A device, with its interfaces.
pub(super) struct CfgDevice<'a> {
    pub(super) address: &'a str,
    pub(super) credentials: &'a DeviceCredentials,
    pub(super) interfaces: &'a [FoundInterface],
    pub(super) answer: &'a Answer,
}

/// Begin of a title.
const PREFIX: &str = "Traffic Analysis for ";

/// The file.
pub(super) fn text(devices: &[CfgDevice<'_>], options: &CfgOptions<'_>) -> Result<String> {
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
    if options.rules.is_empty() {
        for device in devices {
            device.put(options, &mut out);
        }
        return Ok(out);
    }
    let cases = devices.iter().flat_map(|device| device.cases(options));
    let cases: Vec<PerlCase> = cases.collect();
    let users: BTreeMap<String, Option<String>> = devices
        .iter()
        .map(|device| (device.connect(), device.user()))
        .collect();
    let mut pick = |router: &str, oids: &[String]| {
        let user = users.get(router).and_then(Option::as_deref);
        let mut oids = oids.iter();
        oids.position(|oid| has_object(router, user, oid))
    };
    Ok(out + &options.rules.lines(&cases, &mut pick)?.concat())
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
        *out += &self.head();
        out.push_str("\n\n");
        for interface in self.interfaces {
            CfgInterface::new(self, interface, options).put(out);
        }
    }

    /// The device and its interfaces, for templates.
    fn cases(&self, options: &CfgOptions<'_>) -> Vec<PerlCase> {
        let host = PerlCase {
            variables: [("head_lines", self.head())]
                .into_iter()
                .chain(self.variables())
                .collect(),
            problems: None,
        };
        let interfaces = self.interfaces.iter();
        let interfaces = interfaces.map(|own| CfgInterface::new(self, own, options).case(self));
        [host].into_iter().chain(interfaces).collect()
    }

    fn variables(&self) -> Variables {
        let (host, _) = device_address(self.address).unwrap_or_default();
        vec![
            ("router_name", host),
            ("router_connect", self.connect()),
            ("directory_name", String::new()),
            ("syscontact", self.system("sysContact")),
            ("sysname", self.system("sysName")),
            ("syslocation", self.system("sysLocation")),
            ("sysdescr", self.system("sysDescr")),
        ]
    }

    /// A text of the device on one line.
    fn system(&self, name: &str) -> String {
        line(self.answer.system.get(name).map_or("", |text| text))
    }

    fn head(&self) -> String {
        format!(
            "\n######################################################################\n\
             # System: {}\n# Description: {}\n# Contact: {}\n# Location: {}\n\
             ######################################################################\n",
            self.system("sysName"),
            self.system("sysDescr"),
            self.system("sysContact"),
            self.system("sysLocation"),
        )
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
        let mut all = vec![format!("username=>{}", quoted(user))];
        let mut put = |kind: &str, of: &Option<UserPassword>| {
            if let Some(of) = of {
                all.push(format!("{kind}protocol=>{}", quoted(&of.protocol)));
                all.push(format!("{kind}password=>{}", quoted(of.password.text())));
            }
        };
        put("auth", auth);
        put("priv", privacy);
        if !context.is_empty() {
            all.push(format!("contextname=>{}", quoted(context)));
        }
        Some(all.join(","))
    }
}

/// The lines of an interface.
struct CfgInterface<'a> {
    own: &'a FoundInterface,
    options: &'a CfgOptions<'a>,
    texts: InterfaceTexts,
    head: String,
    problems: Vec<String>,
    /// True if it cannot be polled, whatever a filter says.
    is_broken: bool,
    /// Lines for Target, SetEnv, MaxBytes, Title and PageTop.
    directives: [String; 5],
}

/// Texts of an interface, each on one line.
struct InterfaceTexts {
    ip: String,
    mac: String,
    descr: String,
    alias: String,
    name: String,
    reference: String,
    /// Name of its target.
    id: String,
    description: String,
    speed_bytes: u64,
    mtu: String,
}

impl InterfaceTexts {
    /// `None` in the place of a reference: no reference names this interface alone.
    fn new(
        device: &CfgDevice<'_>,
        own: &FoundInterface,
        options: &CfgOptions<'_>,
    ) -> (InterfaceTexts, Option<String>) {
        let answer = device.answer;
        let of = |texts: &BTreeMap<String, String>| {
            let text = texts.get(&own.index);
            text.map(|text| line(text)).unwrap_or_default()
        };
        let (ip, mac) = (
            of(&answer.addresses),
            of(&answer.macs).to_lowercase().replace(':', "-"),
        );
        let found = reference(device, own, (&ip, &mac), options);
        let reference = found.clone().unwrap_or_else(|| own.index.clone());
        let (host, _) = device_address(device.address).unwrap_or_default();
        let description = description(own, &reference, (&ip, &mac), options);
        let texts = InterfaceTexts {
            ip: shown(&ip, "No Ip"),
            mac: shown(&mac, "No Ethernet Id"),
            descr: line(&own.descr),
            alias: line(&own.alias),
            name: match own.name == own.index {
                true => String::new(),
                false => line(&own.name),
            },
            id: format!("{}_{}", plain(&host), trimmed(&reference)),
            reference: reference.replace(' ', "\\ ").replace(':', "\\:"),
            description,
            speed_bytes: answer.speed_bits(&own.index) / 8,
            mtu: of(&answer.mtus),
        };
        (texts, found)
    }
}

impl<'a> CfgInterface<'a> {
    fn new(
        device: &CfgDevice<'_>,
        own: &'a FoundInterface,
        options: &'a CfgOptions<'a>,
    ) -> CfgInterface<'a> {
        let (texts, reference) = InterfaceTexts::new(device, own, options);
        let mut problems = problems(own, texts.speed_bytes, options);
        if reference.is_none() {
            let refs = options.refs.join(",");
            problems.push(format!("--ifref={refs} is not unique for this interface"));
        }
        CfgInterface {
            own,
            options,
            head: format!(
                "### Interface {} >> Descr: '{}' | Name: '{}' | Ip: '{}' | Eth: '{}' ###\n",
                own.index, texts.descr, texts.name, texts.ip, texts.mac,
            ),
            is_broken: texts.speed_bytes == 0 || reference.is_none(),
            directives: directives(device, own, &texts),
            problems,
            texts,
        }
    }

    /// The lines of the target.
    fn target(&self) -> String {
        format!("\n{}\n", self.directives.join("\n"))
    }

    fn put(&self, out: &mut String) {
        out.push_str(&self.head);
        if self.problems.is_empty() {
            out.push_str(&self.target());
        } else {
            out.push_str("### The following interface is commented out because:\n");
            for problem in &self.problems {
                let _ = writeln!(out, "### * {problem}");
            }
            for line in self.target().lines() {
                let _ = writeln!(out, "# {line}");
            }
        }
        out.push_str("\n\n");
    }

    /// The interface with cfgmaker's variables.
    fn case(self, device: &CfgDevice<'_>) -> PerlCase {
        let texts = &self.texts;
        let mut variables = device.variables();
        let [target, setenv, maxbytes, title, pagetop] = &self.directives;
        let kind = line(&self.own.kind);
        let number = self.options.types.get(&kind).unwrap_or(&kind).clone();
        let sysname = device.system("sysName");
        let mut put = |name, text: &str| variables.push((name, text.to_string()));
        put("head_lines", &self.head);
        put("target_name", &texts.id);
        put("if_ref", &texts.reference);
        put("if_ok", truth(!self.is_broken));
        put("default_target_lines", &self.target());
        put("default_target_directive", target);
        put("default_setenv_directive", setenv);
        put("default_directory_directive", "");
        put("default_maxbytes_directive", maxbytes);
        put("default_title_directive", title);
        put("default_pagetop_directive", pagetop);
        put("if_ip", &texts.ip);
        put("ifindex", &self.own.index);
        put("if_index", &self.own.index);
        put("if_eth", &texts.mac);
        put("if_speed", &texts.speed_bytes.to_string());
        put("if_speed_str", &speed(texts.speed_bytes));
        put("if_type", &number);
        put("if_type_num", &number);
        put("if_type_desc", &kind);
        put("if_dns_name", "No DNS name");
        put(
            "if_snmp_descr",
            &shown(&texts.descr, "No Description").replace(' ', "-"),
        );
        put("if_snmp_name", &shown(&texts.name, "No Name"));
        put("if_snmp_alias", &texts.alias);
        put("if_cisco_descr", "");
        put(
            "if_description",
            &format!("{} {} ", texts.descr, texts.alias),
        );
        put("desc_prefix", PREFIX);
        let bare = texts.description.strip_prefix(PREFIX);
        put("if_title_desc", bare.unwrap_or(&texts.description));
        put("if_title", &format!("{} -- {sysname}", texts.description));
        put("if_vlan_id", "No Vlan");
        put("if_cisco_trunk", "");
        put("if_MTU", &shown(&texts.mtu, "No MTU"));
        self.put_states(&number, &mut put);
        PerlCase {
            variables,
            problems: Some(self.problems),
        }
    }

    /// Variables about the state and the type.
    fn put_states(&self, number: &str, put: &mut impl FnMut(&'static str, &str)) {
        let (is_admin, is_oper) = (self.own.admin == Some(1.0), self.own.oper == Some(1.0));
        let is_up = down(self.own, self.options).next().is_none();
        let is_loopback = number == "24";
        let has_type = self.options.loopback || !is_loopback;
        put("if_admin", truth(is_admin));
        put("if_oper", truth(is_oper));
        put("default_ifstate", truth(is_up));
        put("default_iftype", truth(has_type));
        put("default", truth(is_up && has_type));
        put("if_is_ciscovlan", "");
        let number = number.parse().unwrap_or(0);
        let mut types: BTreeMap<&'static str, bool> = BTreeMap::new();
        for (name, numbers) in TYPES {
            *types.entry(name).or_default() |= numbers.contains(&number);
        }
        for (name, is) in types {
            put(name, truth(is));
        }
    }
}

/// Kinds of interfaces, and numbers of ifType; cfgmaker counts some kinds as parts of others.
const TYPES: [(&str, &[u32]); 10] = [
    ("if_is_ethernet", ETHERNET),
    ("if_is_isdn", ISDN),
    ("if_is_dialup", ISDN),
    ("if_is_dialup", &[23, 81, 82, 108]),
    ("if_is_atm", &[37, 49, 105, 106, 107, 114, 134]),
    ("if_is_wan", &[22, 30, 32, 39, 44, 46]),
    ("if_is_lan", ETHERNET),
    ("if_is_lan", &[8, 9, 11, 15, 26, 55, 59, 60, 115]),
    ("if_is_dsl", &[94, 95, 96, 97]),
    ("if_is_loopback", &[24]),
];
const ETHERNET: &[u32] = &[6, 7, 26, 62, 69, 117];
const ISDN: &[u32] = &[20, 21, 63, 75, 76, 77];

/// Truth, as Perl has it.
fn truth(is: bool) -> &'static str {
    match is {
        true => "1",
        false => "",
    }
}

/// Lines for Target, SetEnv, MaxBytes, Title and PageTop.
fn directives(device: &CfgDevice<'_>, own: &FoundInterface, texts: &InterfaceTexts) -> [String; 5] {
    let id = &texts.id;
    let mut target = format!("Target[{id}]: {}:{}", texts.reference, device.connect());
    if let Some(user) = device.user() {
        let _ = write!(target, "\nSnmpOptions[{id}]: {user}");
    }
    if version(device.credentials) > 1 && !device.answer.has_large.contains(&own.index) {
        let _ = write!(target, "\nnoHC[{id}]: yes");
    }
    let system = |name: &str| html(&device.system(name));
    let title = format!("{} -- {}", html(&texts.description), system("sysName"));
    let table = table_text([
        (
            "System:",
            format!("{} in {}", system("sysName"), system("sysLocation")),
        ),
        ("Maintainer:", system("sysContact")),
        (
            "Description:",
            html(&format!("{} {} ", texts.descr, texts.alias)),
        ),
        ("ifType:", html(&line(&own.kind))),
        ("ifName:", html(&texts.name)),
        ("Max Speed:", speed(texts.speed_bytes)),
        ("Ip:", html(&texts.ip)),
    ]);
    [
        target,
        format!(
            "SetEnv[{id}]: MRTG_INT_IP=\"{}\" MRTG_INT_DESCR=\"{}\"",
            texts.ip.replace('"', "'"),
            texts.descr.replace('"', "'"),
        ),
        format!("MaxBytes[{id}]: {}", texts.speed_bytes),
        format!("Title[{id}]: {title}"),
        format!("PageTop[{id}]: <h1>{title}</h1>\n{}", table.trim_end()),
    ]
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
    let others = [
        (
            own.kind == "softwareLoopback" && !options.loopback,
            "it is a Software Loopback interface",
        ),
        (speed_bytes == 0, "has no ifSpeed property"),
    ];
    let others = others.into_iter().filter_map(|(is, why)| is.then_some(why));
    down(own, options).chain(others).map(String::from).collect()
}

/// Reasons by which an interface is down.
fn down(
    own: &FoundInterface,
    options: &CfgOptions<'_>,
) -> impl Iterator<Item = &'static str> + use<> {
    let down = [
        (own.admin == Some(2.0), "it is administratively DOWN"),
        (own.admin == Some(3.0), "it is in administrative TEST mode"),
        (own.oper == Some(2.0), "it is operationally DOWN"),
        (own.oper == Some(3.0), "it is in operational TEST mode"),
    ];
    let is_taken = options.down;
    let down = down.into_iter().filter(move |_| !is_taken);
    down.filter_map(|(is, why)| is.then_some(why))
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
    found.unwrap_or_else(|| format!("{PREFIX}{}", shown()))
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
                rules: &PerlRules::default(),
                types: &BTreeMap::new(),
            };
            let text = text(&[device], &options).unwrap();
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
