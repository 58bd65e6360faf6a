//! Access: hosts, origins, tokens, and the headers that bind the browser.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};

use crate::asker::{Origin, Proxies};
use crate::guesses::Guesses;
use crate::refusal::Refusal;

/// Most sessions; one more ends the oldest.
const SESSIONS_MAX: usize = 256;

/// Headers of a proxy: the asker behind a proxy need not be on this machine, even if the proxy
/// is.
const FORWARDED: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

/// Scopes of an asker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Scopes {
    read: bool,
    texts: bool,
    write: bool,
}

impl Scopes {
    /// All scopes.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) const ALL: Scopes = Scopes {
        read: true,
        texts: true,
        write: true,
    };

    /// No scope.
    #[cfg(test)]
    pub(crate) const NONE: Scopes = Scopes {
        read: false,
        texts: false,
        write: false,
    };

    /// Numbers, and names of processes and devices.
    pub(crate) fn may_read_numbers(self) -> bool {
        self.read
    }

    /// Command lines, users, cgroups, texts of processes.
    pub(crate) fn tells_of_people(self) -> bool {
        self.texts
    }

    /// Requests whose samples are stored.
    pub(crate) fn may_write(self) -> bool {
        self.write
    }

    /// True for askers with a token.
    pub(crate) fn has_token(self) -> bool {
        self.texts || self.write
    }

    /// Names of the scopes.
    pub(crate) fn names(self) -> Vec<&'static str> {
        let named = [
            (self.read, "read"),
            (self.texts, "texts"),
            (self.write, "write"),
        ];
        named
            .into_iter()
            .filter_map(|(has, name)| has.then_some(name))
            .collect()
    }

    /// Refuses an asker without the scope for texts.
    pub(crate) fn need_texts(self) -> Result<(), Refusal> {
        match self.texts {
            true => Ok(()),
            false => Err(unauthorized(
                "cannot show what tells of people: the request has no valid token",
            )),
        }
    }
}

fn forbidden(text: &str) -> Refusal {
    Refusal::new(StatusCode::FORBIDDEN, text)
}

fn unauthorized(text: &str) -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, text)
}

/// Decides which request is answered, and with which scopes.
pub(crate) struct Access {
    hosts: Vec<String>,
    loopback: bool,
    trust_proxy: bool,
    token: String,
    /// A token for senders, which may write and not read.
    write_token: String,
    pub(crate) guesses: Guesses,
    state: Mutex<State>,
}

/// Refusal of a request, and its delay.
pub(crate) struct Denied {
    pub(crate) refusal: Refusal,
    pub(crate) wait: Duration,
}

impl From<Refusal> for Denied {
    fn from(refusal: Refusal) -> Denied {
        Denied {
            refusal,
            wait: Duration::ZERO,
        }
    }
}

/// The content of `Authorization`.
enum Shown<'a> {
    Nothing,
    Token(&'a str),
    OtherScheme,
}

#[derive(Default)]
struct State {
    code: Option<String>,
    /// Tokens of sessions, and numbers in the order in which the sessions began.
    sessions: HashMap<String, u64>,
    begun: u64,
}

impl Access {
    /// `tokens` are valid for ever, that for everything and that for writing; `code` is for one session.
    pub(crate) fn new(
        hosts: &[String],
        loopback: bool,
        trust_proxy: bool,
        tokens: (String, String),
        code: Option<String>,
    ) -> Access {
        let (token, write_token) = tokens;
        Access {
            hosts: hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            loopback,
            trust_proxy,
            token,
            write_token,
            guesses: Guesses::default(),
            state: Mutex::new(State {
                code,
                ..State::default()
            }),
        }
    }

    /// Refuses targets that are no path, and whole addresses of other hosts.
    pub(crate) fn check_target(&self, uri: &Uri) -> Result<(), Refusal> {
        match uri.authority() {
            // `GET kymo`, or CONNECT.
            Some(_) if uri.scheme().is_none() => {
                Err(Refusal::bad("cannot understand the path: it begins with /"))
            }
            Some(authority) => self.check_host(authority.as_str()),
            None => Ok(()),
        }
    }

    fn check_host(&self, host: &str) -> Result<(), Refusal> {
        match self.listens_to(host) {
            true => Ok(()),
            false => Err(forbidden(&format!(
                "cannot answer for host {host:?}: it is not one of `hosts`"
            ))),
        }
    }

