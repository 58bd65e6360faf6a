//! `SnmpOptions`: the body of a Perl hash. Only literals are parsed; no Perl is run.

use super::lines::trim_start;
use super::perl::{is_true, is_word, number};
use super::user::{User, UserOptions};

/// Values of the hash; `None`: the hash lacks the key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SnmpOptions {
    pub(super) timeout_s: Option<f64>,
    pub(super) attempts: Option<f64>,
    pub(super) backoff: Option<f64>,
    pub(super) max_repetitions: Option<f64>,
    pub(super) use_16bit_ids: Option<bool>,
    pub(super) use_getbulk: Option<bool>,
    pub(super) lenient_address: Option<bool>,
    pub(super) lenient_port: Option<bool>,
    pub(super) oid_by_place: Option<bool>,
    /// The user of SNMPv3.
    pub(super) user: UserOptions,
    /// Keys without an effect here: options of Net::SNMP, or `None` for any other key.
    pub(super) others: Vec<Option<&'static str>>,
}

/// Options of Net::SNMP without an effect here.
const OTHERS: [&str; 8] = [
    "community",
    "debug",
    "domain",
    "hostname",
    "localaddr",
    "localport",
    "port",
    "version",
];

const FORMAT: &str = "must have the format OptA => Number, OptB => 'String', ...";

impl SnmpOptions {
    /// Parses `key => value, ...`.
    pub(super) fn parse(text: &[u8]) -> Result<SnmpOptions, String> {
        let mut options = SnmpOptions::default();
        let mut rest = trim_start(text);
        while !rest.is_empty() {
            let (key, after) = word(rest).ok_or(FORMAT)?;
            let after = separator(after, b"=>").or_else(|| separator(after, b","));
            let (value, after) = word(after.ok_or(FORMAT)?).ok_or(FORMAT)?;
            options.set(key, value);
            rest = trim_start(after);
            if !rest.is_empty() {
                let after = separator(rest, b",").or_else(|| separator(rest, b"=>"));
                rest = after.ok_or(FORMAT)?;
            }
        }
        Ok(options)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) {
        match key {
            b"timeout" => self.timeout_s = Some(number(value)),
            b"retries" => self.attempts = Some(number(value)),
            b"backoff" => self.backoff = Some(number(value)),
            b"default_max_repetitions" => self.max_repetitions = Some(number(value)),
            b"use_16bit_request_ids" => self.use_16bit_ids = Some(is_true(value)),
            b"use_getbulk" => self.use_getbulk = Some(is_true(value)),
            b"lenient_source_address_matching" => self.lenient_address = Some(is_true(value)),
            b"lenient_source_port_matching" => self.lenient_port = Some(is_true(value)),
            b"oidbyplace" => self.oid_by_place = Some(is_true(value)),
            // Request ids are never negative anyway.
            b"avoid_negative_request_ids" => {}
            _ if self.user.set(key, value) => {}
            _ => {
                let known = |other: &&str| other.as_bytes() == key;
                self.others.push(OTHERS.into_iter().find(known));
            }
        }
    }
}

impl User {
    /// Reads options that describe a user and nothing else. The error is a message without values.
    pub fn of_options(text: &[u8]) -> Result<User, String> {
        let options = SnmpOptions::parse(text)?;
        let of_user = SnmpOptions {
            user: options.user.clone(),
            ..SnmpOptions::default()
        };
        match options == of_user {
            true => options.user.user(),
            false => Err("it has another key than those of a user".into()),
        }
    }
}

fn separator<'t>(text: &'t [u8], mark: &[u8]) -> Option<&'t [u8]> {
    trim_start(text).strip_prefix(mark).map(trim_start)
}

/// A bare word, a number or a quoted string, and the text behind it.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if let [quote @ (b'\'' | b'"'), rest @ ..] = text {
        let end = memchr::memchr(*quote, rest)?;
        let is_plain = !rest[..end].contains(&b'\\')
            && (*quote == b'\'' || !rest[..end].iter().any(|byte| b"$@".contains(byte)));
        return is_plain.then_some((&rest[..end], &rest[end + 1..]));
    }
    let is_part = |byte: &&u8| is_word(**byte) || **byte == b'.';
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let len = sign + text[sign..].iter().take_while(is_part).count();
    (len > sign).then_some((&text[..len], &text[len..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_read() {
        let text = "retries => 3, 'timeout' => 1.5,backoff=>'2', lenient_source_port_matching => 0, hostname => \"x\",";
        let options = SnmpOptions::parse(text.as_bytes()).unwrap();
        assert_eq!(
            options,
            SnmpOptions {
                timeout_s: Some(1.5),
                attempts: Some(3.0),
                backoff: Some(2.0),
                lenient_port: Some(false),
                others: vec![Some("hostname")],
                ..SnmpOptions::default()
            }
        );
        assert_eq!(SnmpOptions::parse(b" "), Ok(SnmpOptions::default()));
    }

    #[test]
    fn code_is_no_hash() {
        for text in [
            "timeout",
            "timeout =>",
            "=> 1",
            "timeout => 1 retries => 2",
            "timeout => `id`",
            "timeout => 'a\\'b'",
            "username => \"$x\"",
            "timeout => 1 + 1",
            "timeout => 'x",
            "x => [1]",
        ] {
            assert!(SnmpOptions::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
