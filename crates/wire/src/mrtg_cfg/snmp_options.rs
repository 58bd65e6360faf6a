//! `SnmpOptions`: the body of a Perl hash. Only literals are parsed; no Perl is run.

use std::borrow::Cow;

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
const VARIABLE: &str = "has $ or @ in double quotes, which Perl takes for a variable: write \\$ and \\@, or use single quotes";
const ESCAPE: &str = "has a backslash before a letter or a digit in double quotes: write \\\\ for a backslash, or use single quotes";

impl SnmpOptions {
    /// Parses `key => value, ...`.
    pub(super) fn parse(text: &[u8]) -> Result<SnmpOptions, String> {
        let mut options = SnmpOptions::default();
        let mut rest = trim_start(text);
        while !rest.is_empty() {
            let (key, after) = word(rest)?;
            let after = separator(after, b"=>").or_else(|| separator(after, b","));
            let (value, after) = word(after.ok_or(FORMAT)?)?;
            options.set(&key, &value);
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

/// The value of a literal, and the text behind it.
type Word<'t> = (Cow<'t, [u8]>, &'t [u8]);

/// A bare word, a number or a quoted string.
fn word(text: &[u8]) -> Result<Word<'_>, &'static str> {
    if let [quote @ (b'\'' | b'"'), rest @ ..] = text {
        return string(rest, *quote);
    }
    let is_part = |byte: &&u8| is_word(**byte) || **byte == b'.';
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let len = sign + text[sign..].iter().take_while(is_part).count();
    match len > sign {
        true => Ok((text[..len].into(), &text[len..])),
        false => Err(FORMAT),
    }
}

/// A string of Perl up to its quote. Between single quotes a backslash escapes the quote and itself alone.
fn string(mut rest: &[u8], quote: u8) -> Result<Word<'_>, &'static str> {
    let (mut value, is_double) = (Vec::new(), quote == b'"');
    while let Some((&first, mut after)) = rest.split_first() {
        let mut byte = first;
        match (first, after.split_first()) {
            (b'$' | b'@', _) if is_double => return Err(VARIABLE),
            (b'\\', Some((next, _))) if is_double && next.is_ascii_alphanumeric() => {
                return Err(ESCAPE);
            }
            (b'\\', Some((&next, behind))) if is_double || next == quote || next == b'\\' => {
                (byte, after) = (next, behind);
            }
            _ if first == quote => return Ok((value.into(), after)),
            _ => {}
        }
        value.push(byte);
        rest = after;
    }
    Err(FORMAT)
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
            "timeout => 'a\\'",
            "timeout => 'a\\'b",
            "username => \"x\\\"",
            "timeout => 1 + 1",
            "timeout => 'x",
            "x => [1]",
        ] {
            assert_eq!(
                SnmpOptions::parse(text.as_bytes()),
                Err(FORMAT.into()),
                "{text}"
            );
        }
        for (text, why) in [
            ("$x", VARIABLE),
            ("a@b", VARIABLE),
            ("a\\nb", ESCAPE),
            ("a\\1", ESCAPE),
        ] {
            let text = format!("username => \"{text}\"");
            let refusal = SnmpOptions::parse(text.as_bytes());
            assert_eq!(refusal, Err(why.into()), "{text}");
        }
    }

    #[test]
    fn strings_are_those_of_perl() {
        for (text, value) in [
            (r"'a\'b'", "a'b"),
            (r"'a\\'", r"a\"),
            (r"'a\b\\\'c'", r"a\b\'c"),
            (r#"'$x@y"z'"#, r#"$x@y"z"#),
            (r#""it's""#, "it's"),
            (r#""a\$b\@c\"d\\e\'f""#, r#"a$b@c"d\e'f"#),
            ("''", ""),
            ("\"\"", ""),
        ] {
            let options = SnmpOptions::parse(format!("username => {text}, x => 1").as_bytes());
            let mut user = UserOptions::default();
            user.set(b"username", value.as_bytes());
            assert_eq!(options.unwrap().user, user, "{text}");
        }
    }
}
