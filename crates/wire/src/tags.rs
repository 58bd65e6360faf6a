//! Tags behind a name: pairs of key and value, borrowed from the line. DogStatsD writes `key:value,key:value`, Graphite
//! `key=value;key=value`. Tags keep the sender's order and repeated keys; this module neither sorts nor drops any.

use memchr::memchr;

/// Most tags of one name. Datadog and Graphite advise fewer than 20; each tag makes a line dearer to every reader.
pub const TAGS_MAX: usize = 64;
/// Longest tag, key and value together, in bytes. Datadog cuts a tag at 200 characters, which are 800 bytes at most.
pub const TAG_MAX: usize = 1024;

/// The separators of a protocol: between tags, and between a key and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Marks {
    tag: u8,
    value: u8,
}

/// Tags in a line's own bytes: at most [`TAGS_MAX`], none without a key or longer than [`TAG_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tags<'a> {
    raw: &'a [u8],
    marks: Marks,
}

/// Why a line's tags are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadTags {
    /// There are more than [`TAGS_MAX`] tags.
    Count,
    /// A tag is longer than [`TAG_MAX`].
    Length,
    /// A tag has a value but no key.
    NoKey,
}

impl<'a> Tags<'a> {
    /// Tags of DogStatsD: the bytes behind `#`.
    pub(crate) fn of_statsd(raw: &'a [u8]) -> Result<Tags<'a>, BadTags> {
        let (tag, value) = (b',', b':');
        Tags::checked(raw, Marks { tag, value })
    }

    /// Tags of Graphite: the bytes behind the first `;`.
    pub(crate) fn of_graphite(raw: &'a [u8]) -> Result<Tags<'a>, BadTags> {
        let (tag, value) = (b';', b'=');
        Tags::checked(raw, Marks { tag, value })
    }

    fn checked(raw: &'a [u8], marks: Marks) -> Result<Tags<'a>, BadTags> {
        let tags = Tags { raw, marks };
        for (at, tag) in tags.pieces().enumerate() {
            match () {
                () if at >= TAGS_MAX => return Err(BadTags::Count),
                () if tag.len() > TAG_MAX => return Err(BadTags::Length),
                () if tag.first() == Some(&marks.value) => return Err(BadTags::NoKey),
                () => {}
            }
        }
        Ok(tags)
    }

    fn pieces(&self) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        let mark = self.marks.tag;
        let pieces = self.raw.split(move |&byte| byte == mark);
        pieces.filter(|piece| !piece.is_empty())
    }

    /// Pairs of key and value in the sender's order. Keys are not empty; a tag without a value has an empty one.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a> {
        let mark = self.marks.value;
        self.pieces().map(move |piece| match memchr(mark, piece) {
            Some(at) => (&piece[..at], &piece[at + 1..]),
            None => (piece, &b""[..]),
        })
    }

    /// True if there is no tag.
    pub fn is_empty(&self) -> bool {
        self.pieces().next().is_none()
    }

    /// The tags as the line spells them. Within one protocol equal bytes mean equal tags.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_pairs() {
        type Pairs = &'static [(&'static str, &'static str)];
        let table: &[(&str, Result<Pairs, BadTags>)] = &[
            ("", Ok(&[])),
            (",,", Ok(&[])),
            ("a", Ok(&[("a", "")])),
            ("a:", Ok(&[("a", "")])),
            ("a:b", Ok(&[("a", "b")])),
            ("a:b:c,d", Ok(&[("a", "b:c"), ("d", "")])),
            ("b:1,a:2,,b:3,", Ok(&[("b", "1"), ("a", "2"), ("b", "3")])),
            ("a=b;c", Ok(&[("a=b;c", "")])),
            (":b", Err(BadTags::NoKey)),
            ("a:b,:", Err(BadTags::NoKey)),
        ];
        for (text, expected) in table {
            let tags = Tags::of_statsd(text.as_bytes());
            let pairs = tags.map(|tags| tags.iter().collect::<Vec<_>>());
            let expected = expected.map(|pairs| {
                let pairs = pairs.iter();
                let pairs = pairs.map(|(key, value)| (key.as_bytes(), value.as_bytes()));
                pairs.collect::<Vec<_>>()
            });
            assert_eq!(pairs, expected, "{text}");
            assert_eq!(
                tags.map(|tags| tags.is_empty()),
                expected.map(|pairs| pairs.is_empty())
            );
        }
    }

    #[test]
    fn tags_have_limits() {
        for (text, expected) in [
            ("k=v;".repeat(TAGS_MAX), None),
            ("k=v;".repeat(TAGS_MAX + 1), Some(BadTags::Count)),
            (format!("k={}", "v".repeat(TAG_MAX - 2)), None),
            (
                format!("k={}", "v".repeat(TAG_MAX - 1)),
                Some(BadTags::Length),
            ),
        ] {
            assert_eq!(Tags::of_graphite(text.as_bytes()).err(), expected);
        }
    }
}
