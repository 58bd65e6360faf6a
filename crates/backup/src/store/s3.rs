//! A bucket of a server that speaks S3. An object is read and written in requests of a few megabytes, each of which is tried
//! again; the ETag of a stored object is compared with the MD5 of the sent bytes.

mod client;
mod keys;
mod place;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Bytes;
use hyper::header::{CONTENT_RANGE, ETAG, HeaderMap, HeaderName, RANGE};
use hyper::{Method, StatusCode};
use md5::{Digest as _, Md5};
use rusty_s3::actions::ListObjectsV2;
use rusty_s3::{Bucket, Credentials, S3Action};

use super::{Content, ObjectStore, Put, other_size};
use crate::error::{Result, Tried};
use client::{ANSWER_MAX, Ask, Client, ServerAnswer};
pub use keys::Keys;
pub use place::S3Place;

/// Most bytes of an object that is written, and of a part of one that is read: a request that fails sends no more again.
const PART_MAX: u64 = 16 << 20;
/// Time that a signature holds.
const VALID: Duration = Duration::from_secs(3600);
/// Pages of a listing, of at most 1000 names each.
const PAGES_MAX: usize = 20_000;
const CONTENT_MD5: &str = "content-md5";
/// Headers of objects whose ETag is no MD5: those that the server encrypts by keys of others.
const ENCRYPTION: &str = "x-amz-server-side-encryption";
const CUSTOMER_KEY: &str = "x-amz-server-side-encryption-customer-algorithm";

/// A bucket.
pub(crate) struct S3Store {
    bucket: Bucket,
    credentials: Credentials,
    /// In front of all names; empty, or ended by `/`.
    prefix: String,
    client: RefCell<Client>,
}

impl S3Store {
    pub(crate) fn open(place: &S3Place) -> Result<S3Store> {
        let shown = PathBuf::from(place.to_string());
        let bucket = place.bucket().tried("use", &shown)?;
        let client = Client::new(bucket.base_url().as_str(), &place.tls).tried("use", &shown)?;
        Ok(S3Store {
            credentials: place.keys.credentials(),
            prefix: match place.prefix.as_str() {
                "" => String::new(),
                prefix => format!("{prefix}/"),
            },
            bucket,
            client: RefCell::new(client),
        })
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn ask(
        &self,
        ask: &Ask<'_>,
        accept: &dyn Fn(&ServerAnswer) -> std::result::Result<(), String>,
    ) -> std::io::Result<ServerAnswer> {
        self.client.borrow_mut().ask(ask, accept)
    }

    /// One page of a listing; the token of the next one.
    fn page(
        &self,
        prefix: &str,
        token: Option<&str>,
        found: &mut Vec<(String, u64)>,
    ) -> std::io::Result<Option<String>> {
        let sign = || {
            let mut action = self.bucket.list_objects_v2(Some(&self.credentials));
            action.with_prefix(prefix);
            if let Some(token) = token {
                action.with_continuation_token(token);
            }
            action.sign(VALID).into()
        };
        let answer = self.ask(&Ask::new(Method::GET, &sign), &|_| Ok(()))?;
        answer.ok()?;
        let cannot = || std::io::Error::other("its list cannot be read");
        let text = std::str::from_utf8(&answer.body).map_err(|_| cannot())?;
        let page = ListObjectsV2::parse_response(text).map_err(|_| cannot())?;
        for object in page.contents {
            if let Some(name) = object.key.strip_prefix(&self.prefix) {
                found.push((name.into(), object.size.unwrap_or(0)));
            }
        }
        Ok(page.next_continuation_token)
    }

    fn list_all(&self, folder: &str) -> std::io::Result<Vec<(String, u64)>> {
        let (mut found, mut token) = (Vec::new(), None);
        let prefix = self.key(&format!("{folder}/"));
        for _ in 0..PAGES_MAX {
            token = self.page(&prefix, token.as_deref(), &mut found)?;
            if token.is_none() {
                return Ok(found);
            }
        }
        Err(std::io::Error::other("it has too many objects"))
    }

    fn put_bytes(&self, key: &str, bytes: Vec<u8>) -> std::io::Result<()> {
        let hash: [u8; 16] = Md5::digest(&bytes).into();
        let md5 = STANDARD.encode(hash);
        let sign = || {
            let mut action = self.bucket.put_object(Some(&self.credentials), key);
            action.headers_mut().insert(CONTENT_MD5, md5.as_str());
            action.sign(VALID).into()
        };
        let ask = Ask {
            headers: vec![(HeaderName::from_static(CONTENT_MD5), md5.clone())],
            body: Bytes::from(bytes),
            ..Ask::new(Method::PUT, &sign)
        };
        let answer = self.ask(&ask, &|answer| match answer.status.is_success() {
            true => has_stored(&answer.headers, hash),
            false => Ok(()),
        });
        if answer.is_err() {
            // The object may be there with other bytes, which the next backup would take for these.
            let _unknown = self.remove_key(key);
        }
        answer?.ok()
    }

    fn remove_key(&self, key: &str) -> std::io::Result<()> {
        let sign = || {
            let action = self.bucket.delete_object(Some(&self.credentials), key);
            action.sign(VALID).into()
        };
        let answer = self.ask(&Ask::new(Method::DELETE, &sign), &|_| Ok(()))?;
        match answer.is_missing() {
            true => Ok(()),
            false => answer.ok(),
        }
    }

    /// The bytes of an object from an offset on; the inner error names the damage.
    fn part(
        &self,
        key: &str,
        offset: u64,
        bytes: u64,
    ) -> std::io::Result<std::result::Result<Bytes, String>> {
        let wanted = (bytes - offset).min(PART_MAX);
        let sign = || {
            let action = self.bucket.get_object(Some(&self.credentials), key);
            action.sign(VALID).into()
        };
        let last = offset + wanted - 1;
        let ask = Ask {
            headers: vec![(RANGE, format!("bytes={offset}-{last}"))],
            limit: usize::try_from(wanted)
                .unwrap_or(usize::MAX)
                .max(ANSWER_MAX),
            ..Ask::new(Method::GET, &sign)
        };
        let is_whole = |answer: &ServerAnswer| match size_of(answer) {
            Some(size) if size == bytes && count(&answer.body) != wanted => {
                Err("its answer is cut short".into())
            }
            Some(_) | None => Ok(()),
        };
        let answer = self.ask(&ask, &is_whole)?;
        if answer.is_missing() {
            return Ok(Err("is missing".into()));
        }
        let size = size_of(&answer);
        match (answer.status, size) {
            (_, Some(size)) if size != bytes => Ok(Err(other_size(size, bytes))),
            (StatusCode::RANGE_NOT_SATISFIABLE, _) => {
                Ok(Err(format!("has fewer than {bytes} bytes")))
            }
            _ => {
                answer.ok()?;
                Ok(Ok(answer.body))
            }
        }
    }
}

impl ObjectStore for S3Store {
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    fn list(&self, folder: &str) -> Result<Option<Vec<(String, u64)>>> {
        let found = self.list_all(folder);
        Ok(Some(found.tried("list", &self.place(folder))?))
    }

