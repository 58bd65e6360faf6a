//! URLs of targets, and those that targets redirect to.

use std::fmt;

/// Longest URL, in bytes.
const URL_MAX: usize = 4096;
/// Longest name of a host, in bytes.
const HOST_MAX: usize = 253;

/// How a target is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// By TLS.
    Https,
}

impl Scheme {
    /// The word in front of a URL.
    pub fn word(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// A URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrapeUrl {
    scheme: Scheme,
    /// Without the brackets of an IPv6 address.
    host: String,
    port: u16,
    /// Path and query: it begins with `/`.
    path: String,
}

impl ScrapeUrl {
    /// Reads `http://HOST:PORT/PATH?QUERY`. Without a path it is `/metrics`.
    pub fn parse(text: &str) -> Result<ScrapeUrl, String> {
        ScrapeUrl::read(text, "/metrics").map_err(|why| format!("{text:?} is not a URL: {why}"))
    }

    /// Reads the same; without a path it is `/`.
    pub fn of_server(text: &str) -> Result<ScrapeUrl, String> {
        ScrapeUrl::read(text, "/").map_err(|why| format!("{text:?} is not a URL: {why}"))
    }

    fn read(text: &str, default_path: &str) -> Result<ScrapeUrl, &'static str> {
        if text.len() > URL_MAX {
            return Err("it is too long");
        }
        let (scheme, rest) = match text.split_once("://") {
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(("https", rest)) => (Scheme::Https, rest),
            _ => return Err("it does not begin with http:// or https://"),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let path = path.split('#').next().unwrap_or_default();
        let path = match path.chars().next() {
            None => default_path.to_string(),
            Some('/') => path.to_string(),
            Some(_) => format!("/{path}"),
        };
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("its path has blanks or characters beyond ASCII");
        }
        let (host, port) = host_and_port(authority, scheme)?;
        Ok(ScrapeUrl {
            scheme,
            host,
            port,
            path,
        })
    }

    /// The URL that an answer of this one redirects to.
    pub(crate) fn redirected(&self, location: &str) -> Result<ScrapeUrl, &'static str> {
        let location = location.trim();
        if location.contains("://") {
            return ScrapeUrl::read(location, "/");
        }
        if location.starts_with("//") {
            return ScrapeUrl::read(&format!("{}:{location}", self.scheme.word()), "/");
        }
        let own = self.path.split('?').next().unwrap_or_default();
        let path = match location.chars().next() {
            Some('/') => location.to_string(),
            None | Some('?' | '#') => format!("{own}{location}"),
            Some(_) => {
                let folder = own.rsplit_once('/').map_or("", |(folder, _)| folder);
                format!("{folder}/{location}")
            }
        };
        let authority = self.instance();
        ScrapeUrl::read(&format!("{}://{authority}{path}", self.scheme.word()), "/")
    }

    /// How the target is reached.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Name or address of the host.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port of the host.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Path and query.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Host and port, which are the label `instance`.
    pub fn instance(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// True if both URLs are of one server.
    pub(crate) fn has_server_of(&self, other: &ScrapeUrl) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
    }
}

impl fmt::Display for ScrapeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.scheme.word();
        write!(f, "{scheme}://{}{}", self.instance(), self.path)
    }
}

fn host_and_port(authority: &str, scheme: Scheme) -> Result<(String, u16), &'static str> {
    const PORT: &str = "its port is not a number from 1 to 65535";
    if authority.contains('@') {
        return Err("a user and a password go into keys of their own");
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']').ok_or("its [ has no ]")?;
            host.parse::<std::net::Ipv6Addr>()
                .map_err(|_| "its host is not an IPv6 address")?;
            let port = behind.strip_prefix(':');
            if port.is_none() && !behind.is_empty() {
                return Err(PORT);
            }
            (host, port)
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let is_named = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if host.is_empty() || host.len() > HOST_MAX || !host.bytes().all(is_named) {
        return Err("it has no host");
    }
    let port = match port {
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            port.parse().ok().filter(|&port| port > 0).ok_or(PORT)?
        }
        Some(_) => return Err(PORT),
        None => scheme.port(),
    };
    Ok((host.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        for (text, instance, shown) in [
            (
                "http://localhost:9100",
                "localhost:9100",
                "http://localhost:9100/metrics",
            ),
            ("http://Web-1/", "web-1:80", "http://web-1:80/"),
            (
                "https://[::1]/a?b=c#d",
                "[::1]:443",
                "https://[::1]:443/a?b=c",
            ),
            ("http://a?b", "a:80", "http://a:80/?b"),
        ] {
            let url = ScrapeUrl::parse(text).expect(text);
            assert_eq!((&*url.instance(), &*url.to_string()), (instance, shown));
        }
        for (text, why) in [
            ("localhost:9100", "does not begin with http://"),
            ("ftp://a", "does not begin with http://"),
            ("http://", "no host"),
            ("http://:9100", "no host"),
            ("http://a b", "no host"),
            ("http://u:p@a", "a user and a password"),
            ("http://a:0", "its port"),
            ("http://a:70000", "its port"),
            ("http://a:+1", "its port"),
            ("http://[::1]9", "its port"),
            ("http://[::1", "no ]"),
            ("http://[a]", "not an IPv6"),
            ("http://a/b c", "blanks"),
            ("http://a/\u{e4}", "beyond ASCII"),
        ] {
            let error = ScrapeUrl::parse(text).expect_err(text);
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn redirects_are_relative_to_their_url() {
        let from = ScrapeUrl::parse("http://a:1/b/c?d").unwrap();
        for (location, to) in [
            ("/x", "http://a:1/x"),
            ("x?y", "http://a:1/b/x?y"),
            ("?y", "http://a:1/b/c?y"),
            ("", "http://a:1/b/c"),
            ("//e/f", "http://e:80/f"),
            ("https://e", "https://e:443/"),
        ] {
            let found = from.redirected(location).expect(location);
            assert_eq!(found.to_string(), to, "{location}");
            assert_eq!(found.has_server_of(&from), to.contains("a:1"));
        }
        for location in ["ftp://a/", "http://", "/a b", "//"] {
            assert!(from.redirected(location).is_err(), "{location}");
        }
    }
}
