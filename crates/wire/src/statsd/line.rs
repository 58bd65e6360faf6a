//! One line of statsd: a name, and bundles of values that share a type and a rate. Tags and a timestamp stand behind the last
//! bundle and hold for the whole line.

use kymo_base::scan;
use memchr::{memchr, memchr2};

use super::{BadSample, LINE_MAX, NAME_MAX, Sample, SampleKind, SampleValue};
use crate::number::{SECONDS_MAX, Unreadable, decimal, is_signed};
use crate::tags::{BadTags, Tags};

/// Kind of a line, which its beginning shows.
pub(super) enum Opening<'a> {
    Values(SampleLine<'a>),
    Event,
    ServiceCheck,
}

/// A line whose values are being read.
#[derive(Clone, Debug)]
pub(super) struct SampleLine<'a> {
    name: &'a [u8],
    tags: Tags<'a>,
    timestamp: Option<u64>,
    /// The first bundle, which [`SampleLine::open`] has read already; most lines have no other.
    first: Option<Bundle<'a>>,
    bundles: Bundles<'a>,
    open: Option<OpenBundle<'a>>,
}

impl<'a> SampleLine<'a> {
    /// Reads everything but the values; `text` is not empty.
    pub(super) fn open(text: &'a [u8]) -> Result<Opening<'a>, BadSample> {
        if text.len() > LINE_MAX {
            return Err(BadSample::LineLength);
        }
        if text.starts_with(b"_e{") {
            return Ok(Opening::Event);
        }
        if text.starts_with(b"_sc|") {
            return Ok(Opening::ServiceCheck);
        }
        // `name|c` adds 1, as `name:|c` does.
        let end = memchr2(b':', b'|', text).ok_or(BadSample::NoType)?;
        let (name, behind) = text.split_at(end);
        match name.len() {
            0 => return Err(BadSample::NoName),
            1..=NAME_MAX => {}
            _ => return Err(BadSample::NameLength),
        }
        let mut bundles = Bundles {
            rest: Some(behind.strip_prefix(b":").unwrap_or(behind)),
        };
        let first = bundles.next();
        let (mut tags, mut timestamp) = (None, None);
        for bundle in first.into_iter().chain(bundles) {
            tags = bundle.tags.or(tags);
            timestamp = bundle.timestamp.or(timestamp);
        }
        Ok(Opening::Values(SampleLine {
            name,
            tags: Tags::of_statsd(tags.unwrap_or_default()).map_err(bad_tags)?,
            timestamp: timestamp.map(seconds).transpose()?,
            first,
            bundles,
            open: None,
        }))
    }
}

impl<'a> Iterator for SampleLine<'a> {
    type Item = Result<Sample<'a>, BadSample>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(open) = &mut self.open
                && let Some(found) = open.next_value()
            {
                let (kind, rate) = (open.kind, open.rate);
                return Some(found.map(|(value, signed)| Sample {
                    name: self.name,
                    tags: self.tags,
                    kind,
                    value,
                    signed,
                    rate,
                    timestamp: self.timestamp,
                }));
            }
            let bundle = self.first.take().or_else(|| self.bundles.next())?;
            match bundle.open() {
                Ok(open) => self.open = Some(open),
                Err(bad) => {
                    self.open = None;
                    return Some(Err(bad));
                }
            }
        }
    }
}

/// Splits a line into bundles. A `:` in a type or a rate begins the next bundle; in any other field it belongs to the field.
#[derive(Clone, Copy, Debug)]
struct Bundles<'a> {
    /// The bytes from the first value of the next bundle on.
    rest: Option<&'a [u8]>,
}

/// Values and their fields, unparsed.
#[derive(Clone, Copy, Debug)]
struct Bundle<'a> {
    values: &'a [u8],
    /// The type; empty if the line has none.
    word: &'a [u8],
    rate: Option<&'a [u8]>,
    tags: Option<&'a [u8]>,
    timestamp: Option<&'a [u8]>,
}

impl<'a> Iterator for Bundles<'a> {
    type Item = Bundle<'a>;