    fn put(&mut self, name: &str, content: &Content<'_>) -> Result<Put> {
        let mut all = Vec::new();
        let is_whole = content.read(&mut |bytes| {
            all.extend_from_slice(bytes);
            Ok(())
        })?;
        if !is_whole {
            return Ok(Put::Changed);
        }
        let sent = self.put_bytes(&self.key(name), all);
        sent.tried("write", &self.place(name))?;
        Ok(Put::Done)
    }

    fn link(&mut self, _name: &str, _bytes: u64, _file: &Path, _inode: u64) -> Result<bool> {
        Ok(false)
    }

    fn size(&self, name: &str) -> Result<Option<u64>> {
        let key = self.key(name);
        let mut found = Vec::new();
        let listed = self.page(&key, None, &mut found);
        listed.tried("read", &self.place(name))?;
        let object = found.into_iter().find(|(found, _)| found == name);
        Ok(object.map(|(_, bytes)| bytes))
    }

    fn get(
        &self,
        name: &str,
        bytes: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<std::result::Result<(), String>> {
        let (key, mut offset) = (self.key(name), 0);
        while offset < bytes {
            match self
                .part(&key, offset, bytes)
                .tried("read", &self.place(name))?
            {
                Ok(part) => {
                    each(&part)?;
                    offset += count(&part);
                }
                Err(damage) => return Ok(Err(damage)),
            }
        }
        Ok(Ok(()))
    }

    fn remove(&mut self, name: &str) -> Result<()> {
        let removed = self.remove_key(&self.key(name));
        removed.tried("remove", &self.place(name))
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn piece_max(&self) -> u64 {
        PART_MAX
    }

    fn place(&self, name: &str) -> PathBuf {
        let bucket = self.bucket.name();
        let path = format!("s3://{bucket}/{}", self.key(name));
        PathBuf::from(path.trim_end_matches('/'))
    }
}

fn count(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// Bytes of the whole object of which an answer has a part.
fn size_of(answer: &ServerAnswer) -> Option<u64> {
    match answer.status {
        StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
            let range = answer.headers.get(CONTENT_RANGE)?.to_str().ok()?;
            range.rsplit_once('/')?.1.parse().ok()
        }
        // A server without ranges.
        StatusCode::OK => Some(count(&answer.body)),
        _ => None,
    }
}

/// Compares the ETag of an object with the MD5 of the sent bytes, where it is one.
fn has_stored(headers: &HeaderMap, sent: [u8; 16]) -> std::result::Result<(), String> {
    let word = |name: &str| headers.get(name)?.to_str().ok();
    let is_by_key = word(ENCRYPTION).is_some_and(|by| by.starts_with("aws:kms"));
    let Some(etag) = word(ETAG.as_str()).map(|etag| etag.trim_matches('"')) else {
        return Ok(());
    };
    let is_md5 = etag.len() == 32 && etag.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_by_key || word(CUSTOMER_KEY).is_some() || !is_md5 {
        return Ok(());
    }
    let own: String = sent.iter().map(|byte| format!("{byte:02x}")).collect();
    match etag.eq_ignore_ascii_case(&own) {
        true => Ok(()),
        false => Err(format!(
            "it has stored other bytes than were sent: its ETag is {etag}, the MD5 is {own}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_etag_is_found_where_etags_are_hashes() {
        let md5 = "900150983cd24fb0d6963f7d28e17f72";
        let sent: [u8; 16] = Md5::digest(b"abc").into();
        let other = &md5.replace('9', "8");
        for (etag, by, is_right) in [
            (md5, None, true),
            (&md5.to_uppercase(), None, true),
            (&format!("\"{md5}\""), Some("AES256"), true),
            (other, None, false),
            (other, Some("AES256"), false),
            (other, Some("aws:kms"), true),
            ("abc-2", None, true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ETAG, etag.parse().unwrap());
            if let Some(by) = by {
                headers.insert(ENCRYPTION, by.parse().unwrap());
            }
            let judged = has_stored(&headers, sent);
            assert_eq!(judged.is_ok(), is_right, "{etag} {by:?}: {judged:?}");
        }
    }
}