    /// Refuses requests for another host, and requests that a page of another site makes.
    pub(crate) fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        for (name, refusal) in [
            (header::HOST, "cannot answer for two hosts"),
            (header::ORIGIN, "cannot answer pages of two origins"),
        ] {
            if headers.get_all(name).iter().count() > 1 {
                return Err(Refusal::bad(refusal));
            }
        }
        let host = text(headers, header::HOST.as_str()).unwrap_or_default();
        self.check_host(host)?;
        let origin = text(headers, header::ORIGIN.as_str());
        let same = |origin: &str| {
            let rest = origin
                .strip_prefix("http://")
                .or_else(|| origin.strip_prefix("https://"));
            rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host))
        };
        if origin.is_some_and(|origin| !same(origin)) {
            return Err(forbidden("cannot answer a page of another origin"));
        }
        // A link from another site to the page is fine; embedding by another site is not.
        let site = text(headers, "sec-fetch-site").unwrap_or("none");
        let mode = text(headers, "sec-fetch-mode").unwrap_or_default();
        if !matches!(site, "none" | "same-origin") && mode != "navigate" {
            return Err(forbidden("cannot answer a page of another site"));
        }
        Ok(())
    }

    /// True for addresses, which need no name service that an attacker controls, and for known
    /// names.
    fn listens_to(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.to_ascii_lowercase();
        let address = name.trim_start_matches('[').trim_end_matches(']');
        name == "localhost" || address.parse::<IpAddr>().is_ok() || self.hosts.contains(&name)
    }

    /// Says if the hub believes `X-Forwarded-For`.
    pub(crate) fn proxies(&self) -> Proxies {
        match self.trust_proxy {
            true => Proxies::Trusted,
            false => Proxies::Untrusted,
        }
    }

    /// The asker's scopes. Refuses an unknown token, and counts it as a guess of `origin`.
    pub(crate) fn scopes(&self, headers: &HeaderMap, origin: Origin) -> Result<Scopes, Denied> {
        match shown(headers) {
            Shown::Nothing => Ok(self.without_token(headers)),
            Shown::Token(token) if self.is_whole(token) => Ok(Scopes {
                read: true,
                texts: true,
                write: true,
            }),
            Shown::Token(token) if self.has_session(token) => Ok(Scopes {
                read: true,
                texts: true,
                write: false,
            }),
            Shown::Token(token) if self.is_for_writing(token) => Ok(Scopes {
                write: true,
                ..self.without_token(headers)
            }),
            Shown::Token(_) => {
                Err(self.guessed(origin, "cannot accept the token: it is not known"))
            }
            Shown::OtherScheme => {
                let text = "cannot accept the header Authorization: it is not `Bearer TOKEN`";
                Err(unauthorized(text).into())
            }
        }
    }

    /// Logs and refuses a wrong token or code. The more wrong ones there were, the later the
    /// refusal comes.
    fn guessed(&self, origin: Origin, text: &str) -> Denied {
        let verdict = self.guesses.wrong(origin, Instant::now());
        if let Some(line) = verdict.say {
            kymo_sys::talk::say(format_args!("kymo: {line}"));
        }
        let refusal = match verdict.wait.is_zero() {
            true => unauthorized(text),
            false => Refusal::new(
                StatusCode::TOO_MANY_REQUESTS,
                format!("{text}, and there were too many such"),
            ),
        };
        Denied {
            refusal,
            wait: verdict.wait,
        }
    }

    fn without_token(&self, headers: &HeaderMap) -> Scopes {
        let forwarded = FORWARDED.iter().any(|name| headers.contains_key(*name));
        Scopes {
            read: self.loopback && (self.trust_proxy || !forwarded),
            texts: false,
            write: false,
        }
    }

    fn has_session(&self, token: &str) -> bool {
        let sessions = self.state.lock().ok();
        sessions.is_some_and(|state| state.sessions.contains_key(token))
    }

    fn is_whole(&self, token: &str) -> bool {
        !self.token.is_empty() && equal(token, &self.token)
    }

    fn is_for_writing(&self, token: &str) -> bool {
        !self.write_token.is_empty() && equal(token, &self.write_token)
    }

    /// Begins a session for an asker with the code or the token; returns the session's token.
    pub(crate) fn begin_session(
        &self,
        code: Option<&str>,
        token: Option<&str>,
        origin: Origin,
    ) -> Result<String, Denied> {
        let mut state = self
            .state
            .lock()
            .map_err(|_| Refusal::unavailable("cannot begin a session"))?;
        let code_fits = match (code, &state.code) {
            (Some(code), Some(known)) => equal(code, known),
            _ => false,
        };
        if code_fits {
            state.code = None;
        } else if !token.is_some_and(|token| self.is_whole(token)) {
            let text = "cannot begin a session: the code was used or is not known";
            return Err(match (code, token) {
                (None, None) => unauthorized(text).into(),
                _ => self.guessed(origin, text),
            });
        }
        let session = random_hex()
            .map_err(|error| Refusal::unavailable(format!("cannot begin a session: {error}")))?;
        state.begun += 1;
        let begun = state.begun;
        state.sessions.insert(session.clone(), begun);
        if state.sessions.len() > SESSIONS_MAX {
            let oldest = begun - SESSIONS_MAX as u64;
            state.sessions.retain(|_, &mut begun| begun > oldest);
        }
        Ok(session)
    }
}

