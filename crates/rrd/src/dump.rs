//! Writes a file as XML, byte for byte like rrdtool 1.7.2 to 1.9.

use kymo_base::errno::strerror;
use std::io::{self, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::cf::Cf;
use crate::compute_text;
use crate::dump_number;
use crate::error::Error;
use crate::header::{Header, RraDef, Univals, until_nul};
use crate::info::violations;
use crate::rows::Rows;

/// Buffered text that is written at once, bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// Number of cells of one read.
const CELLS_AT_ONCE: u64 = 8192;
const SECONDS_A_DAY: i64 = 24 * 60 * 60;

/// Beginning of the document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DumpHead {
    /// A comment alone (`-h none`, `-n`).
    None,
    /// A document type (`-h dtd`, the default).
    #[default]
    Dtd,
    /// A schema (`-h xsd`).
    Xsd,
}

/// Writes the document. Its comments show times in `zone`.
pub fn dump(
    header: &Header,
    rows: &mut impl Rows,
    head: DumpHead,
    zone: &TimeZone,
    out: &mut impl io::Write,
) -> Result<(), Error> {
    let mut text = Vec::with_capacity(2 * BUFFER_BYTES);
    put_head(head, &mut text);
    let version = header.version.max(3);
    put(
        &mut text,
        format_args!("\t<version>000{version}</version>\n"),
    );
    let step = header.pdp_step;
    put(
        &mut text,
        format_args!("\t<step>{step}</step> <!-- Seconds -->\n"),
    );
    let last = header.last_up;
    put(
        &mut text,
        format_args!("\t<lastupdate>{last}</lastupdate> <!-- "),
    );
    put_time(last, zone, &mut text);
    text.extend_from_slice(b" -->\n\n");
    for i in 0..header.ds.len() {
        put_source(header, i, &mut text);
        hand_on(&mut text, BUFFER_BYTES, out)?;
    }
    text.extend_from_slice(b"\t<!-- Round Robin Archives -->\n");
    for i in 0..header.rra.len() {
        put_archive(header, i, &mut text, out)?;
        put_rows(header, rows, i, zone, &mut text, out)?;
    }
    text.extend_from_slice(b"</rrd>\n");
    hand_on(&mut text, 0, out)
}

fn put_head(head: DumpHead, text: &mut Vec<u8>) {
    if head != DumpHead::None {
        text.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    }
    if head == DumpHead::Dtd {
        let system = "https://oss.oetiker.ch/rrdtool/rrdtool.dtd";
        put(text, format_args!("<!DOCTYPE rrd SYSTEM \"{system}\">\n"));
    }
    text.extend_from_slice(b"<!-- Round Robin Database Dump -->\n");
    if head == DumpHead::Xsd {
        let base = "https://oss.oetiker.ch/rrdtool/rrdtool-dump";
        put(
            text,
            format_args!(
                "<rrd xmlns=\"{base}.xml\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"\n\
                 \txsi:schemaLocation=\"{base}.xml {base}.xsd\">\n"
            ),
        );
    } else {
        text.extend_from_slice(b"<rrd>\n");
    }
}

fn put_source(header: &Header, i: usize, text: &mut Vec<u8>) {
    let (ds, pdp) = (&header.ds[i], &header.pdp_prep[i]);
    text.extend_from_slice(b"\t<ds>\n\t\t<name> ");
    text.extend_from_slice(ds.name());
    text.extend_from_slice(b" </name>\n\t\t<type> ");
    text.extend_from_slice(ds.dst());
    text.extend_from_slice(b" </type>\n");
    if ds.dst() == b"COMPUTE" {
        text.extend_from_slice(b"\t\t<cdef> ");
        compute_text::print(&ds.par, &header.ds, text);
        text.extend_from_slice(b" </cdef>\n");
    } else {
        put_count("\t\t", "minimal_heartbeat", ds.par[0], text);
        put_known("\t\t", "min", ds.par[1], text);
        put_known("\t\t", "max", ds.par[2], text);
    }
    text.extend_from_slice(b"\n\t\t<!-- PDP Status -->\n\t\t<last_ds>");
    text.extend_from_slice(until_nul(&pdp.last_ds));
    text.extend_from_slice(b"</last_ds>\n");
    put_known("\t\t", "value", pdp.scratch[1], text);
    let unknown = pdp.scratch[0];
    put(
        text,
        format_args!("\t\t<unknown_sec> {unknown} </unknown_sec>\n"),
    );
    text.extend_from_slice(b"\t</ds>\n\n");
}

