//! A device as an mrtg.cfg of one target has it: whether it is read there, and, for oid_pick() of cfgmaker's templates, whether it has an
//! object.

use kymo_poll::asked_agent::AskedAgent;
use kymo_wire::mrtg_cfg::{self, Config, Files, Index, Magic, Problems, Source};
use kymo_wire::snmp::{ObjectValue, Oid};

/// Name of the file.
const NAME: &[u8] = b"/one.cfg";

/// A configuration that is one file.
struct OneFile(String);

impl Files for OneFile {
    fn read(&mut self, path: &[u8]) -> Result<Vec<u8>, String> {
        match path {
            NAME => Ok(self.0.clone().into_bytes()),
            _ => Err("there is no such file".into()),
        }
    }

    fn is_readable(&mut self, path: &[u8]) -> bool {
        path == NAME
    }

    fn names(&mut self, _: &[u8]) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn is_dir(&mut self, path: &[u8]) -> bool {
        path == b"/"
    }

    fn exists(&mut self, path: &[u8]) -> bool {
        self.is_dir(path) || self.is_readable(path)
    }
}

/// True if a device, `community@host:options`, has a value for this OID. `user`: SnmpOptions of a user.
pub(super) fn has_object(router: &str, user: Option<&str>, oid: &str) -> bool {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-.".contains(sign);
    let config = one_target(&format!("{oid}&{oid}"), router, user);
    let config = config.filter(|_| oid.chars().all(is_plain));
    config.is_some_and(|config| has_first_object(&config).unwrap_or(false))
}

/// The configuration of a target of this device; `None`: an mrtg.cfg with it is not read, or is read as another one.
pub(super) fn one_target(reference: &str, router: &str, user: Option<&str>) -> Option<Config> {
    let mut texts = [router].into_iter().chain(user);
    if texts.any(|text| text.contains(char::is_control)) {
        return None;
    }
    let user = user.map_or(String::new(), |user| {
        format!("EnableSnmpV3: yes\nSnmpOptions[a]: {user}\n")
    });
    let text = format!(
        "WorkDir: /\nEnableIPv6: yes\nTarget[a]: {reference}:{router}\nMaxBytes[a]: 1\nTitle[a]: a\n{user}"
    );
    config(text).ok()
}

/// The configuration of a text.
pub(super) fn config(text: String) -> Result<Config, Problems> {
    mrtg_cfg::read(NAME, &mut OneFile(text))
}

fn has_first_object(config: &Config) -> Option<bool> {
    let ([reading], [session]) = (config.readings(), config.sessions()) else {
        return None;
    };
    let Source::Snmp(source) = reading.source else {
        return None;
    };
    let [object, _] = source.objects;
    let mut arcs = config.oid(object.oid).to_vec();
    match (object.magic, object.index) {
        (Magic::Get, Index::None) => {}
        (Magic::Get, Index::Number(number)) => arcs.push(number),
        _ => return None,
    }
    let has_value = |value: ObjectValue| {
        let mut text = Vec::new();
        (value.put_text(&mut text) && !text.is_empty()).then_some(())
    };
    let mut agent = AskedAgent::connect(session).ok()?;
    let found = agent.get(&Oid::of_arcs(&arcs)?, has_value).ok()?;
    Some(found.is_some())
}