/// Reads `Authorization`. Names of schemes may be in upper or lower case (RFC 9110, 11.1).
fn shown(headers: &HeaderMap) -> Shown<'_> {
    let Some(given) = headers.get(header::AUTHORIZATION) else {
        return Shown::Nothing;
    };
    let given = given.to_str().unwrap_or_default();
    match given.split_once(' ').unwrap_or((given, "")) {
        (scheme, token) if scheme.eq_ignore_ascii_case("bearer") => Shown::Token(token.trim()),
        _ => Shown::OtherScheme,
    }
}

fn random_hex() -> std::io::Result<String> {
    let mut bytes = [0; 32];
    kymo_sys::machine::random(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    // A value that is no text matches nothing.
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// True if two secrets are equal, in a time that does not depend on where they differ.
fn equal(a: &str, b: &str) -> bool {
    a.len() == b.len()
        && a.bytes()
            .zip(b.bytes())
            .fold(0, |differ, (a, b)| differ | (a ^ b))
            == 0
}

/// Headers of every answer: nothing is loaded from elsewhere, nothing is embedded elsewhere.
pub(crate) fn harden(headers: &mut HeaderMap) {
    const ALL: [(&str, &str); 6] = [
        (
            "content-security-policy",
            concat!(
                "default-src 'none'; script-src 'self' ",
                include_str!(concat!(env!("OUT_DIR"), "/early_hash")),
                "; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
            ),
        ),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ];
    for (name, value) in ALL {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: header::HeaderName = name.parse().expect("a name");
            headers.append(name, value.parse().expect("a value"));
        }
        headers
    }

    const HERE: Origin = Origin::User(0);

    fn access() -> Access {
        let hosts = ["stats.example".to_string()];
        Access::new(
            &hosts,
            true,
            false,
            ("secret".into(), "sender".into()),
            Some("once".into()),
        )
    }

    #[test]
    fn hosts_and_origins() {
        for (pairs, allowed) in [
            (&[("host", "127.0.0.1:4280")][..], true),
            (&[("host", "localhost:4280")], true),
            (&[("host", "[::1]:4280")], true),
            (&[("host", "LOCALHOST")], true),
            (&[("host", "stats.example")], true),
            (&[("host", "stats.example:8080")], true),
            (&[("host", "192.0.2.7:4280")], true),
            (&[("host", "evil.example")], false),
            (&[("host", "localhost.evil.example")], false),
            (&[("host", "stats.example.evil")], false),
            (&[("host", "")], false),
            (&[], false),
            (
                &[("host", "localhost:1"), ("origin", "http://localhost:1")],
                true,
            ),
            (
                &[("host", "localhost:1"), ("origin", "http://localhost:2")],
                false,
            ),
            (&[("host", "localhost:1"), ("origin", "null")], false),
            (
                &[("host", "localhost:1"), ("origin", "http://evil.example")],
                false,
            ),
            (&[("host", "localhost:1"), ("host", "localhost:1")], false),
            (
                &[
                    ("host", "localhost:1"),
                    ("origin", "http://localhost:1"),
                    ("origin", "http://evil.example"),
                ],
                false,
            ),
            (
                &[("host", "localhost:1"), ("sec-fetch-site", "cross-site")],
                false,
            ),
            (
                &[
                    ("host", "localhost"),
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "no-cors"),
                ],
                false,
            ),
            (
                &[
                    ("host", "localhost"),
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                ],
                true,
            ),
            (
                &[
                    ("host", "localhost"),
                    ("sec-fetch-site", "same-origin"),
                    ("sec-fetch-mode", "cors"),
                ],
                true,
            ),
        ] {
            let headers = headers(pairs);
            assert_eq!(
                access().check_origin(&headers).is_ok(),
                allowed,
                "{pairs:?}"
            );
        }
    }

    #[test]
    fn tokens() {
        let access = access();
        let scopes = |value: &str| {
            access
                .scopes(&headers(&[("authorization", value)]), HERE)
                .map(|scopes| scopes.texts)
                .ok()
        };
        assert_eq!(
            access
                .scopes(&HeaderMap::new(), HERE)
                .map(|s| (s.read, s.texts))
                .ok(),
            Some((true, false))
        );
        for bad in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer secre",
            "Bearer secrets",
            "Basic secret",
            "secret",
            "Bearersecret",
        ] {
            assert_eq!(scopes(bad), None, "{bad}");
        }
        for good in ["Bearer secret", "bearer secret", "BEARER  secret "] {
            assert_eq!(scopes(good), Some(true), "{good}");
        }
        assert!(access.begin_session(Some("wrong"), None, HERE).is_err());
        let session = access
            .begin_session(Some("once"), None, HERE)
            .ok()
            .expect("the code is good");
        assert_eq!(scopes(&format!("Bearer {session}")), Some(true));
        assert!(
            access.begin_session(Some("once"), None, HERE).is_err(),
            "only once"
        );
        assert!(access.begin_session(None, Some("secret"), HERE).is_ok());
        let none = Access::new(&[], false, false, Default::default(), None);
        assert!(none.begin_session(Some(""), Some(""), HERE).is_err());
        assert_eq!(
            none.scopes(&HeaderMap::new(), HERE).map(|s| s.read).ok(),
            Some(false)
        );
        assert!(
            none.scopes(&headers(&[("authorization", "Bearer ")]), HERE)
                .is_err()
        );
    }

    #[test]
    fn senders_write_and_others_read() {
        let access = access();
        let session = access.begin_session(Some("once"), None, HERE);
        let session = session.ok().expect("the code is good");
        for (token, names) in [
            ("secret", &["read", "texts", "write"][..]),
            ("sender", &["read", "write"]),
            (&session, &["read", "texts"]),
        ] {
            let value = format!("Bearer {token}");
            let scopes = access.scopes(&headers(&[("authorization", &value)]), HERE);
            assert_eq!(scopes.ok().expect(token).names(), names, "{token}");
        }
        let far = Access::new(&[], false, false, ("secret".into(), "sender".into()), None);
        let value = headers(&[("authorization", "Bearer sender")]);
        let scopes = far.scopes(&value, HERE).ok().expect("the token is known");
        assert_eq!(scopes.names(), ["write"]);
        assert!(far.begin_session(None, Some("sender"), HERE).is_err());
    }

    /// A right token is not delayed, even if its origin guesses.
    #[test]
    fn guesses_lock_no_right_token_out() {
        let access = access();
        let ask = |token: &str| {
            let value = format!("Bearer {token}");
            access.scopes(&headers(&[("authorization", &value)]), HERE)
        };
        for n in 0..1000 {
            let Err(denied) = ask(&format!("guess-{n}")) else {
                panic!("guess {n} is let in");
            };
            let is_slowed = denied.refusal.status == StatusCode::TOO_MANY_REQUESTS;
            assert_eq!(is_slowed, n >= 10, "{n}");
            assert_eq!(denied.wait.is_zero(), n < 10, "{n}");
        }
        assert_eq!(ask("secret").ok().map(|scopes| scopes.texts), Some(true));
        assert!(access.begin_session(Some("once"), None, HERE).is_ok());
        assert_eq!(access.guesses.all().0, 1000);
    }
}