/// Appends an archive up to its rows.
fn put_archive(
    header: &Header,
    i: usize,
    text: &mut Vec<u8>,
    out: &mut impl io::Write,
) -> Result<(), Error> {
    let rra = &header.rra[i];
    text.extend_from_slice(b"\t<rra>\n\t\t<cf>");
    text.extend_from_slice(rra.cf());
    let (pdp_cnt, seconds) = (rra.pdp_cnt, rra.pdp_cnt * header.pdp_step);
    put(
        text,
        format_args!(
            "</cf>\n\t\t<pdp_per_row>{pdp_cnt}</pdp_per_row> <!-- {seconds} seconds -->\n\n"
        ),
    );
    text.extend_from_slice(b"\t\t<params>\n");
    put_parameters(header.version, rra, text);
    text.extend_from_slice(b"\t\t</params>\n\t\t<cdp_prep>\n");
    for j in 0..header.ds.len() {
        let scratch = &header.cdp_prep[i * header.ds.len() + j].scratch;
        text.extend_from_slice(b"\t\t\t<ds>\n");
        put_preparation(rra, scratch, text);
        text.extend_from_slice(b"\t\t\t</ds>\n");
        hand_on(text, BUFFER_BYTES, out)?;
    }
    text.extend_from_slice(b"\t\t</cdp_prep>\n");
    Ok(())
}

fn put_parameters(version: u8, rra: &RraDef, text: &mut Vec<u8>) {
    let par = &rra.par;
    let cf = Cf::of(rra.cf());
    match cf {
        Some(Cf::HwPredict | Cf::MhwPredict) => {
            put_value("\t\t", "hw_alpha", par[1], text);
            put_value("\t\t", "hw_beta", par[2], text);
        }
        Some(Cf::Seasonal | Cf::DevSeasonal) => {
            put_value("\t\t", "seasonal_gamma", par[1], text);
            put_count("\t\t", "seasonal_smooth_idx", par[4], text);
            if version >= 4 {
                put_value("\t\t", "smoothing_window", par[2], text);
            }
        }
        Some(Cf::Failures) => {
            put_value("\t\t", "delta_pos", par[1], text);
            put_value("\t\t", "delta_neg", par[2], text);
            put_count("\t\t", "window_len", par[4], text);
            put_count("\t\t", "failure_threshold", par[5], text);
        }
        Some(Cf::DevPredict) => {}
        _ => put_value("\t\t", "xff", par[0], text),
    }
    if cf.is_some_and(|cf| !cf.is_plain()) {
        put_count("\t\t", "dependent_rra_idx", par[3], text);
    }
}

fn put_preparation(rra: &RraDef, scratch: &Univals, text: &mut Vec<u8>) {
    let tabs = "\t\t\t";
    put_known(tabs, "primary_value", scratch[8], text);
    put_known(tabs, "secondary_value", scratch[9], text);
    match Cf::of(rra.cf()) {
        Some(Cf::HwPredict | Cf::MhwPredict) => {
            put_known(tabs, "intercept", scratch[2], text);
            put_known(tabs, "last_intercept", scratch[3], text);
            put_known(tabs, "slope", scratch[4], text);
            put_known(tabs, "last_slope", scratch[5], text);
            put_count(tabs, "nan_count", scratch[6], text);
            put_count(tabs, "last_nan_count", scratch[7], text);
        }
        Some(Cf::Seasonal | Cf::DevSeasonal) => {
            put_known(tabs, "seasonal", scratch[2], text);
            put_known(tabs, "last_seasonal", scratch[3], text);
            put_count(tabs, "init_flag", scratch[6], text);
        }
        Some(Cf::DevPredict) => {}
        Some(Cf::Failures) => {
            put(text, format_args!("{tabs}<history>"));
            for violation in violations(rra, scratch) {
                put(text, format_args!("{}", violation.cast_signed()));
            }
            text.extend_from_slice(b"</history>\n");
        }
        _ => {
            put_known(tabs, "value", scratch[0], text);
            put_count(tabs, "unknown_datapoints", scratch[1], text);
        }
    }
}

