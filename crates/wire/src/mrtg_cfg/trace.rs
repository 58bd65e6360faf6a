//! What `--debug=tarp` shows: each step from a target's text to its readings, in MRTG's words.

use super::readings::{Manner, Seen, unescaped};
use super::secret::Secret;
use super::target_text::{Device, Ref, Turned, What};

/// Who gets to know of each step.
pub enum Trace<'t> {
    /// No one.
    Off,
    /// Gets each message with MRTG's word for its kind, without a line end: `tarp`, how a target's text is read, and `snpo`, what
    /// is going to be asked.
    On(Secrets, &'t mut dyn FnMut(&str, &[u8])),
}

/// What becomes of communities in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// `***`
    Masked,
    /// As they are.
    Shown,
}

/// The messages of one target. They are shown when all of its communities are known.
pub(super) struct Steps {
    messages: Vec<(&'static str, Vec<u8>)>,
    secrets: Vec<Secret>,
}

impl Steps {
    pub(super) fn new() -> Steps {
        Steps {
            messages: Vec::new(),
            secrets: Vec::new(),
        }
    }

    pub(super) fn say(&mut self, parts: &[&[u8]]) {
        self.messages.push(("tarp", parts.concat()));
    }

    pub(super) fn found(&mut self, seen: Seen, text: &[u8], what: &What, manner: &Manner) {
        let kind = match what {
            What::Command(_) => "program",
            What::Pair(..) => "complex",
            _ => "simple",
        };
        if let What::Pair(_, device) | What::Interface(_, _, device) = what {
            for community in [device.community, &unescaped(device.community, b"@ ")] {
                self.secrets.push(Secret::new(community));
            }
        }
        let number = seen.number().to_string();
        let (number, kind) = (number.as_bytes(), kind.as_bytes());
        match (seen, what) {
            (Seen::Before(_), _) => {
                self.say(&[b"Existing ", kind, b" target [", number, b"]"]);
            }
            (Seen::New(_), What::Command(_)) => {
                self.say(&[b"New program target [", number, b"] '", text, b"'"]);
                let command = unescaped(text, b"`");
                let message = [b"run external ", &command[..]].concat();
                self.messages.push(("snpo", message));
            }
            (Seen::New(_), _) => {
                let mut message =
                    [b"New ", kind, b" target [", number, b"] '", text, b"':\n"].concat();
                put_details(&mut message, what, manner);
                self.messages.push(("tarp", message));
                self.messages.push(("snpo", run_line(what, manner)));
            }
        }
    }

    pub(super) fn show(self, trace: &mut Trace) {
        let Trace::On(secrets, out) = trace else {
            return;
        };
        for (kind, mut message) in self.messages {
            if *secrets == Secrets::Masked {
                for secret in &self.secrets {
                    message = masked(&message, secret.reveal());
                }
            }
            out(kind, &message);
        }
    }
}

/// Without a community, which has `@` behind it in targets and a comma in details.
fn masked(message: &[u8], secret: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len());
    let mut rest = message;
    while let Some(at) = memchr::memmem::find(rest, secret) {
        let behind = &rest[at + secret.len()..];
        let is_it = matches!(behind.first(), Some(b'@'))
            && at.checked_sub(1).is_none_or(|before| rest[before] == b':')
            || rest[..at].ends_with(b"Comu:  ");
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(match is_it {
            true => b"***",
            false => &rest[at..at + secret.len()],
        });
        rest = behind;
        if secret.is_empty() {
            break;
        }
    }
    out.extend_from_slice(rest);
    out
}

fn oids_of<'t>(what: &What<'t>, manner: &Manner) -> Option<([&'t [u8]; 2], Device<'t>)> {
    match what {
        What::Pair(specs, device) => Some((specs.map(|spec| spec.oid), *device)),
        What::Interface(turned, _, device) => {
            let mut oids = manner.octets(device.options);
            if *turned == Turned::Yes {
                oids.reverse();
            }
            Some((oids, *device))
        }
        What::Command(_) | What::Neither => None,
    }
}

/// What MRTG says when it asks.
fn run_line(what: &What, manner: &Manner) -> Vec<u8> {
    let Some(([input, output], device)) = oids_of(what, manner) else {
        return Vec::new();
    };
    let community = unescaped(device.community, b"@ ");
    let parts = [
        b"run snmpget from ",
        input,
        b"&",
        output,
        b":",
        &community,
        b"@",
        device.host,
    ];
    parts.concat()
}

fn put_details(out: &mut Vec<u8>, what: &What, manner: &Manner) {
    let refs = match what {
        What::Pair(specs, _) => specs.map(|spec| spec.of),
        What::Interface(_, of, _) => [Some(*of); 2],
        What::Command(_) | What::Neither => [None; 2],
    };
    let Some((oids, device)) = oids_of(what, manner) else {
        return;
    };
    let community = unescaped(device.community, b"@ ");
    let ipv4 = match manner.ipv4_only {
        true => b"1",
        false => b"0",
    };
    let keys = refs.map(key);
    let kinds = refs.map(kind);
    for part in [
        &b"  Comu:  "[..],
        &community,
        b", Host: ",
        device.host,
        b"\n  Opt:   ",
        device.options,
        b", IPv4: ",
        ipv4,
        b"\n  Conv:  ",
        device.conversion.unwrap_or_default(),
        b"\n  OID:   ",
        oids[0],
        b", ",
        oids[1],
        b"\n  IfSel: ",
        kinds[0],
        b", ",
        kinds[1],
        b"\n  Key:   ",
        &keys[0],
        b", ",
        &keys[1],
    ] {
        out.extend_from_slice(part);
    }
}

fn kind(of: Option<Ref>) -> &'static [u8] {
    match of {
        None => b"None",
        Some(Ref::Number(_)) => b"If",
        Some(Ref::Ip(_)) => b"Ip",
        Some(Ref::Descr(_)) => b"Descr",
        Some(Ref::Name(_)) => b"Name",
        Some(Ref::Eth(_)) => b"Eth",
        Some(Ref::Type(_)) => b"Type",
    }
}

fn key(of: Option<Ref>) -> Vec<u8> {
    of.map_or(Vec::new(), super::readings::key)
}
