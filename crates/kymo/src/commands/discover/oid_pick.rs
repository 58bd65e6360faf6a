//! oid_pick() of cfgmaker's templates: whether a device has an object. Names of OIDs, devices and users of SNMPv3 are read as those of an
//! mrtg.cfg.

use kymo_poll::asked_agent::AskedAgent;
use kymo_wire::mrtg_cfg::{self, Files, Index, Magic, Source};
use kymo_wire::snmp::{ObjectValue, Oid};

/// Name of the configuration with one target.
const NAME: &[u8] = b"/one.cfg";

/// A configuration with one target.
struct OneTarget(String);

impl Files for OneTarget {
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
    if !oid.chars().all(is_plain) || router.contains(char::is_control) {
        return false;
    }
    let user = user.map_or(String::new(), |user| {
        format!("EnableSnmpV3: yes\nSnmpOptions[a]: {user}\n")
    });
    let mut files = OneTarget(format!(
        "WorkDir: /\nEnableIPv6: yes\nTarget[a]: {oid}&{oid}:{router}\nMaxBytes[a]: 1\nTitle[a]: a\n{user}"
    ));
    has_first_object(&mut files).unwrap_or(false)
}

fn has_first_object(files: &mut OneTarget) -> Option<bool> {
    let config = mrtg_cfg::read(NAME, files).ok()?;
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