    /// The last one of a repeated field counts, as DogStatsD documents.
    fn next(&mut self) -> Option<Bundle<'a>> {
        let (values, fields) = cut(self.rest.take()?, b'|');
        let mut bundle = Bundle {
            values,
            word: b"",
            rate: None,
            tags: None,
            timestamp: None,
        };
        let (word, mut rest) = cut(fields.unwrap_or_default(), b'|');
        let (word, next_bundle) = cut(word, b':');
        // etsy's daemon trims the type, and no other field.
        bundle.word = word.trim_ascii();
        if next_bundle.is_some() {
            self.rest = behind(fields, word);
            return Some(bundle);
        }
        while let Some(fields) = rest {
            let (field, others) = cut(fields, b'|');
            rest = others;
            match field.split_first() {
                Some((b'#', tags)) => bundle.tags = Some(tags),
                Some((b'T', timestamp)) => bundle.timestamp = Some(timestamp),
                Some((b'@', field)) => {
                    let (rate, next_bundle) = cut(field, b':');
                    bundle.rate = Some(rate);
                    if next_bundle.is_some() {
                        self.rest = behind(fields.get(1..), rate);
                        return Some(bundle);
                    }
                }
                // Skips the container (`c:`), `e:`, `card:` and fields of later versions.
                _ => {}
            }
        }
        Some(bundle)
    }
}

/// `text` up to the first `mark`, and the bytes behind the mark if there is one.
fn cut(text: &[u8], mark: u8) -> (&[u8], Option<&[u8]>) {
    match memchr(mark, text) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// The bytes of `fields` behind its first `word` and the mark that follows the word.
fn behind<'a>(fields: Option<&'a [u8]>, word: &[u8]) -> Option<&'a [u8]> {
    fields.and_then(|fields| fields.get(word.len() + 1..))
}

/// A bundle whose values are being read.
#[derive(Clone, Debug)]
struct OpenBundle<'a> {
    kind: SampleKind,
    rate: f64,
    values: Option<&'a [u8]>,
}

impl<'a> Bundle<'a> {
    fn open(&self) -> Result<OpenBundle<'a>, BadSample> {
        if self.word.is_empty() {
            return Err(BadSample::NoType);
        }
        let kind = SampleKind::of_word(self.word);
        let values = match (kind, self.values) {
            // etsy's daemon counted a missing value as 1 until it began to check numbers; it still reads an empty member as `0`.
            (SampleKind::Counter, b"") => b"1",
            (SampleKind::Set, b"") => b"0",
            // DogStatsD skips empty values among others.
            (SampleKind::Set, member) => member,
            (_, values) if values.iter().all(|&byte| byte == b':') => {
                return Err(BadSample::NoValue);
            }
            (_, values) => values,
        };
        Ok(OpenBundle {
            kind,
            rate: self.rate.map_or(Ok(1.0), rate)?,
            values: Some(values),
        })
    }
}

impl<'a> OpenBundle<'a> {
    /// The next value, and whether it has a sign.
    fn next_value(&mut self) -> Option<Result<(SampleValue<'a>, bool), BadSample>> {
        // DogStatsD packs no members, so a member may contain colons. etsy's daemon refuses the part before a colon.
        if self.kind == SampleKind::Set {
            let member = self.values.take()?;
            return Some(Ok((SampleValue::Text(member), false)));
        }
        loop {
            let (text, rest) = cut(self.values?, b':');
            self.values = rest;
            if !text.is_empty() {
                return Some(self.number(text));
            }
        }
    }

    fn number(&self, text: &[u8]) -> Result<(SampleValue<'a>, bool), BadSample> {
        let number = decimal(text).map_err(|why| match why {
            Unreadable::NotDecimal => BadSample::Number,
            Unreadable::NotANumber | Unreadable::Infinite => BadSample::NotFinite,
        })?;
        match self.kind == SampleKind::Timer && number < 0.0 {
            true => Err(BadSample::Negative),
            false => Ok((SampleValue::Number(number), is_signed(text))),
        }
    }
}

fn rate(text: &[u8]) -> Result<f64, BadSample> {
    let rate = decimal(text).map_err(|_| BadSample::Rate)?;
    let fits = rate > 0.0 && rate <= 1.0;
    fits.then_some(rate).ok_or(BadSample::Rate)
}

fn seconds(text: &[u8]) -> Result<u64, BadSample> {
    let seconds = scan::number(text).filter(|seconds| (1..=SECONDS_MAX).contains(seconds));
    seconds.ok_or(BadSample::Timestamp)
}

fn bad_tags(bad: BadTags) -> BadSample {
    match bad {
        BadTags::Count => BadSample::TagCount,
        BadTags::Length => BadSample::TagLength,
        BadTags::NoKey => BadSample::TagKey,
    }
}
