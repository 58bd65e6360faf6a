//! Makes a file from the XML of a dump.
//!
//! Tags may have any case and mostly any order. Of a text only the first word counts. A dump loses digits
//! behind the eleventh, microseconds, and the first rows of archives.

use kymo_base::random::next_random;

use crate::UNKNOWN;
use crate::cf::{Cf, is_dst};
use crate::compute_text;
use crate::error::Error;
use crate::header::{
    COUNT_MAX, CdpPrep, DsDef, Header, PREPARATIONS_MAX, PdpPrep, RraDef, field, until_nul,
};
use crate::number::{Parsed, strtodbl};
use crate::resize::{strtol, strtoul};
use crate::room::require_room;
use crate::rrd::Rrd;
use crate::spec::{atoi, shown};
use crate::xml::{Node, Reader};

/// Number of violations in a history that rrdtool reads, though it writes more.
const HISTORY_READ: usize = 10;

/// Checks values against a data source's minimum and maximum (`-r`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RangeCheck {
    /// Values out of range stay.
    #[default]
    Off,
    /// Values out of range become unknown.
    On,
}

/// Reads a dump. `random` is the state of the generator that chooses the first row of each archive.
pub fn restore(xml: &[u8], check: RangeCheck, random: &mut u64) -> Result<Rrd, Error> {
    let mut restore = Restore {
        reader: Reader::new(xml),
        check,
        version: [0; 5],
        rrd: Rrd {
            header: empty(),
            cells: Vec::new(),
        },
    };
    restore.expect("rrd")?;
    restore.root()?;
    let Restore {
        version, mut rrd, ..
    } = restore;
    // Older versions are written as version 3.
    rrd.header.version = match atoi(&version) {
        ..=3 => 3,
        version @ 4..=5 => version as u8,
        _ => {
            let version = shown(until_nul(&version));
            return Err(Error::new(format!(
                "can't handle RRD file version {version}"
            )));
        }
    };
    require_room(&rrd.header).map_err(|_| damaged())?;
    let all = rrd.header.ds.len() * rrd.header.rra.len();
    rrd.header
        .cdp_prep
        .resize(all, CdpPrep { scratch: [0; 10] });
    rotate(&mut rrd, random);
    rrd.header.check().map_err(|_| damaged())?;
    Ok(rrd)
}

fn damaged() -> Error {
    Error::new("the dump describes no file that could be read")
}

fn empty() -> Header {
    Header {
        version: 3,
        head_pad: [0; 7],
        pdp_step: 0,
        head_par: [0; 10],
        ds: Vec::new(),
        rra: Vec::new(),
        last_up: 0,
        last_up_usec: 0,
        pdp_prep: Vec::new(),
        cdp_prep: Vec::new(),
        cur_row: Vec::new(),
    }
}

/// Rotates the rows of each archive, which come oldest first, to a random position.
fn rotate(rrd: &mut Rrd, random: &mut u64) {
    let (ds_cnt, mut first) = (rrd.header.ds.len(), 0);
    for rra in &rrd.header.rra {
        let row = next_random(random) % rra.row_cnt;
        let len = rra.row_cnt as usize * ds_cnt;
        rrd.cells[first..first + len].rotate_right((row as usize + 1) * ds_cnt % len.max(1));
        rrd.header.cur_row.push(row);
        first += len;
    }
}

struct Restore<'a> {
    reader: Reader<'a>,
    check: RangeCheck,
    version: [u8; 5],
    rrd: Rrd,
}

/// Name of a tag in lower case; an end tag begins with a slash.
type Tag = Vec<u8>;

