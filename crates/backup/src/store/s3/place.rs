//! Where a bucket is: `s3://BUCKET/PREFIX` on a server.

use std::fmt;
use std::io;

use kymo_scrape::TlsTexts;
use rusty_s3::{Bucket, UrlStyle};
use serde::{Deserialize, Serialize};

use super::keys::Keys;

/// Longest name of a bucket, and longest prefix of names.
const BUCKET_MAX: usize = 255;
const PREFIX_MAX: usize = 512;
const SCHEME: &str = "s3://";

/// A part of a bucket, with the right to use it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct S3Place {
    /// URL of the server; empty: Amazon's of the region.
    pub endpoint: String,
    /// Region of the bucket.
    pub region: String,
    /// The bucket.
    pub bucket: String,
    /// Begin of all names in it, without a `/` at the end; may be empty.
    pub prefix: String,
    /// Keys of the account.
    pub keys: Keys,
    /// Certificates for https.
    pub tls: TlsTexts,
}

impl S3Place {
    /// True for a text that is meant for a bucket.
    pub fn is_one(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Bucket and prefix of `s3://BUCKET/PREFIX`. The error names the fault.
    pub fn parse(text: &str) -> Result<S3Place, &'static str> {
        let rest = text.strip_prefix(SCHEME);
        let rest = rest.ok_or("it does not begin with s3://")?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_end_matches('/');
        let is_named = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_bucket = bucket.bytes().all(is_named) && !bucket.bytes().all(|byte| byte == b'.');
        if !(1..=BUCKET_MAX).contains(&bucket.len()) || !is_bucket {
            return Err("the name of its bucket has letters, digits, - . and _ alone");
        }
        let is_part = |part: &str| {
            !matches!(part, "" | "." | "..") && part.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if prefix.len() > PREFIX_MAX || !prefix.is_empty() && !prefix.split('/').all(is_part) {
            return Err("its prefix has no blanks, no . or .. and no empty part");
        }
        Ok(S3Place {
            bucket: bucket.into(),
            prefix: prefix.into(),
            ..S3Place::default()
        })
    }

    /// The bucket for requests. Amazon's are hosts of their own, where their names allow it; those of others are paths.
    pub(super) fn bucket(&self) -> io::Result<Bucket> {
        let is_host = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let (endpoint, style) = match self.endpoint.as_str() {
            "" if self.bucket.bytes().all(is_host) => (self.amazon(), UrlStyle::VirtualHost),
            "" => (self.amazon(), UrlStyle::Path),
            endpoint => (endpoint.to_string(), UrlStyle::Path),
        };
        let cannot = |why: String| io::Error::other(format!("the endpoint {endpoint:?} {why}"));
        let url = endpoint
            .parse()
            .map_err(|error| cannot(format!("is no URL: {error}")))?;
        let bucket = Bucket::new(url, style, self.bucket.clone(), self.region.clone());
        bucket.map_err(|error| cannot(format!("cannot be used: {error}")))
    }

    fn amazon(&self) -> String {
        format!("https://s3.{}.amazonaws.com", self.region)
    }
}

impl fmt::Display for S3Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix.as_str() {
            "" => write!(out, "{SCHEME}{}", self.bucket),
            prefix => write!(out, "{SCHEME}{}/{prefix}", self.bucket),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        for (text, shown) in [
            ("s3://b", Some("s3://b")),
            ("s3://b/", Some("s3://b")),
            ("s3://My.bucket_1/a/b//", Some("s3://My.bucket_1/a/b")),
            ("s3://", None),
            ("s3://../a", None),
            ("s3://a b", None),
            ("s3://b/a//b", None),
            ("s3://b/../a", None),
            ("s3://b/a\nb", None),
            ("http://b", None),
        ] {
            let read = S3Place::parse(text).ok().map(|place| place.to_string());
            assert_eq!(read.as_deref(), shown, "{text}");
        }
    }

    #[test]
    fn buckets_are_hosts_of_amazon_and_paths_elsewhere() {
        for (place, endpoint, url) in [
            ("s3://b", "", "https://b.s3.eu-west-1.amazonaws.com/"),
            ("s3://b.c", "", "https://s3.eu-west-1.amazonaws.com/b.c/"),
            ("s3://b", "http://[::1]:9000", "http://[::1]:9000/b/"),
        ] {
            let place = S3Place {
                endpoint: endpoint.into(),
                region: "eu-west-1".into(),
                ..S3Place::parse(place).unwrap()
            };
            assert_eq!(place.bucket().unwrap().base_url().as_str(), url);
        }
        for endpoint in ["nowhere", "ftp://a", "http://"] {
            let place = S3Place {
                endpoint: endpoint.into(),
                ..S3Place::parse("s3://b").unwrap()
            };
            assert!(place.bucket().is_err(), "{endpoint}");
        }
    }
}
