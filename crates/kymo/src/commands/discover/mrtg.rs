//! Devices as an mrtg.cfg, in the lines that cfgmaker writes by default. Texts of devices become parts of a file that has
//! commands in it for MRTG: they are one line each, and a reference has plain signs alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Result, bail};
use kymo_base::name::DisplayName;
use kymo_poll::devices::FoundInterface;
use kymo_scrape::{DeviceCredentials, SNMP_PORT, UserPassword, device_address};
use kymo_wire::mrtg_cfg::Session;

use super::answer::Answer;
use super::oid_pick::{has_object, one_target};
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

/// Words for the name of an address; no name is looked up.
const NO_DNS_NAME: &str = "No DNS name";

/// Numbers of ifType, with cfgmaker's words for them.
const TYPE_WORDS: &str = include_str!("if_types.txt");

/// Names of targets that are taken, in lower case: MRTG does not tell `Eth1` from `eth1`.
type TargetNames = BTreeSet<String>;

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
    let mut names = TargetNames::new();
    devices.iter().try_for_each(CfgDevice::check)?;
    if options.rules.is_empty() {
        for device in devices {
            device.put(options, &mut names, &mut out);
        }
        return Ok(out);
    }
    let mut cases: Vec<PerlCase> = Vec::new();
    for device in devices {
        device.put_cases(options, &mut names, &mut cases);
    }
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
    /// Refuses a device that would be read as another one, or not at all.
    fn check(&self) -> Result<()> {
        let config = one_target("1", &self.connect(), self.user().as_deref());
        let is_own = |session: &Session| match self.credentials {
            DeviceCredentials::V1 { community } | DeviceCredentials::V2c { community } => {
                session.community.reveal() == community.text().as_bytes()
            }
            DeviceCredentials::V3 { .. } => true,
        };
        let is_read = config.is_some_and(|config| {
            // A command in backticks would be a reading without a session.
            matches!((config.readings(), config.sessions()), ([_], [session]) if is_own(session))
        });
        match is_read {
            true => Ok(()),
            false => bail!(
                "cannot write {} into an mrtg.cfg: its address, community, user or password has signs that MRTG does not read there",
                DisplayName(self.address.as_bytes())
            ),
        }
    }

    fn put(&self, options: &CfgOptions<'_>, names: &mut TargetNames, out: &mut String) {
        *out += &self.head();
        out.push_str("\n\n");
        for interface in self.interfaces {
            CfgInterface::new(self, interface, options, names).put(out);
        }
    }

    /// Adds the device and its interfaces, for templates.
    fn put_cases(
        &self,
        options: &CfgOptions<'_>,
        names: &mut TargetNames,
        cases: &mut Vec<PerlCase>,
    ) {
        cases.push(PerlCase {
            variables: [("head_lines", self.head())]
                .into_iter()
                .chain(self.variables())
                .collect(),
            problems: None,
        });
        for own in self.interfaces {
            cases.push(CfgInterface::new(self, own, options, names).case(self));
        }
    }

    fn variables(&self) -> Variables {
        let (host, _) = device_address(self.address).unwrap_or_default();
        vec![
            ("router_name", host),
            ("router_connect", self.connect()),
            ("community", self.community()),
            ("v3options", self.user().unwrap_or_default()),
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
        let port = match port {
            SNMP_PORT => String::new(),
            port => port.to_string(),
        };
        let (community, version) = (self.community(), version(self.credentials));
        format!("{community}@{host}:{port}::::{version}")
    }

    fn community(&self) -> String {
        match self.credentials {
            DeviceCredentials::V1 { community } | DeviceCredentials::V2c { community } => {
                community.text().replace('@', "\\@").replace(' ', "\\ ")
            }
            DeviceCredentials::V3 { .. } => "public".into(),
        }
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

/// Texts by which an interface is known, each on one line; empty: it has none, or others have the same, which is none for cfgmaker.
struct InterfaceKeys {
    ip: String,
    mac: String,
    descr: String,
    name: String,
}

impl InterfaceKeys {
    fn new(device: &CfgDevice<'_>, own: &FoundInterface) -> InterfaceKeys {
        let only = |text: &str, same: usize| match same {
            1 => line(text).trim_end().to_string(),
            _ => String::new(),
        };
        let once = |all: &BTreeMap<String, String>| {
            let text = all.get(&own.index).map_or("", |text| text);
            only(text, all.values().filter(|one| *one == text).count())
        };
        let (answer, all) = (device.answer, device.interfaces.iter());
        InterfaceKeys {
            ip: once(&answer.addresses),
            mac: once(&answer.macs).to_lowercase().replace(':', "-"),
            descr: only(&own.descr, all.filter(|one| one.descr == own.descr).count()),
            name: once(&answer.names),
        }
    }

    /// ifDescr, as cfgmaker shows it.
    fn shown_descr(&self) -> String {
        shown(&self.descr, "No Description").replace(' ', "-")
    }

    /// The first reference that names this interface alone; `None`: there is none.
    fn reference(&self, own: &FoundInterface, options: &CfgOptions<'_>) -> Option<String> {
        options.refs.iter().find_map(|kind| {
            let (mark, key) = match kind.as_str() {
                "name" => ("#", &self.name),
                "descr" => ("\\", &self.descr),
                "ip" => ("/", &self.ip),
                "eth" => ("!", &self.mac),
                _ => ("", &own.index),
            };
            is_safe(key).then(|| format!("{mark}{key}"))
        })
    }

    fn description(
        &self,
        own: &FoundInterface,
        reference: &str,
        options: &CfgOptions<'_>,
    ) -> String {
        let alias = line(&own.alias);
        let known = |text: &str, shown: String| (!text.is_empty()).then_some(shown);
        let mut kinds = options.descriptions.iter();
        let found = kinds.find_map(|kind| match kind.as_str() {
            "name" => known(&self.name, format!("#{}", self.name)),
            "descr" => known(&self.descr, self.shown_descr()),
            "alias" => known(&alias, format!("{} {alias} ", self.shown_descr())),
            "ip" => known(&self.ip, self.ip.clone()),
            "eth" => known(&self.mac, self.mac.clone()),
            _ => Some(format!("Interface {}", own.index)),
        });
        let shown = || reference.trim_start_matches(['#', '\\', '/', '!']);
        let text = found.unwrap_or_else(|| shown().into());
        prefix(options).to_string() + &text
    }
}

/// Begin of a title.
fn prefix(options: &CfgOptions<'_>) -> &'static str {
    match options.descriptions {
        [] => "Traffic Analysis for ",
        [..] => "",
    }
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
    /// Number of ifType, and cfgmaker's words for it.
    kind: String,
    kind_words: &'static str,
}

impl InterfaceTexts {
    /// `None` in the place of a reference: no reference names this interface alone.
    fn new(
        device: &CfgDevice<'_>,
        own: &FoundInterface,
        options: &CfgOptions<'_>,
        names: &mut TargetNames,
    ) -> (InterfaceTexts, Option<String>) {
        let answer = device.answer;
        let of = |texts: &BTreeMap<String, String>| {
            let text = texts.get(&own.index);
            text.map(|text| line(text)).unwrap_or_default()
        };
        let keys = InterfaceKeys::new(device, own);
        let found = keys.reference(own, options);
        let reference = found.clone().unwrap_or_else(|| own.index.clone());
        let (host, _) = device_address(device.address).unwrap_or_default();
        let kind = line(&own.kind);
        let kind = options.types.get(&kind).unwrap_or(&kind).clone();
        let words = TYPE_WORDS.lines().filter_map(|line| line.split_once(' '));
        let mut words = words.filter(|(number, _)| *number == kind).map(|of| of.1);
        let texts = InterfaceTexts {
            ip: shown(&keys.ip, "No Ip"),
            mac: shown(&keys.mac, "No Ethernet Id"),
            descr: keys.shown_descr(),
            alias: line(&own.alias),
            name: shown(&keys.name, "No Name"),
            id: unique(format!("{}_{}", plain(&host), trimmed(&reference)), names),
            reference: reference.replace(' ', "\\ ").replace(':', "\\:"),
            description: keys.description(own, &reference, options),
            kind_words: words.next().unwrap_or("Unknown Interface Type"),
            kind: shown(&kind, "Unknown Type"),
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
        names: &mut TargetNames,
    ) -> CfgInterface<'a> {
        let (texts, reference) = InterfaceTexts::new(device, own, options, names);
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
        let is_known = texts.kind.parse::<u32>().is_ok();
        put("if_type", if is_known { &texts.kind } else { "-1" });
        put("if_type_num", &texts.kind);
        put("if_type_desc", texts.kind_words);
        put("if_dns_name", NO_DNS_NAME);
        put("if_snmp_descr", &texts.descr);
        put("if_snmp_name", &texts.name);
        put("if_snmp_alias", &texts.alias);
        put("if_cisco_descr", "");
        put(
            "if_description",
            &format!("{} {} ", texts.descr, texts.alias),
        );
        let prefix = prefix(self.options);
        put("desc_prefix", prefix);
        let bare = texts.description.strip_prefix(prefix);
        put("if_title_desc", bare.unwrap_or(&texts.description));
        put("if_title", &format!("{} -- {sysname}", texts.description));
        put("if_vlan_id", "No Vlan");
        put("if_cisco_trunk", "");
        put("if_MTU", &shown(&texts.mtu, "No MTU"));
        self.put_states(&mut put);
        PerlCase {
            variables,
            problems: Some(self.problems),
        }
    }

    /// Variables about the state and the type.
    fn put_states(&self, put: &mut impl FnMut(&'static str, &str)) {
        let (is_admin, is_oper) = (self.own.admin == Some(1.0), self.own.oper == Some(1.0));
        let is_up = down(self.own, self.options).next().is_none();
        let number = self.texts.kind.parse().unwrap_or(0);
        let is_loopback = number == 24;
        let has_type = self.options.loopback || !is_loopback;
        put("if_admin", truth(is_admin));
        put("if_oper", truth(is_oper));
        put("default_ifstate", truth(is_up));
        put("default_iftype", truth(has_type));
        put("default", truth(is_up && has_type));
        put("if_is_ciscovlan", "");
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
        (
            "ifType:",
            html(&format!("{} ({})", texts.kind_words, texts.kind)),
        ),
        ("ifName:", html(&texts.name)),
        ("Max Speed:", speed(texts.speed_bytes)),
        ("Ip:", html(&format!("{} ({NO_DNS_NAME})", texts.ip))),
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

/// The name of a target, with a number behind it where another target has it.
fn unique(name: String, names: &mut TargetNames) -> String {
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    let mut all = [name.clone()].into_iter().chain(numbered);
    let free = all.find(|name| names.insert(name.to_lowercase()));
    free.unwrap_or(name)
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
    use kymo_wire::mrtg_cfg::{Access, KeySource, Secret};
    use proptest::prelude::*;

    use super::super::oid_pick::config;
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
        answer.names.insert("1".into(), evil.into());
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

    /// A device of three interfaces, whose texts are these in turn.
    fn read_back(credentials: &DeviceCredentials, texts: &[String]) -> Result<()> {
        let mut texts = texts.iter().cycle().cloned();
        let mut text = || texts.next().unwrap_or_default();
        let speed = |index| format!("ifSpeed{{ifIndex=\"{index}\"}} 1e8\n");
        let answer: String = (1..=3).map(speed).collect();
        let mut answer = Answer::read(answer.as_bytes()).unwrap();
        for name in ["sysName", "sysDescr", "sysContact", "sysLocation"] {
            answer.system.insert(name.into(), text());
        }
        for index in ["1", "2", "3"] {
            answer.names.insert(index.into(), text());
        }
        let interfaces = ["1", "2", "3"].map(|index| FoundInterface {
            index: index.into(),
            alias: text(),
            descr: text(),
            kind: text(),
            ..FoundInterface::default()
        });
        let device = CfgDevice {
            address: "192.0.2.1:1161",
            credentials,
            interfaces: &interfaces,
            answer: &answer,
        };
        let options = CfgOptions {
            refs: &["name", "descr", "nr"].map(String::from),
            descriptions: &["alias".into()],
            global: &["WorkDir: /".into()],
            down: true,
            loopback: true,
            rules: &PerlRules::default(),
            types: &BTreeMap::new(),
        };
        let text = super::text(&[device], &options)?;
        let config = config(text.clone()).unwrap_or_else(|why| panic!("{text}: {:?}", why.0));
        assert_eq!(config.targets().len(), 3, "{text}");
        let [session] = config.sessions() else {
            panic!("{text}");
        };
        let password =
            |of: &UserPassword| KeySource::Password(Secret::new(of.password.text().as_bytes()));
        match (credentials, &session.access) {
            (
                DeviceCredentials::V3 {
                    user,
                    auth,
                    privacy,
                    context,
                },
                Access::V3(own),
            ) => {
                assert_eq!(
                    (&*own.name, &*own.context_name),
                    (user.as_bytes(), context.as_bytes())
                );
                assert_eq!(
                    own.auth.as_ref().map(|auth| &auth.1),
                    auth.as_ref().map(password).as_ref()
                );
                assert_eq!(
                    own.privacy.as_ref().map(|of| &of.1),
                    privacy.as_ref().map(password).as_ref()
                );
            }
            (DeviceCredentials::V1 { community }, Access::V1)
            | (DeviceCredentials::V2c { community }, Access::V2c) => {
                assert_eq!(session.community.reveal(), community.text().as_bytes());
            }
            (_, access) => panic!("{access:?}: {text}"),
        }
        Ok(())
    }

    proptest! {
        /// `kymo poll` refused passwords with a quote or a backslash.
        #[test]
        fn kymo_poll_reads_what_is_written(
            secrets in proptest::collection::vec("[!-~][ -~ä€]{0,16}[!-~]", 3),
            names in proptest::collection::vec("[ -~ä]{1,16}", 2),
            texts in proptest::collection::vec(prop_oneof!["[aA/_1]{1,2}", "[ -~é\n\t]{0,12}"], 1..16),
        ) {
            let of = |text: &String, protocol: &str| Some(UserPassword {
                protocol: protocol.into(),
                password: kymo_scrape::Secret::of_file(text),
            });
            let user = DeviceCredentials::V3 {
                user: names[0].clone(),
                auth: of(&secrets[0], "sha256"),
                privacy: of(&secrets[1], "aes"),
                context: names[1].clone(),
            };
            read_back(&user, &texts).unwrap();
            let community = kymo_scrape::Secret::of_file(&secrets[2]);
            let is_odd = community.text().contains(['&', '`']);
            for credentials in [DeviceCredentials::V1 { community: community.clone() }, DeviceCredentials::V2c { community }] {
                let read = read_back(&credentials, &texts);
                prop_assert!(read.is_ok() || is_odd, "{read:?}");
            }
        }
    }

    #[test]
    fn texts_that_no_line_can_have_are_refused() {
        for (secret, is_taken) in [
            ("a'b\\c\"", true),
            ("a\tb", false),
            ("a\nb", false),
            ("a\\", true),
        ] {
            let password = kymo_scrape::Secret::of_file(secret);
            let auth = UserPassword {
                protocol: "md5".into(),
                password,
            };
            let user = DeviceCredentials::V3 {
                user: "u".into(),
                auth: Some(auth),
                privacy: None,
                context: String::new(),
            };
            assert_eq!(read_back(&user, &[]).is_ok(), is_taken, "{secret:?}");
        }
        for community in ["", "a\tb", "x&y:z", "a`id`", "`id`"] {
            let community = kymo_scrape::Secret::of_file(community);
            let why = read_back(&DeviceCredentials::V2c { community }, &[])
                .unwrap_err()
                .to_string();
            assert!(
                why.starts_with("cannot write 192.0.2.1:1161 into an mrtg.cfg: "),
                "{why}"
            );
        }
    }
}