impl Restore<'_> {
    /// Parses the content of `<rrd>`.
    fn root(&mut self) -> Result<(), Error> {
        loop {
            let tag = self.tag()?;
            match &tag[..] {
                b"version" => {
                    let text = self.short_text(self.version.len())?;
                    self.version = field(&text);
                }
                b"step" => self.rrd.header.pdp_step = self.count()?,
                b"lastupdate" => self.rrd.header.last_up = self.stamp()?,
                b"ds" => {
                    self.source()?;
                    continue;
                }
                b"rra" => {
                    self.archive()?;
                    continue;
                }
                b"/rrd" => return Ok(()),
                _ => return Err(unknown("parse_tag_rrd", &tag)),
            }
            self.expect_end(&tag)?;
        }
    }

    fn source(&mut self) -> Result<(), Error> {
        if !self.rrd.header.rra.is_empty() {
            return Err(Error::new(
                "parse_tag_ds: All data source definitions MUST precede the RRA definitions!",
            ));
        }
        let header = &mut self.rrd.header;
        if header.ds.len() as u64 >= COUNT_MAX {
            return Err(Error::new("parse_tag_ds: malloc failed."));
        }
        header.ds.push(DsDef {
            ds_nam: [0; 20],
            dst: [0; 20],
            par: [0; 10],
        });
        header.pdp_prep.push(PdpPrep {
            last_ds: [0; 30],
            pad: [0; 2],
            scratch: [0; 10],
        });
        let i = header.ds.len() - 1;
        loop {
            let tag = self.tag()?;
            match &tag[..] {
                b"name" => self.rrd.header.ds[i].ds_nam = field(&self.short_text(20)?),
                b"type" => self.rrd.header.ds[i].dst = self.source_type()?,
                b"minimal_heartbeat" => self.rrd.header.ds[i].par[0] = self.count()?,
                b"min" => self.rrd.header.ds[i].par[1] = self.number()?.to_bits(),
                b"max" => self.rrd.header.ds[i].par[2] = self.number()?.to_bits(),
                b"cdef" => {
                    let text = self.text()?;
                    let program = compute_text::compile(&text, &self.rrd.header.ds)?;
                    overlay(&mut self.rrd.header.ds[i].par, &program);
                }
                b"last_ds" => self.rrd.header.pdp_prep[i].last_ds = field(&self.short_text(30)?),
                b"value" => {
                    self.rrd.header.pdp_prep[i].scratch[1] = self.number()?.to_bits();
                }
                b"unknown_sec" => self.rrd.header.pdp_prep[i].scratch[0] = self.count()?,
                b"/ds" => return Ok(()),
                _ => return Err(unknown("parse_tag_ds", &tag)),
            }
            self.expect_end(&tag)?;
        }
    }

    fn source_type(&mut self) -> Result<[u8; 20], Error> {
        let text = self.text()?;
        if !is_dst(&text) {
            let text = shown(&text);
            return Err(Error::new(format!(
                "parse_tag_ds_type: Unknown data source type: {text}"
            )));
        }
        Ok(field(&text))
    }

    fn archive(&mut self) -> Result<(), Error> {
        let mut rra = RraDef {
            cf_nam: [0; 20],
            pad: [0; 4],
            row_cnt: 0,
            pdp_cnt: 0,
            par: [0; 10],
        };
        // Earlier archives without rows in progress get zeros.
        let all = self.rrd.header.ds.len() * self.rrd.header.rra.len();
        let too_many = self.rrd.header.rra.len() as u64 >= COUNT_MAX;
        if all as u64 > PREPARATIONS_MAX || too_many {
            return Err(Error::new("parse_tag_rra: realloc failed."));
        }
        let zeros = CdpPrep { scratch: [0; 10] };
        self.rrd.header.cdp_prep.resize(all, zeros);
        loop {
            let tag = self.tag()?;
            match &tag[..] {
                b"cf" => rra.cf_nam = self.function()?,
                b"pdp_per_row" => rra.pdp_cnt = self.count()?,
                b"xff" if atoi(&self.version) == 1 => rra.par[0] = self.number()?.to_bits(),
                b"params" if atoi(&self.version) >= 2 => {
                    self.parameters(&mut rra)?;
                    continue;
                }
                b"cdp_prep" => {
                    self.rrd.header.cdp_prep.truncate(all);
                    self.preparations()?;
                    continue;
                }
                b"database" => {
                    self.rows(&mut rra)?;
                    continue;
                }
                b"/rra" => break,
                _ => {
                    let (line, tag) = (self.reader.line(), shown(&tag));
                    return Err(Error::new(format!(
                        "line {line}: parse_tag_rra: Unknown tag: {tag}"
                    )));
                }
            }
            self.expect_end(&tag)?;
        }
        self.rrd.header.rra.push(rra);
        Ok(())
    }

    fn function(&mut self) -> Result<[u8; 20], Error> {
        let text = self.short_text(20)?;
        if Cf::of(&text).is_none() {
            let text = shown(&text);
            return Err(Error::new(format!(
                "parse_tag_rra_cf: Unknown consolidation function: {text}"
            )));
        }
        Ok(field(&text))
    }

    fn parameters(&mut self, rra: &mut RraDef) -> Result<(), Error> {
        loop {
            let tag = self.tag()?;
            let word = match &tag[..] {
                b"xff" => 0,
                b"hw_alpha" | b"seasonal_gamma" | b"delta_pos" => 1,
                b"hw_beta" | b"smoothing_window" | b"delta_neg" => 2,
                b"dependent_rra_idx" => 3,
                b"seasonal_smooth_idx" | b"window_len" => 4,
                b"failure_threshold" => 5,
                b"/params" => return Ok(()),
                _ => {
                    // As in rrdtool, a missing end tag is reported rather than the unknown tag.
                    self.expect_end(&tag)?;
                    let (line, tag) = (self.reader.line(), shown(&tag));
                    return Err(Error::new(format!(
                        "line {line}: parse_tag_rra_params: Unknown tag: {tag}"
                    )));
                }
            };
            rra.par[word] = if word < 3 {
                self.number()?.to_bits()
            } else {
                self.count()?
            };
            self.expect_end(&tag)?;
        }
    }

    fn preparations(&mut self) -> Result<(), Error> {
        for _ in 0..self.rrd.header.ds.len() {
            self.expect("ds")?;
            let cdp = self.preparation()?;
            self.rrd.header.cdp_prep.push(cdp);
        }
        self.expect("/cdp_prep")
    }

    fn preparation(&mut self) -> Result<CdpPrep, Error> {
        let mut words = [0; 10];
        loop {
            let tag = self.tag()?;
            let word = match &tag[..] {
                b"value" => 0,
                b"intercept" | b"seasonal" => 2,
                b"last_intercept" | b"last_seasonal" => 3,
                b"slope" => 4,
                b"last_slope" => 5,
                b"primary_value" => 8,
                b"secondary_value" => 9,
                b"unknown_datapoints" | b"nan_count" | b"last_nan_count" | b"init_flag" => 10,
                b"history" => 11,
                b"/ds" => return Ok(CdpPrep { scratch: words }),
                _ => return Err(unknown("parse_tag_rra_cdp_prep", &tag)),
            };
            match word {
                10 => {
                    let count = self.count()?;
                    let word = match &tag[..] {
                        b"unknown_datapoints" => 1,
                        b"last_nan_count" => 7,
                        _ => 6,
                    };
                    words[word] = count;
                }
                11 => put_history(&self.text()?, &mut words),
                word => words[word] = self.number()?.to_bits(),
            }
            self.expect_end(&tag)?;
        }
    }

    fn rows(&mut self, rra: &mut RraDef) -> Result<(), Error> {
        loop {
            let tag = self.tag()?;
            match &tag[..] {
                b"row" => self.row()?,
                b"/database" => break,
                _ => {
                    let (line, tag) = (self.reader.line(), shown(&tag));
                    return Err(Error::new(format!(
                        "line {line}: found unexpected tag: {tag}"
                    )));
                }
            }
            rra.row_cnt += 1;
        }
        Ok(())
    }

    fn row(&mut self) -> Result<(), Error> {
        for i in 0..self.rrd.header.ds.len() {
            self.expect("v")?;
            let value = self.number()?;
            let ds = &self.rrd.header.ds[i];
            let [min, max] = [ds.par[1], ds.par[2]].map(f64::from_bits);
            let outside = self.check == RangeCheck::On && (value < min || value > max);
            self.rrd.cells.push(if outside { UNKNOWN } else { value });
            self.expect("/v")?;
        }
        self.expect("/row")
    }

    /// The next tag; text before it is an error.
    fn tag(&mut self) -> Result<Tag, Error> {
        let tag = match self.reader.next()? {
            Some(Node::Element(name)) => name.to_ascii_lowercase(),
            Some(Node::End(name)) => [b"/", &name.to_ascii_lowercase()[..]].concat(),
            Some(Node::Text(text)) => {
                let text = shown(text);
                let line = self.reader.line();
                return Err(Error::new(format!(
                    "line {line}: expected element but found text '{text}'"
                )));
            }
            None => {
                return Err(Error::new(
                    "the xml ended while we were looking for an element",
                ));
            }
        };
        Ok(tag)
    }

    /// Parses a required tag. As in rrdtool, the error swaps the two names.
    fn expect(&mut self, wanted: &str) -> Result<(), Error> {
        let tag = self.tag()?;
        if tag != wanted.as_bytes() {
            let (line, tag) = (self.reader.line(), shown(&tag));
            return Err(Error::new(format!(
                "line {line}: expected <{tag}> element but found <{wanted}>"
            )));
        }
        Ok(())
    }

    /// Parses the end of an element. That of an empty element was read already while its text was parsed.
    fn expect_end(&mut self, wanted: &[u8]) -> Result<(), Error> {
        let tag = match &self.reader.node {
            Some(Node::End(name)) => [b"/", &name.to_ascii_lowercase()[..]].concat(),
            _ => self.tag()?,
        };
        if tag.strip_prefix(b"/") != Some(wanted) {
            let (line, tag, wanted) = (self.reader.line(), shown(&tag), shown(wanted));
            return Err(Error::new(format!(
                "line {line}: expected </{wanted}> end element but found <{tag}>"
            )));
        }
        Ok(())
    }

    /// The first word of the element's text.
    fn text(&mut self) -> Result<Vec<u8>, Error> {
        match self.reader.next()? {
            Some(Node::Text(text)) => {
                let text = text.trim_ascii_start();
                let end = text.iter().position(|byte| byte.is_ascii_whitespace());
                Ok(text[..end.unwrap_or(text.len())].to_vec())
            }
            Some(Node::End(_)) => Ok(Vec::new()),
            Some(Node::Element(name)) => {
                let name = shown(name);
                let line = self.reader.line();
                Err(Error::new(format!(
                    "line {line}: expected a value but found a <{name}> element"
                )))
            }
            None => Err(Error::new("file ended while looking for text")),
        }
    }

    fn short_text(&mut self, max: usize) -> Result<Vec<u8>, Error> {
        let text = self.text()?;
        if text.len() >= max {
            let text = shown(&text);
            return Err(Error::new(format!("'{text}' is longer than {max}")));
        }
        Ok(text)
    }

    fn count(&mut self) -> Result<u64, Error> {
        let text = self.text()?;
        strtoul(&text)
            .ok_or_else(|| self.complaint("get_xml_ulong", &text, "Numerical result out of range"))
    }

    fn stamp(&mut self) -> Result<i64, Error> {
        self.text().map(|text| strtol(&text))
    }

    fn number(&mut self) -> Result<f64, Error> {
        let text = self.text()?;
        let lower = text.to_ascii_lowercase();
        let holds = |word: &[u8]| lower.windows(word.len()).any(|window| window == word);
        if holds(b"nan") {
            return Ok(UNKNOWN);
        }
        if holds(b"inf") {
            let negative = holds(b"-inf");
            return Ok(if negative {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            });
        }
        match strtodbl(&text) {
            Parsed::All(value) => Ok(value),
            _ => Err(self.complaint("get_xml_double", &text, "Success")),
        }
    }

    fn complaint(&self, place: &str, text: &[u8], cause: &str) -> Error {
        let (line, text) = (self.reader.line(), shown(text));
        Error::new(format!("ling {line}: {place} from '{text}' {cause}"))
    }
}

