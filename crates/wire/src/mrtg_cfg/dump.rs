//! A description of a parsed target, for people.

use super::config::{Config, Target};
use super::expression::Expression;
use super::keyword::Keyword;
use super::reading::{Index, Magic, ObjectRequest, Reading, ReferenceKind, Source};
use super::secret::ConfigText;
use super::text::wide;
use super::trace::Secrets;
use kymo_base::printf::put_unsigned;

impl Target<'_> {
    /// Appends a few lines: the name and its place, each keyword's value, and the readings with their devices. Control
    /// characters are not escaped.
    pub fn put_dump(self, secrets: Secrets, out: &mut Vec<u8>) {
        let (file, line) = self.place();
        put(
            out,
            &[
                b"target ",
                shown(&self.name(), secrets),
                b" (",
                file,
                b" line ",
            ],
        );
        put_unsigned(out, line.into(), 0);
        out.extend_from_slice(b")\n");
        for (keyword, word) in Keyword::ALL {
            let value = self.value(keyword);
            if let Some(value) = value.filter(|_| !shows_secrets(keyword, secrets)) {
                let value = without_devices(&value, secrets);
                put(out, &[b"  ", word.as_bytes(), b": ", value, b"\n"]);
            }
        }
        let how = match self.expression() {
            Expression::Reading(_) => &b"one reading"[..],
            Expression::Sum(_) => b"a sum",
            Expression::Formula(..) => b"a formula",
        };
        put(out, &[b"  is ", how, b"\n"]);
        for reading in self.config.readings_of(self.expression()).iter() {
            out.extend_from_slice(b"    [");
            put_unsigned(out, u64::from(*reading), 0);
            out.extend_from_slice(b"] ");
            let reading = &self.config.readings()[wide(*reading)];
            put_reading(out, self.config, reading, secrets);
            out.push(b'\n');
        }
        let targets = &self.config.targets;
        let abouts = self.config.abouts().iter().copied();
        let is_its = |(target, _): &(u32, u32)| std::ptr::eq(&targets[wide(*target)], self.kept);
        for (_, reading) in abouts.filter(is_its) {
            out.extend_from_slice(b"    on its page ");
            let reading = &self.config.readings()[wide(reading)];
            put_reading(out, self.config, reading, secrets);
            out.push(b'\n');
        }
    }
}

/// True for values that contain communities or keys, if these are to be masked.
fn shows_secrets(keyword: Keyword, secrets: Secrets) -> bool {
    let has = [
        Keyword::Target,
        Keyword::RouterName,
        Keyword::RouterUptime,
        Keyword::SnmpOptions,
    ];
    secrets == Secrets::Masked && has.contains(&keyword)
}

fn put(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// The text if it is a plain name, or dots.
fn shown(text: &[u8], secrets: Secrets) -> &[u8] {
    match secrets {
        Secrets::Shown => text,
        Secrets::Masked => ConfigText(text).text().as_bytes(),
    }
}

/// Masks a title that contains a sign of a device or of a Perl hash: without its line end, it includes the next line.
fn without_devices(text: &[u8], secrets: Secrets) -> &[u8] {
    let may_have_one = text.contains(&b'@') || memchr::memmem::find(text, b"=>").is_some();
    match secrets == Secrets::Masked && may_have_one {
        true => ConfigText::DOTS.as_bytes(),
        false => text,
    }
}

fn put_reading(out: &mut Vec<u8>, config: &Config, reading: &Reading, secrets: Secrets) {
    let snmp = match reading.source {
        Source::Snmp(snmp) => snmp,
        Source::Command(command) => {
            return put(out, &[b"runs ", shown(&config.text(command), secrets)]);
        }
    };
    for (at, object) in snmp.objects.iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(b", ");
        }
        put_object(out, config, object);
    }
    let session = &config.sessions()[wide(snmp.session)];
    let version = session.access.version();
    let how = format!(
        " of {:?} port {}, {version}, {} attempts of {} s",
        session.host, session.port, session.attempts, session.timeout_s
    );
    out.extend_from_slice(how.as_bytes());
}

fn put_object(out: &mut Vec<u8>, config: &Config, object: &ObjectRequest) {
    if object.magic != Magic::Get {
        out.extend_from_slice(format!("{:?} ", object.magic).as_bytes());
    }
    let numbers = config.oid(object.oid).iter().map(u32::to_string);
    let mut numbers: Vec<String> = numbers.collect();
    let of = match object.index {
        Index::None => None,
        Index::Number(number) => Some(number.to_string()),
        Index::Reference(..) => Some("(index)".into()),
    };
    let position = object.index_position.map_or(numbers.len(), usize::from);
    if let Some(of) = of {
        numbers.insert(position.min(numbers.len()), of);
    }
    out.extend_from_slice(numbers.join(".").as_bytes());
    if let Index::Reference(kind, key) = object.index {
        let kind = match kind {
            ReferenceKind::Descr => &b"ifDescr "[..],
            ReferenceKind::Name => b"ifName ",
            ReferenceKind::Ip => b"address ",
            ReferenceKind::Eth => b"ifPhysAddress ",
            ReferenceKind::Type => b"ifType ",
        };
        put(out, &[b" of ", kind, &config.text(key)]);
    }
}