/// Appends the rows of an archive, oldest first.
fn put_rows(
    header: &Header,
    rows: &mut impl Rows,
    i: usize,
    zone: &TimeZone,
    text: &mut Vec<u8>,
    out: &mut impl io::Write,
) -> Result<(), Error> {
    let (rra, ds_cnt) = (&header.rra[i], header.ds.len() as u64);
    let step = (rra.pdp_cnt * header.pdp_step) as i64;
    let newest = header
        .last_up
        .wrapping_sub((header.last_up as u64 % step as u64) as i64);
    let mut stamp = newest.wrapping_sub((rra.row_cnt as i64 - 1) * step);
    let (mut at, mut cells) = (0, Vec::new());
    text.extend_from_slice(b"\t\t<database>\n");
    while at < rra.row_cnt {
        let row = (header.cur_row[i] + 1 + at) % rra.row_cnt;
        let len = (rra.row_cnt - at).min(rra.row_cnt - row);
        let len = len.min((CELLS_AT_ONCE / ds_cnt.max(1)).max(1));
        cells.resize((len * ds_cnt) as usize, 0.0);
        rows.read(header.cell(i, row), &mut cells)?;
        for row in 0..len as usize {
            text.extend_from_slice(b"\t\t\t<!-- ");
            put_time(stamp, zone, text);
            put(text, format_args!(" / {stamp} --> <row>"));
            for &cell in &cells[row * ds_cnt as usize..(row + 1) * ds_cnt as usize] {
                put_cell(cell, text);
            }
            text.extend_from_slice(b"</row>\n");
            stamp = stamp.wrapping_add(step);
            hand_on(text, BUFFER_BYTES, out)?;
        }
        at += len;
    }
    text.extend_from_slice(b"\t\t</database>\n\t</rra>\n");
    Ok(())
}

fn put_cell(cell: f64, text: &mut Vec<u8>) {
    if cell.is_nan() {
        return text.extend_from_slice(b"<v>NaN</v>");
    }
    text.extend_from_slice(b"<v>");
    dump_number::put(cell, text);
    text.extend_from_slice(b"</v>");
}

/// strftime's `%Y-%m-%d %H:%M:%S %Z`. Times beyond the calendar's range are shown in UTC.
fn put_time(stamp: i64, zone: &TimeZone, text: &mut Vec<u8>) {
    let info = Timestamp::from_second(stamp).ok();
    let info = info.map(|stamp| zone.to_offset_info(stamp));
    let offset = info.as_ref().map_or(0, |info| info.offset().seconds());
    let local = stamp.saturating_add(offset.into());
    let (year, month, day) = civil(local.div_euclid(SECONDS_A_DAY));
    let second = local.rem_euclid(SECONDS_A_DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    put(
        text,
        format_args!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} "),
    );
    let abbreviation = info.as_ref().map_or("UTC", |info| info.abbreviation());
    text.extend_from_slice(abbreviation.as_bytes());
}

/// Year, month and day of a number of days since the epoch, in the proleptic Gregorian calendar: eras of 400
/// years that begin in March.
fn civil(day: i64) -> (i64, i64, i64) {
    let day = day.saturating_add(719_468);
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    (era * 400 + year + i64::from(month <= 2), month, day)
}

fn put_count(tabs: &str, tag: &str, count: u64, text: &mut Vec<u8>) {
    put(text, format_args!("{tabs}<{tag}>{count}</{tag}>\n"));
}

/// Appends a double, `NaN` if it is unknown.
fn put_known(tabs: &str, tag: &str, bits: u64, text: &mut Vec<u8>) {
    if f64::from_bits(bits).is_nan() {
        put(text, format_args!("{tabs}<{tag}>NaN</{tag}>\n"));
    } else {
        put_value(tabs, tag, bits, text);
    }
}

/// Appends a double where rrdtool does not check for unknown ones, so that they are `nan`.
fn put_value(tabs: &str, tag: &str, bits: u64, text: &mut Vec<u8>) {
    put(text, format_args!("{tabs}<{tag}>"));
    put_number(f64::from_bits(bits), text);
    put(text, format_args!("</{tag}>\n"));
}

fn put_number(value: f64, text: &mut Vec<u8>) {
    if value.is_nan() {
        return text.extend_from_slice(b"nan");
    }
    dump_number::put(value, text);
}

fn put(text: &mut Vec<u8>, what: std::fmt::Arguments) {
    // Writing to a Vec does not fail.
    let _ = text.write_fmt(what);
}

/// Writes the buffered text if it is longer than `keep`.
fn hand_on(text: &mut Vec<u8>, keep: usize, out: &mut impl io::Write) -> Result<(), Error> {
    if text.len() > keep {
        let result = out.write_all(text);
        result.map_err(|error| {
            let cause = strerror(&error);
            Error::new(format!("error writing output file: {cause}"))
        })?;
        text.clear();
    }
    Ok(())
}