fn unknown(place: &str, tag: &[u8]) -> Error {
    let tag = shown(tag);
    Error::new(format!("{place}: Unknown tag: {tag}"))
}

/// Overwrites words by a program up to its end; the rest stays.
fn overlay(par: &mut [u64; 10], program: &[u64; 10]) {
    let nodes = compute_text::nodes(program).count() + 1;
    for i in 0..nodes {
        let mask = 0xffff_ffff << (32 * (i % 2));
        par[i / 2] = (par[i / 2] & !mask) | (program[i / 2] & mask);
    }
}

fn put_history(text: &[u8], words: &mut [u64; 10]) {
    for (i, &byte) in text.iter().take(HISTORY_READ).enumerate() {
        let violation = u64::from(byte == b'1');
        let shift = 8 * (i % 8);
        words[i / 8] = (words[i / 8] & !(0xff << shift)) | (violation << shift);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::create::{Create, create};
    use crate::dump::{DumpHead, dump};

    fn dumped(rrd: &mut Rrd) -> Vec<u8> {
        let mut out = Vec::new();
        let zone = jiff::tz::TimeZone::UTC;
        dump(&rrd.header, &mut rrd.cells, DumpHead::Xsd, &zone, &mut out).unwrap();
        out
    }

    #[test]
    fn a_dump_of_what_was_restored_is_the_dump() {
        let definitions: [&[u8]; 5] = [
            b"DS:a:DCOUNTER:60:0:100",
            b"DS:b:COMPUTE:a,2,*",
            b"RRA:AVERAGE:0.5:1:5",
            b"RRA:MIN:0.5:3:4",
            b"RRA:MHWPREDICT:9:0.1:0.1:3",
        ];
        let request = Create {
            file_name: b"f",
            definitions: &definitions,
            ..Create::default()
        };
        let mut rrd = create(&request, 1_000_000_017, &mut 1, None, &[]).unwrap();
        for (i, cell) in rrd.cells.iter_mut().enumerate() {
            *cell = i as f64 * 3.5;
        }
        let xml = dumped(&mut rrd);
        let mut back = restore(&xml, RangeCheck::Off, &mut 9).unwrap();
        assert_eq!(
            String::from_utf8(dumped(&mut back)),
            String::from_utf8(xml.clone())
        );
        let checked = restore(&xml, RangeCheck::On, &mut 9).unwrap();
        assert!(
            checked
                .cells
                .iter()
                .all(|&cell| cell.is_nan() || cell <= 100.0)
        );
        for len in (0..xml.len() - 7).step_by(3) {
            assert!(restore(&xml[..len], RangeCheck::Off, &mut 9).is_err());
        }
    }

    #[test]
    fn small_dumps_do_not_make_large_files() {
        let sources = "<ds></ds>".repeat(COUNT_MAX as usize + 1);
        let archives = "<rra></rra>".repeat(2000);
        for inner in [
            sources.clone(),
            format!("{}{archives}", "<ds></ds>".repeat(2000)),
            "<rra><database>".to_owned() + &"<row></row>".repeat(10) + "</database></rra>",
            String::new(),
        ] {
            let xml = format!("<rrd><version>0003</version><step>1</step>{inner}</rrd>");
            let restored = restore(xml.as_bytes(), RangeCheck::Off, &mut 9);
            assert!(restored.is_err() || inner.is_empty());
        }
    }
}
