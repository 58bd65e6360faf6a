//! `rrdtool tune` in place: changes definitions, and the state of Holt-Winters archives.

use crate::UNKNOWN;
use crate::cf::{Cf, is_dst};
use crate::error::Error;
use crate::header::{Header, field};
use crate::modify;
use crate::number::{Parsed, strtod, strtodbl};
use crate::options::{self, Known, Piece, Takes};
use crate::preparation::{UNKNOWN_BITS, erase_violations, init_prediction};
use crate::rows::Rows;
use crate::rrd::Rrd;
use crate::spec::{WINDOW_MAX, atoi, leaves, shown};

/// Longest name of a data source or type, bytes.
const NAME_LEN: usize = 19;
/// Longest limit, bytes.
const LIMIT_LEN: usize = 40;

const OPTIONS: &[Known] = &[
    ("heartbeat", b'h', Takes::Argument),
    ("minimum", b'i', Takes::Argument),
    ("maximum", b'a', Takes::Argument),
    ("data-source-type", b'd', Takes::Argument),
    ("data-source-rename", b'r', Takes::Argument),
    ("deltapos", b'p', Takes::Argument),
    ("deltaneg", b'n', Takes::Argument),
    ("window-length", b'w', Takes::Argument),
    ("failure-threshold", b'f', Takes::Argument),
    ("alpha", b'x', Takes::Argument),
    ("beta", b'y', Takes::Argument),
    ("gamma", b'z', Takes::Argument),
    ("gamma-deviation", b'v', Takes::Argument),
    ("smoothing-window", b's', Takes::Argument),
    ("smoothing-window-deviation", b'S', Takes::Argument),
    ("aberrant-reset", b'b', Takes::Argument),
    ("step", b't', Takes::Argument),
    ("daemon", b'D', Takes::Argument),
];

/// The parsed arguments of a tune.
#[derive(Clone, Debug, PartialEq)]
pub struct Tune<'a> {
    /// The first argument that is not an option.
    pub file_name: &'a [u8],
    /// The address of the last `-D`.
    pub daemon: Option<&'a [u8]>,
    /// Options by their short letters, in their order, up to the first bad one.
    pub options: Vec<(u8, &'a [u8])>,
    /// Error of the first bad option, due after `options` are applied.
    pub bad: Option<Error>,
    /// Operations on the structure: `DEL:`, `DS:`, `RRA:`, `DELRRA:`, `RRA#`.
    pub operations: Vec<&'a [u8]>,
}

