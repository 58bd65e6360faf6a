//! The output of `--debug=tarp`: each step from a target's text to its readings, in MRTG's words.

use super::readings::{Manner, Seen, unescaped};
use super::secret::ConfigText;
use super::target_text::{Device, Ref, TargetMatch, Turned};

/// Receiver of the steps.
pub enum Trace<'t> {
    /// No receiver.
    Off,
    /// Receives each message without a line end, and MRTG's word for its kind: `tarp` for parsing a target's text, `snpo` for a
    /// request to be made.
    On(Secrets, &'t mut dyn FnMut(&str, &[u8])),
}

/// Treatment of communities, and of texts that may contain them, in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// Communities are `***`; texts that are not plain names are dots.
    Masked,
    /// Texts are unchanged.
    Shown,
}

/// The messages of one target.
pub(super) struct Steps {
    messages: Vec<(&'static str, Vec<u8>)>,
    secrets: Secrets,
}

impl Steps {
    pub(super) fn new(secrets: Secrets) -> Steps {
        Steps {
            messages: Vec::new(),
            secrets,
        }
    }

    pub(super) fn say(&mut self, parts: &[&[u8]]) {
        self.messages.push(("tarp", parts.concat()));
    }

    /// A part of the target's text. Before the text is parsed, a community may be anywhere in it.
    pub(super) fn text<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        match self.secrets {
            Secrets::Shown => text,
            Secrets::Masked => ConfigText(text).text().as_bytes(),
        }
    }

    pub(super) fn found(&mut self, seen: Seen, text: &[u8], what: &TargetMatch, manner: &Manner) {
        let kind = match what {
            TargetMatch::Command(_) => "program",
            TargetMatch::Pair(..) => "complex",
            _ => "simple",
        };
        let number = seen.number().to_string();
        let (number, kind) = (number.as_bytes(), kind.as_bytes());
        let shown = self.text(text);
        match (seen, what) {
            (Seen::Before(_), _) => {
                self.say(&[b"Existing ", kind, b" target [", number, b"]"]);
            }
            (Seen::New(_), TargetMatch::Command(_)) => {
                self.say(&[b"New program target [", number, b"] '", shown, b"'"]);
                let command = unescaped(text, b"`");
                let message = [b"run external ", self.text(&command)].concat();
                self.messages.push(("snpo", message));
            }
            (Seen::New(_), _) => {
                let mut message =
                    [b"New ", kind, b" target [", number, b"] '", shown, b"':\n"].concat();
                self.put_details(&mut message, what, manner);
                self.messages.push(("tarp", message));
                self.messages.push(("snpo", self.run_line(what, manner)));
            }
        }
    }

    /// Sends the messages to the trace. An unparsable text stays hidden: a community may stand in the device's place.
    pub(super) fn show(self, is_understood: bool, trace: &mut Trace) {
        let Trace::On(_, out) = trace else {
            return;
        };
        let count = match is_understood || self.secrets == Secrets::Shown {
            true => self.messages.len(),
            false => 1,
        };
        let messages = self.messages.iter().take(count);
        messages.for_each(|(kind, message)| out(kind, message));
    }

    fn community(&self, device: &Device) -> Vec<u8> {
        match self.secrets {
            Secrets::Shown => unescaped(device.community, b"@ "),
            Secrets::Masked => b"***".to_vec(),
        }
    }

    /// MRTG's message about a request.
    fn run_line(&self, what: &TargetMatch, manner: &Manner) -> Vec<u8> {
        let Some(([input, output], device)) = oids_of(what, manner) else {
            return Vec::new();
        };
        let community = self.community(&device);
        let parts = [
            b"run snmpget from ",
            self.text(input),
            b"&",
            self.text(output),
            b":",
            &community,
            b"@",
            self.host(device.host),
        ];
        parts.concat()
    }

    /// A host in a message. Only brackets make it differ from a plain name.
    fn host<'t>(&self, host: &'t [u8]) -> &'t [u8] {
        match host.first() {
            Some(b'[') => host,
            _ => self.text(host),
        }
    }

    fn put_details(&self, out: &mut Vec<u8>, what: &TargetMatch, manner: &Manner) {
        let refs = match what {
            TargetMatch::Pair(specs, _) => specs.map(|spec| spec.of),
            TargetMatch::Interface(_, of, _) => [Some(*of); 2],
            TargetMatch::Command(_) | TargetMatch::Neither => [None; 2],
        };
        let Some((oids, device)) = oids_of(what, manner) else {
            return;
        };
        let ipv4 = match manner.ipv4_only {
            true => b"1",
            false => b"0",
        };
        let keys = refs.map(key);
        let kinds = refs.map(kind);
        for part in [
            &b"  Comu:  "[..],
            &self.community(&device),
            b", Host: ",
            self.host(device.host),
            b"\n  Opt:   ",
            device.options,
            b", IPv4: ",
            ipv4,
            b"\n  Conv:  ",
            self.text(device.conversion.unwrap_or_default()),
            b"\n  OID:   ",
            self.text(oids[0]),
            b", ",
            self.text(oids[1]),
            b"\n  IfSel: ",
            kinds[0],
            b", ",
            kinds[1],
            b"\n  Key:   ",
            self.text(&keys[0]),
            b", ",
            self.text(&keys[1]),
        ] {
            out.extend_from_slice(part);
        }
    }
}

fn oids_of<'t>(what: &TargetMatch<'t>, manner: &Manner) -> Option<([&'t [u8]; 2], Device<'t>)> {
    match what {
        TargetMatch::Pair(specs, device) => Some((specs.map(|spec| spec.oid), *device)),
        TargetMatch::Interface(turned, _, device) => {
            let mut oids = manner.octets(device.options);
            if *turned == Turned::Yes {
                oids.reverse();
            }
            Some((oids, *device))
        }
        TargetMatch::Command(_) | TargetMatch::Neither => None,
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
