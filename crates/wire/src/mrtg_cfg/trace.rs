//! What `--debug=tarp` shows: each step from a target's text to its readings, in MRTG's words.

use super::readings::{Manner, Seen};
use super::secret::Secret;
use super::target_text::{Ref, Turned, What};

/// Who gets to know of each step.
pub enum Trace<'t> {
    /// No one.
    Off,
    /// Gets each message, without a line end.
    On(Secrets, &'t mut dyn FnMut(&[u8])),
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
    messages: Vec<Vec<u8>>,
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
        self.messages.push(parts.concat());
    }

    pub(super) fn found(&mut self, seen: Seen, text: &[u8], what: &What, manner: &Manner) {
        let kind = match what {
            What::Command(_) => "program",
            What::Pair(..) => "complex",
            _ => "simple",
        };
        if let What::Pair(_, device) | What::Interface(_, _, device) = what {
            self.secrets.push(Secret::new(device.community));
        }
        let number = seen.number().to_string();
        let (number, kind) = (number.as_bytes(), kind.as_bytes());
        match (seen, what) {
            (Seen::Before(_), _) => {
                self.say(&[b"Existing ", kind, b" target [", number, b"]"]);
            }
            (Seen::New(_), What::Command(_)) => {
                self.say(&[b"New program target [", number, b"] '", text, b"'"]);
            }
            (Seen::New(_), _) => {
                let mut message =
                    [b"New ", kind, b" target [", number, b"] '", text, b"':\n"].concat();
                put_details(&mut message, what, manner);
                self.messages.push(message);
            }
        }
    }

    pub(super) fn show(self, trace: &mut Trace) {
        let Trace::On(secrets, out) = trace else {
            return;
        };
        for mut message in self.messages {
            if *secrets == Secrets::Masked {
                for secret in &self.secrets {
                    message = masked(&message, secret.reveal());
                }
            }
            out(&message);
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

fn put_details(out: &mut Vec<u8>, what: &What, manner: &Manner) {
    let (oids, refs, device) = match what {
        What::Pair(specs, device) => (
            specs.map(|spec| spec.oid),
            specs.map(|spec| spec.of),
            device,
        ),
        What::Interface(turned, of, device) => {
            let mut oids = manner.octets(device.options);
            if *turned == Turned::Yes {
                oids.reverse();
            }
            (oids, [Some(*of); 2], device)
        }
        What::Command(_) | What::Neither => return,
    };
    let community = super::readings::unescaped(device.community, b"@ ");
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