impl<'a> Tune<'a> {
    /// Parses the arguments behind the word `tune`, including the file's name.
    pub fn parse(args: &[&'a [u8]]) -> Result<Tune<'a>, Error> {
        let (pieces, operands) = options::read(args, OPTIONS);
        let Some((&file_name, operations)) = operands.split_first() else {
            return Err(Error::new("missing file name"));
        };
        let mut tune = Tune {
            file_name,
            daemon: None,
            options: Vec::new(),
            bad: None,
            operations: operations.to_vec(),
        };
        for piece in pieces {
            match piece {
                Piece::Option(b'D', address) => tune.daemon = Some(address),
                Piece::Option(letter, argument) if tune.bad.is_none() => {
                    tune.options.push((letter, argument));
                }
                Piece::Bad(error) if tune.bad.is_none() => tune.bad = Some(error),
                _ => {}
            }
        }
        Ok(tune)
    }

    /// True if only the header and rows in place change; otherwise [`Tune::restructure`] has to follow.
    pub fn is_in_place(&self) -> bool {
        self.operations.is_empty()
    }

    /// Applies the options one by one, up to the first error. As in rrdtool, the options before it stay
    /// applied: write the header in either case. Only `-b` writes rows.
    pub fn apply(&self, header: &mut Header, rows: &mut impl Rows) -> Result<(), Error> {
        for &(letter, argument) in &self.options {
            apply_one(letter, argument, header, rows)?;
        }
        self.bad.clone().map_or(Ok(()), Err)
    }

    /// Applies the operations; returns the file that replaces the old one, or `None` without operations.
    /// Holt-Winters archives contain a hash of `file_name`.
    pub fn restructure(&self, rrd: &Rrd, file_name: &[u8]) -> Result<Option<Rrd>, Error> {
        let step = self.options.iter().rev().find(|option| option.0 == b't');
        let step = step.map_or(-1, |option| atoi(option.1));
        modify::modify(rrd, &self.operations, step, file_name)
    }
}

/// Applies options and then operations to a file in memory.
pub fn tune(rrd: &mut Rrd, tune: &Tune) -> Result<(), Error> {
    tune.apply(&mut rrd.header, &mut rrd.cells)?;
    if let Some(new) = tune.restructure(rrd, tune.file_name)? {
        *rrd = new;
    }
    Ok(())
}

fn apply_one(
    letter: u8,
    argument: &[u8],
    header: &mut Header,
    rows: &mut impl Rows,
) -> Result<(), Error> {
    match letter {
        b'h' => set_heartbeat(argument, header),
        b'i' => set_limit(
            argument,
            "invalid arguments for minimum ds value",
            1,
            header,
        ),
        b'a' => set_limit(
            argument,
            "invalid arguments for maximum ds value",
            2,
            header,
        ),
        b'd' => set_type(argument, header),
        b'r' => rename(argument, header),
        b'p' => set_delta(argument, 1, header),
        b'n' => set_delta(argument, 2, header),
        b'w' => set_window(argument, 4, header),
        b'f' => set_window(argument, 5, header),
        b'x' => set_fraction(
            argument,
            &[Cf::HwPredict, Cf::MhwPredict],
            1,
            Ends::Open,
            header,
        ),
        b'y' => set_fraction(
            argument,
            &[Cf::HwPredict, Cf::MhwPredict],
            2,
            Ends::Open,
            header,
        ),
        b'z' => set_fraction(argument, &[Cf::Seasonal], 1, Ends::Open, header),
        b'v' => set_fraction(argument, &[Cf::DevSeasonal], 1, Ends::Open, header),
        b's' => set_smoothing(argument, Cf::Seasonal, header),
        b'S' => set_smoothing(argument, Cf::DevSeasonal, header),
        b'b' => forget_aberrant(argument, header, rows),
        // [`Tune::restructure`] uses the step.
        _ => Ok(()),
    }
}

fn set_heartbeat(argument: &[u8], header: &mut Header) -> Result<(), Error> {
    let invalid = || Error::new("invalid arguments for heartbeat");
    let (name, text) = name_and_text(argument).ok_or_else(invalid)?;
    let heartbeat = scan_long(text).ok_or_else(invalid)?;
    let ds = source(header, name)?;
    header.ds[ds].par[0] = heartbeat as u64;
    Ok(())
}

fn set_limit(
    argument: &[u8],
    complaint: &str,
    word: usize,
    header: &mut Header,
) -> Result<(), Error> {
    let invalid = || Error::new(complaint);
    let (name, text) = name_and_text(argument).ok_or_else(invalid)?;
    let len = run(text, LIMIT_LEN, |byte| b"U0123456789.e+-".contains(&byte));
    let limit = match &text[..len] {
        b"U" => UNKNOWN,
        text => match strtodbl(text) {
            Parsed::All(limit) => limit,
            _ => return Err(invalid()),
        },
    };
    let ds = source(header, name)?;
    header.ds[ds].par[word] = limit.to_bits();
    Ok(())
}

fn set_type(argument: &[u8], header: &mut Header) -> Result<(), Error> {
    let invalid = || Error::new("invalid arguments for data source type");
    let (name, text) = name_and_text(argument).ok_or_else(invalid)?;
    let dst = &text[..run(text, NAME_LEN, |byte| byte.is_ascii_uppercase())];
    if dst.is_empty() {
        return Err(invalid());
    }
    let ds = source(header, name)?;
    if !is_dst(dst) {
        let dst = shown(dst);
        return Err(Error::new(format!(
            "unknown data acquisition function '{dst}'"
        )));
    }
    if header.ds[ds].dst() != dst {
        header.ds[ds].dst = field(dst);
        header.pdp_prep[ds].last_ds[..5].copy_from_slice(b"UNKN\0");
    }
    Ok(())
}

fn rename(argument: &[u8], header: &mut Header) -> Result<(), Error> {
    let invalid = || Error::new("invalid arguments for data source type");
    let (name, text) = name_and_text(argument).ok_or_else(invalid)?;
    let new = &text[..run(text, NAME_LEN, is_name)];
    if new.is_empty() {
        return Err(invalid());
    }
    let ds = source(header, name)?;
    header.ds[ds].ds_nam = field(new);
    Ok(())
}

/// Sets a delta. As in rrdtool, trailing text is an error, but a text without a number is accepted.
fn set_delta(argument: &[u8], word: usize, header: &mut Header) -> Result<(), Error> {
    let small = Err(Error::new("Parameter specified is too small"));
    let delta = match strtodbl(argument) {
        Parsed::All(delta) | Parsed::Trailing(delta, _) if delta < 0.1 => return small,
        Parsed::All(delta) => delta,
        Parsed::Trailing(..) => {
            return Err(Error::new("Unable to parse parameter in set_deltaarg"));
        }
        Parsed::Nothing => strtod(argument).0,
    };
    let archive = failures(header)?;
    header.rra[archive].par[word] = delta.to_bits();
    Ok(())
}

fn set_window(argument: &[u8], word: usize, header: &mut Header) -> Result<(), Error> {
    let count = atoi(argument);
    if !(1..=WINDOW_MAX).contains(&count) {
        return Err(Error::new(format!(
            "Parameter must be between 1 and {WINDOW_MAX}"
        )));
    }
    let archive = failures(header)?;
    header.rra[archive].par[word] = count as u64;
    let ds_cnt = header.ds.len();
    for cdp in &mut header.cdp_prep[archive * ds_cnt..(archive + 1) * ds_cnt] {
        erase_violations(&header.rra[archive], &mut cdp.scratch);
    }
    Ok(())
}

/// Tells if 0 and 1 are allowed.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    Open,
    Closed,
}

/// Sets a parameter of one archive: the first with the earliest of `cfs` that the file has.
fn set_fraction(
    argument: &[u8],
    cfs: &[Cf],
    word: usize,
    ends: Ends,
    header: &mut Header,
) -> Result<(), Error> {
    let (Parsed::All(value) | Parsed::Trailing(value, _)) = strtodbl(argument) else {
        return Err(Error::new("Unable to parse Holt-Winters parameter"));
    };
    let at_end = ends == Ends::Open && (value == 0.0 || value == 1.0);
    if leaves(value, 0.0, 1.0) || at_end {
        return Err(Error::new("Holt-Winters parameter must be between 0 and 1"));
    }
    let archive = cfs.iter().find_map(|&cf| archive(header, cf));
    let archive =
        archive.ok_or_else(|| Error::new("Holt-Winters RRA does not exist in this RRD"))?;
    header.rra[archive].par[word] = value.to_bits();
    Ok(())
}

fn set_smoothing(argument: &[u8], cf: Cf, header: &mut Header) -> Result<(), Error> {
    header.version = header.version.max(4);
    set_fraction(argument, &[cf], 2, Ends::Closed, header)
}

/// Resets the predictions of a data source.
fn forget_aberrant(
    argument: &[u8],
    header: &mut Header,
    rows: &mut impl Rows,
) -> Result<(), Error> {
    let name = &argument[..run(argument, NAME_LEN, is_name)];
    if name.is_empty() {
        return Err(Error::new("invalid argument for aberrant-reset"));
    }
    let (ds, ds_cnt) = (source(header, name)?, header.ds.len());
    for i in 0..header.rra.len() {
        let rra = header.rra[i];
        let words = &mut header.cdp_prep[i * ds_cnt + ds].scratch;
        match Cf::of(rra.cf()) {
            Some(Cf::HwPredict | Cf::MhwPredict) => init_prediction(words),
            Some(Cf::Seasonal | Cf::DevSeasonal) => {
                // The flag in word 6 stays, as the data sources of a season are smoothed together.
                (words[2], words[3]) = (UNKNOWN_BITS, UNKNOWN_BITS);
                for row in 0..rra.row_cnt {
                    rows.write(header.cell(i, row) + ds as u64, &[UNKNOWN])?;
                }
            }
            Some(Cf::Failures) => erase_violations(&rra, words),
            _ => {}
        }
    }
    Ok(())
}

fn archive(header: &Header, cf: Cf) -> Option<usize> {
    header
        .rra
        .iter()
        .position(|rra| Cf::of(rra.cf()) == Some(cf))
}

fn failures(header: &Header) -> Result<usize, Error> {
    archive(header, Cf::Failures)
        .ok_or_else(|| Error::new("Failures RRA does not exist in this RRD"))
}

fn source(header: &Header, name: &[u8]) -> Result<usize, Error> {
    let position = header.ds.iter().position(|ds| ds.name() == name);
    position.ok_or_else(|| {
        let name = shown(name);
        Error::new(format!("unknown data source name '{name}'"))
    })
}

/// Splits `name:text`; neither part may be empty.
fn name_and_text(argument: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, rest) = argument.split_at(run(argument, NAME_LEN, is_name));
    let text = rest.strip_prefix(b":").filter(|text| !text.is_empty())?;
    (!name.is_empty()).then_some((name, text))
}

/// Parses a number like scanf's `%ld`.
fn scan_long(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii_start();
    let digits = text
        .strip_prefix(b"-")
        .or(text.strip_prefix(b"+"))
        .unwrap_or(text);
    let len = run(digits, usize::MAX, |byte| byte.is_ascii_digit());
    let magnitude = digits[..len].iter().fold(0i64, |sum, digit| {
        sum.saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    let value = if text.starts_with(b"-") {
        -magnitude
    } else {
        magnitude
    };
    (len > 0).then_some(value)
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn run(text: &[u8], max: usize, is: impl Fn(u8) -> bool) -> usize {
    text.iter().take(max).take_while(|&&byte| is(byte)).count()
}
