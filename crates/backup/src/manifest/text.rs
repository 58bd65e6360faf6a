//! A manifest as bytes: lines of text, of which the last one has the hash of those before it, in one zstd frame. The lines
//! are in docs/formats/backup.md.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Read as _;

use super::{BackedUpFile, Manifest, Piece, SUFFIX, Version};
use crate::hash::ContentHash;

/// The first line, with the version of the format.
const MAGIC: &str = "kymo-backup ";
const VERSION: &str = "1";
/// Most bytes of the text.
const TEXT_MAX: u64 = 512 << 20;
/// Most bytes of a piece. Fewer than 2^23 lines fit, so that sums do not overflow.
const PIECE_MAX: u64 = 1 << 40;
const LEVEL: i32 = 3;

impl Manifest {
    /// The manifest's bytes.
    pub(crate) fn encode(&self) -> std::io::Result<Vec<u8>> {
        zstd::bulk::compress(self.text().as_bytes(), LEVEL)
    }

    /// Reads a manifest; the error names the damage.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, String> {
        let unpacked = zstd::stream::read::Decoder::new(bytes).map_err(|_| "it is no manifest")?;
        let mut text = String::new();
        let read = unpacked.take(TEXT_MAX + 1).read_to_string(&mut text);
        read.map_err(|_| "it is damaged or cut short")?;
        match u64::try_from(text.len()) {
            Ok(0..=TEXT_MAX) => Manifest::parse(&text),
            _ => Err("it is too long".into()),
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("{MAGIC}{VERSION}\n");
        let mut line = |words: std::fmt::Arguments<'_>| {
            let _ = text.write_fmt(words);
        };
        line(format_args!("time {}\n", self.time_ms));
        line(format_args!("host {}\n", escaped(&self.host)));
        for file in &self.files {
            let Version { inode, mtime_ns } = file.version;
            let path = escaped(&file.path);
            line(format_args!("file {path} {inode} {mtime_ns}\n"));
            for Piece { hash, bytes } in &file.pieces {
                line(format_args!("{hash} {bytes}\n"));
            }
        }
        let hash = ContentHash::of(text.as_bytes());
        text + &format!("end {hash}\n")
    }

    pub(crate) fn parse(text: &str) -> Result<Manifest, String> {
        let version = text
            .strip_prefix(MAGIC)
            .and_then(|rest| rest.lines().next());
        match version {
            Some(VERSION) => {}
            Some(other) => {
                return Err(format!(
                    "its version is {other:?}, this build knows {VERSION}; use a newer kymo"
                ));
            }
            None => return Err("it is no manifest".into()),
        }
        let short = "it is cut short";
        let (body, end) = text.rsplit_once("end ").ok_or(short)?;
        let hash = end.strip_suffix('\n').and_then(ContentHash::parse);
        if hash.ok_or(short)? != ContentHash::of(body.as_bytes()) {
            return Err("its checksum is wrong".into());
        }
        let lines = body.lines().skip(1);
        let mut manifest = Manifest::default();
        for (number, line) in lines.enumerate() {
            take(line, number, &mut manifest).ok_or_else(|| format!("cannot parse {line:?}"))?;
        }
        manifest.check()?;
        Ok(manifest)
    }

    /// Refuses paths that lead elsewhere, and two files in one place.
    fn check(&self) -> Result<(), String> {
        let mut folders = BTreeSet::new();
        let mut before = "";
        for file in &self.files {
            let path = file.path.as_str();
            if !is_below(path) || path <= before {
                return Err(format!("the path {path:?} is none, or not in its place"));
            }
            before = path;
            for (at, _) in path.match_indices('/') {
                folders.extend(path.get(..at));
            }
        }
        let twice = self
            .files
            .iter()
            .find(|file| folders.contains(file.path.as_str()));
        match twice {
            Some(file) => Err(format!("{:?} is a file and a folder", file.path)),
            None => Ok(()),
        }
    }
}

/// Reads one line behind the first.
fn take(line: &str, number: usize, manifest: &mut Manifest) -> Option<()> {
    let words: Vec<&str> = line.split(' ').collect();
    match (number, &*words) {
        (0, ["time", ms]) => manifest.time_ms = ms.parse().ok()?,
        (1, ["host", host]) => manifest.host = unescaped(host)?,
        (2.., ["file", path, inode, mtime_ns]) => manifest.files.push(BackedUpFile {
            path: unescaped(path)?,
            version: Version {
                inode: inode.parse().ok()?,
                mtime_ns: mtime_ns.parse().ok()?,
            },
            pieces: Vec::new(),
        }),
        (2.., [hash, bytes]) => {
            let piece = Piece {
                hash: ContentHash::parse(hash)?,
                bytes: bytes
                    .parse()
                    .ok()
                    .filter(|bytes| (1..=PIECE_MAX).contains(bytes))?,
            };
            manifest.files.last_mut()?.pieces.push(piece);
        }
        _ => return None,
    }
    Some(())
}

