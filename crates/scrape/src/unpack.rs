//! Bodies of answers, up to a limit: as they are, or unpacked from gzip.

use std::io::{self, Write};

use flate2::write::GzDecoder;

/// Most bytes of a body, packed and unpacked.
pub(crate) const BODY_MAX: usize = 10 << 20;
const TOO_LONG: &str = "the answer has more than 10 MiB";

/// A text up to the limit.
#[derive(Default)]
struct LimitedText(Vec<u8>);

impl Write for LimitedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len().saturating_add(bytes.len()) > BODY_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, TOO_LONG));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Encoding {
    Plain(LimitedText),
    Gzip(Box<GzDecoder<LimitedText>>),
}

/// A body while it arrives.
pub(crate) struct Unpacker {
    encoding: Encoding,
    received: usize,
}

impl Unpacker {
    /// A body with this `Content-Encoding`.
    pub(crate) fn new(encoding: Option<&str>) -> Result<Unpacker, String> {
        let encoding = match encoding.map(str::trim) {
            None | Some("" | "identity") => Encoding::Plain(LimitedText::default()),
            Some("gzip" | "x-gzip") => {
                Encoding::Gzip(Box::new(GzDecoder::new(LimitedText::default())))
            }
            Some(_) => return Err("the answer is packed in another way than gzip".into()),
        };
        Ok(Unpacker {
            encoding,
            received: 0,
        })
    }

    /// Adds bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.received = self.received.saturating_add(bytes.len());
        if self.received > BODY_MAX {
            return Err(TOO_LONG.into());
        }
        let written = match &mut self.encoding {
            Encoding::Plain(text) => text.write_all(bytes),
            Encoding::Gzip(decoder) => decoder.write_all(bytes),
        };
        written.map_err(why)
    }

    /// The whole text.
    pub(crate) fn finish(self) -> Result<Vec<u8>, String> {
        match self.encoding {
            Encoding::Plain(text) => Ok(text.0),
            Encoding::Gzip(decoder) => decoder.finish().map(|text| text.0).map_err(why),
        }
    }
}

fn why(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::FileTooLarge => TOO_LONG.into(),
        _ => "the answer is not gzip, as it says".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn unpack(encoding: Option<&str>, pieces: &[&[u8]]) -> Result<Vec<u8>, String> {
        let mut unpacker = Unpacker::new(encoding)?;
        pieces.iter().try_for_each(|piece| unpacker.push(piece))?;
        unpacker.finish()
    }

    #[test]
    fn bodies_are_unpacked() {
        let gzip = packed(b"up 1\n");
        let (begin, end) = gzip.split_at(7);
        assert_eq!(unpack(None, &[b"up", b" 1\n"]), Ok(b"up 1\n".to_vec()));
        assert_eq!(unpack(Some("gzip"), &[begin, end]), Ok(b"up 1\n".to_vec()));
        for cut in 0..gzip.len() {
            let found = unpack(Some("gzip"), &[&gzip[..cut]]);
            assert!(found.is_err(), "{cut} bytes: {found:?}");
        }
        assert!(unpack(Some("gzip"), &[b"up 1\n"]).is_err());
        assert!(unpack(Some("br"), &[]).is_err());
    }

    #[test]
    fn long_bodies_are_refused() {
        let long = vec![b'a'; BODY_MAX + 1];
        let most = &long[..BODY_MAX];
        for (encoding, text, is_taken) in [
            (None, most.to_vec(), true),
            (None, long.clone(), false),
            (Some("gzip"), packed(most), true),
            (Some("gzip"), packed(&long), false),
            (Some("gzip"), packed(&vec![0; 1 << 30]), false),
        ] {
            let found = unpack(encoding, &[&text]);
            assert_eq!(found.is_ok(), is_taken, "{encoding:?}");
            if let Err(why) = found {
                assert_eq!(why, TOO_LONG);
            }
        }
    }
}