/// A path or name without blanks and line ends: other bytes than printable ASCII, and `%`, as `%` and two digits.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'!'..=b'~' if byte != b'%' => out.push(char::from(byte)),
            byte => {
                let _ = write!(out, "%{byte:02x}");
            }
        }
    }
    out
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, coded)) = rest.split_once('%') {
        bytes.extend_from_slice(plain.as_bytes());
        bytes.push(u8::from_str_radix(coded.get(..2)?, 16).ok()?);
        rest = coded.get(2..)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

/// True for a path that leads below the folder that it begins in.
fn is_below(path: &str) -> bool {
    let sound = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    path.split('/').all(sound)
}

/// File name of the manifest of a backup of this time.
pub(crate) fn name_of(time_ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(time_ms).unwrap_or_default();
    format!("{}{SUFFIX}", time.strftime("%Y%m%dT%H%M%S.%3fZ"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn manifest() -> Manifest {
        let piece = |bytes: &[u8]| Piece {
            hash: ContentHash::of(bytes),
            bytes: u64::try_from(bytes.len()).unwrap(),
        };
        let file = |path: &str, pieces: &[&[u8]]| BackedUpFile {
            path: path.into(),
            version: Version {
                inode: 7,
                mtime_ns: -5,
            },
            pieces: pieces.iter().map(|bytes| piece(bytes)).collect(),
        };
        Manifest {
            time_ms: 1_795_824_000_123,
            host: "web 1".into(),
            files: vec![
                file("boards/ä %\n.json", &[b"x"]),
                file("store/empty", &[]),
                file("store/journal-000000000001", &[b"one", b"two"]),
            ],
        }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let manifest = manifest();
        let bytes = manifest.encode().unwrap();
        assert_eq!(Manifest::decode(&bytes), Ok(manifest.clone()));
        assert!(manifest.file("store/empty").is_some() && manifest.file("store").is_none());
        assert_eq!(manifest.bytes(), 7);
        assert_eq!(name_of(manifest.time_ms), "20261128T000000.123Z.manifest");
    }

    #[test]
    fn a_manifest_that_is_cut_or_changed_is_refused() {
        let bytes = manifest().encode().unwrap();
        for length in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..length]).is_err(), "{length}");
        }
        let text = manifest().text();
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] ^= 1;
            let changed = String::from_utf8(changed).unwrap();
            assert!(Manifest::parse(&changed).is_err(), "{changed}");
            assert!(Manifest::parse(&text[..at]).is_err(), "{at}");
        }
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        let with = |paths: &[&str]| {
            let files = paths.iter().map(|path| BackedUpFile {
                path: path.to_string(),
                version: Version::default(),
                pieces: Vec::new(),
            });
            let manifest = Manifest {
                files: files.collect(),
                ..Manifest::default()
            };
            Manifest::parse(&manifest.text())
        };
        for paths in [
            &["../a"][..],
            &["/a"],
            &["a/../b"],
            &["a//b"],
            &["a/."],
            &[""],
            &["a\0b"],
            &["b", "a"],
            &["a", "a"],
            &["a", "a/b"],
        ] {
            assert!(with(paths).is_err(), "{paths:?}");
        }
        assert!(with(&["a", "a.b/..c", "b"]).is_ok());
    }

    #[test]
    fn a_newer_version_is_named() {
        let text = manifest().text().replace("kymo-backup 1", "kymo-backup 2");
        let why = Manifest::parse(&text).unwrap_err();
        assert!(why.starts_with("its version is \"2\""), "{why}");
    }

    proptest! {
        #[test]
        fn any_text_is_a_manifest_or_refused(text in "(kymo-backup 1\n)?(time 5\n)?(host a\n)?(file [a/%.]{0,4} 1 1\n|[a-f0-9]{0,3} 1\n|end )*") {
            let whole = format!("{text}end {}\n", ContentHash::of(text.as_bytes()));
            if let Ok(manifest) = Manifest::parse(&whole) {
                prop_assert_eq!(Manifest::parse(&manifest.text()), Ok(manifest));
            }
        }

        #[test]
        fn any_name_is_escaped(name in ".*") {
            let escaped = escaped(&name);
            prop_assert!(!escaped.contains([' ', '\n']));
            prop_assert_eq!(unescaped(&escaped), Some(name));
        }
    }
}
