//! The .rrd file up to its rows, byte for byte as in rrd_format.h on x86_64. Unused fields and padding are
//! preserved: `encode(parse(x)) == x`. Versions 1 and 2 have no `last_up_usec`; to write one of them as version
//! 3, set `version`.

use crate::error::Error;

/// Most data sources or archives of a file: a header of some 100 MB. rrdtool has no limit.
pub const COUNT_MAX: u64 = 65_536;
/// Most cells of a file: 16 GiB of rows.
pub const CELLS_MAX: u64 = 1 << 31;

/// Most cells that create, tune, resize and restore hold in memory: 2 GiB.
pub const MEMORY_CELLS_MAX: u64 = 1 << 28;
/// Most rows in progress (data sources × archives) of files that create, tune and restore make: 80 MiB.
pub const PREPARATIONS_MAX: u64 = 1 << 20;
/// Most cells of the answer to a fetch: 1 GiB.
pub const FETCH_CELLS_MAX: u64 = 1 << 27;

/// Bytes of `stat_head_t`.
const HEAD: usize = 128;
/// Bytes of `ds_def_t` and of `rra_def_t`.
const DEFINITION: usize = 120;
/// Bytes of `live_head_t`.
const LIVE: usize = 16;
/// Bytes of `pdp_prep_t`.
const PDP_PREP: usize = 112;
/// Bytes of `cdp_prep_t`.
const CDP_PREP: usize = 80;
/// The double that reveals byte order and alignment.
const FLOAT_COOKIE: f64 = 8.642135E130;

/// Ten words, each an integer or the bits of a double, like C's `unival`.
pub type Univals = [u64; 10];

/// The whole file before its rows. Fields have the names of rrd_format.h.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Version, 1 to 5; create writes 3.
    pub version: u8,
    /// Bytes of `stat_head_t` between the version and the float cookie, usually zeros.
    pub head_pad: [u8; 7],
    /// Seconds of a primary data point.
    pub pdp_step: u64,
    /// Unused words, which are preserved.
    pub head_par: Univals,
    /// Data sources.
    pub ds: Vec<DsDef>,
    /// Archives.
    pub rra: Vec<RraDef>,
    /// Stamp of the last update, seconds since the epoch.
    pub last_up: i64,
    /// Microseconds of the last update.
    pub last_up_usec: i64,
    /// Primary data points in progress, one for each of `ds`.
    pub pdp_prep: Vec<PdpPrep>,
    /// Rows in progress, at index archive × number of data sources + data source.
    pub cdp_prep: Vec<CdpPrep>,
    /// Number of the row that was written last, for each of `rra`.
    pub cur_row: Vec<u64>,
}

/// `ds_def_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DsDef {
    /// Name, up to the first NUL byte.
    pub ds_nam: [u8; 20],
    /// GAUGE, COUNTER, DERIVE, DCOUNTER, DDERIVE, ABSOLUTE or COMPUTE.
    pub dst: [u8; 20],
    /// 0: heartbeat in seconds (integer), 1: minimum, 2: maximum (doubles, NaN: none). COMPUTE: 80 bytes of RPN.
    pub par: Univals,
}

/// `rra_def_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RraDef {
    /// Consolidation function.
    pub cf_nam: [u8; 20],
    /// Padding before the counts.
    pub pad: [u8; 4],
    /// Number of rows.
    pub row_cnt: u64,
    /// Primary data points of a row.
    pub pdp_cnt: u64,
    /// AVERAGE, MIN, MAX, LAST: 0 is the xfiles factor. Other words belong to the Holt-Winters family.
    pub par: Univals,
}

/// `pdp_prep_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PdpPrep {
    /// Text of the last reading, 29 characters at most.
    pub last_ds: [u8; 30],
    /// Padding.
    pub pad: [u8; 2],
    /// 0: unknown seconds (integer), 1: value so far (rate × seconds).
    pub scratch: Univals,
}

/// `cdp_prep_t`. Words: 0 value, 1 unknown points (integer), 8 primary, 9 secondary value; 2 to 7 belong to
/// Holt-Winters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CdpPrep {
    /// The words.
    pub scratch: Univals,
}

impl Header {
    /// A header without content, to be filled by [`Header::parse_over`].
    pub fn empty() -> Header {
        Header {
            version: 3,
            head_pad: [0; 7],
            pdp_step: 1,
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

    /// Parses the beginning of a file. The error is the text of rrd_open without the file's name.
    pub fn parse(bytes: &[u8]) -> Result<Header, Error> {
        let mut header = Header::empty();
        header.parse_over(bytes)?;
        Ok(header)
    }

    /// Parses into the memory of another header. After an error its content is undefined.
    pub fn parse_over(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let input = &mut &bytes[..];
        let head: [u8; HEAD] = take(input, "stat_head")?;
        self.version = version_of(&head)?;
        let [ds_cnt, rra_cnt, pdp_step] = [24, 32, 40].map(|at| word(&head, at));
        if ds_cnt > COUNT_MAX || rra_cnt > COUNT_MAX {
            return Err(Error::new(
                "has more data sources or archives than kymo reads",
            ));
        }
        (self.pdp_step, self.head_pad) = (pdp_step, part(&head, 9));
        self.head_par = univals(&head, 48);
        repeat(input, "ds_def", ds_cnt, &mut self.ds, DsDef::parse)?;
        repeat(input, "rra_def", rra_cnt, &mut self.rra, RraDef::parse)?;
        (self.last_up, self.last_up_usec) = take_live(input, self.version)?;
        repeat(
            input,
            "pdp_prep",
            ds_cnt,
            &mut self.pdp_prep,
            PdpPrep::parse,
        )?;
        let (count, cdp) = (ds_cnt * rra_cnt, &mut self.cdp_prep);
        repeat(input, "cdp_prep", count, cdp, |bytes: &[u8; CDP_PREP]| {
            CdpPrep {
                scratch: univals(bytes, 0),
            }
        })?;
        let rows = &mut self.cur_row;
        repeat(input, "rra_ptr", rra_cnt, rows, |bytes: &[u8; 8]| {
            u64::from_le_bytes(*bytes)
        })?;
        self.check()
    }

    /// Rejects values of a hostile file that would break the arithmetic.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let whole = self.rra.iter().zip(&self.cur_row).all(|(rra, &cur_row)| {
            let seconds = rra.pdp_cnt.checked_mul(self.pdp_step);
            let seconds = seconds.and_then(|seconds| seconds.checked_mul(rra.row_cnt));
            seconds.is_some_and(|seconds| 0 < seconds && seconds < 1 << 62) && cur_row < rra.row_cnt
        });
        let cells = self.rra.iter().try_fold(0u64, |sum, rra| {
            sum.checked_add(rra.row_cnt.checked_mul(self.ds.len() as u64)?)
        });
        if !whole || self.pdp_step == 0 || cells.is_none_or(|cells| cells > CELLS_MAX) {
            return Err(Error::new("has a damaged header"));
        }
        Ok(())
    }

    /// Appends the header's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"RRD\0");
        out.extend_from_slice(&[b'0', b'0', b'0', b'0' + self.version, 0]);
        out.extend_from_slice(&self.head_pad);
        out.extend_from_slice(&FLOAT_COOKIE.to_le_bytes());
        put_words(
            out,
            &[self.ds.len() as u64, self.rra.len() as u64, self.pdp_step],
        );
        put_words(out, &self.head_par);
        for ds in &self.ds {
            out.extend_from_slice(&ds.ds_nam);
            out.extend_from_slice(&ds.dst);
            put_words(out, &ds.par);
        }
        for rra in &self.rra {
            out.extend_from_slice(&rra.cf_nam);
            out.extend_from_slice(&rra.pad);
            put_words(out, &[rra.row_cnt, rra.pdp_cnt]);
            put_words(out, &rra.par);
        }
        self.encode_live(out);
    }

    /// Appends the part that updates change: from `live_head_t` to the row pointers. It begins at
    /// [`Header::live_offset`].
    pub fn encode_live(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.last_up.to_le_bytes());
        if self.version >= 3 {
            out.extend_from_slice(&self.last_up_usec.to_le_bytes());
        }
        for pdp in &self.pdp_prep {
            out.extend_from_slice(&pdp.last_ds);
            out.extend_from_slice(&pdp.pad);
            put_words(out, &pdp.scratch);
        }
        for cdp in &self.cdp_prep {
            put_words(out, &cdp.scratch);
        }
        put_words(out, &self.cur_row);
    }

    /// Offset of `live_head_t`.
    pub fn live_offset(&self) -> u64 {
        (HEAD + DEFINITION * (self.ds.len() + self.rra.len())) as u64
    }

    /// Length of the header, bytes.
    pub fn size_bytes(&self) -> u64 {
        let (ds, rra) = (self.ds.len(), self.rra.len());
        self.live_offset()
            + self.live_bytes()
            + (PDP_PREP * ds + CDP_PREP * ds * rra + 8 * rra) as u64
    }

    /// Bytes of `live_head_t` in the file, which has no microseconds before version 3.
    fn live_bytes(&self) -> u64 {
        if self.version < 3 { 8 } else { LIVE as u64 }
    }

    /// Number of cells of all archives.
    pub fn cell_count(&self) -> u64 {
        let rows: u64 = self.rra.iter().map(|rra| rra.row_cnt).sum();
        rows * self.ds.len() as u64
    }

    /// First cell of an archive's row.
    pub fn cell(&self, archive: usize, row: u64) -> u64 {
        let before: u64 = self.rra[..archive].iter().map(|rra| rra.row_cnt).sum();
        (before + row) * self.ds.len() as u64
    }

    /// Offset of a cell in the file.
    pub fn cell_offset(&self, cell: u64) -> u64 {
        self.size_bytes() + 8 * cell
    }

    /// Length of the whole file, bytes.
    pub fn file_size_bytes(&self) -> u64 {
        self.cell_offset(self.cell_count())
    }
}

impl DsDef {
    fn parse(bytes: &[u8; DEFINITION]) -> DsDef {
        DsDef {
            ds_nam: part(bytes, 0),
            dst: part(bytes, 20),
            par: univals(bytes, 40),
        }
    }

    /// The name without padding.
    pub fn name(&self) -> &[u8] {
        until_nul(&self.ds_nam)
    }

    /// The type without padding.
    pub fn dst(&self) -> &[u8] {
        until_nul(&self.dst)
    }
}

impl RraDef {
    fn parse(bytes: &[u8; DEFINITION]) -> RraDef {
        RraDef {
            cf_nam: part(bytes, 0),
            pad: part(bytes, 20),
            row_cnt: word(bytes, 24),
            pdp_cnt: word(bytes, 32),
            par: univals(bytes, 40),
        }
    }

    /// True if updates change rows in place: seasonal coefficients or deviations.
    pub fn is_seasonal(&self) -> bool {
        matches!(self.cf(), b"SEASONAL" | b"DEVSEASONAL")
    }

    /// The consolidation function without padding.
    pub fn cf(&self) -> &[u8] {
        until_nul(&self.cf_nam)
    }
}

impl PdpPrep {
    fn parse(bytes: &[u8; PDP_PREP]) -> PdpPrep {
        PdpPrep {
            last_ds: part(bytes, 0),
            pad: part(bytes, 30),
            scratch: univals(bytes, 32),
        }
    }
}

/// The text of a field, up to its first NUL byte.
pub fn until_nul(field: &[u8]) -> &[u8] {
    field.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// A field of `N` bytes with this text, truncated or padded with zeros.
pub fn field<const N: usize>(text: &[u8]) -> [u8; N] {
    std::array::from_fn(|i| text.get(i).copied().unwrap_or(0))
}

fn version_of(head: &[u8; HEAD]) -> Result<u8, Error> {
    if &head[..4] != b"RRD\0" {
        return Err(Error::new("is not an RRD file"));
    }
    if head[4..7] != *b"000" || !head[7].is_ascii_digit() || head[8] != 0 {
        return Err(Error::new(
            "is too old or damaged: its version is not a number",
        ));
    }
    if word(head, 16) != FLOAT_COOKIE.to_bits() {
        return Err(Error::new("This RRD was created on another architecture"));
    }
    let version = head[7] - b'0';
    if version == 0 || version > 5 {
        let text = String::from_utf8_lossy(&head[4..8]);
        return Err(Error::new(format!("can't handle RRD file version {text}")));
    }
    Ok(version)
}

fn take_live(input: &mut &[u8], version: u8) -> Result<(i64, i64), Error> {
    let name = if version < 3 {
        "legacy_last_up"
    } else {
        "live_head"
    };
    let seconds = i64::from_le_bytes(take(input, name)?);
    let usec = if version < 3 {
        0
    } else {
        i64::from_le_bytes(take(input, name)?)
    };
    Ok((seconds, usec))
}

fn cut_short(name: &str) -> Error {
    Error::new(format!("reached EOF while loading header rrd->{name}"))
}

/// Takes a struct of `N` bytes; errors call it `name`, as in rrdtool.
fn take<const N: usize>(input: &mut &[u8], name: &str) -> Result<[u8; N], Error> {
    let (front, rest) = input.split_first_chunk().ok_or_else(|| cut_short(name))?;
    *input = rest;
    Ok(*front)
}

/// Replaces `out` by `count` structs of `N` bytes. Allocates nothing for structs that the input lacks.
fn repeat<const N: usize, T>(
    input: &mut &[u8],
    name: &str,
    count: u64,
    out: &mut Vec<T>,
    read: impl Fn(&[u8; N]) -> T,
) -> Result<(), Error> {
    if count > (input.len() / N) as u64 {
        return Err(cut_short(name));
    }
    let (front, rest) = input.split_at(count as usize * N);
    *input = rest;
    out.clear();
    out.extend(front.as_chunks().0.iter().map(read));
    Ok(())
}

fn word<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    u64::from_le_bytes(part(bytes, at))
}

fn univals<const N: usize>(bytes: &[u8; N], at: usize) -> Univals {
    std::array::from_fn(|i| word(bytes, at + 8 * i))
}

fn part<const N: usize, const M: usize>(bytes: &[u8; N], at: usize) -> [u8; M] {
    std::array::from_fn(|i| bytes[at + i])
}

fn put_words(out: &mut Vec<u8>, words: &[u64]) {
    for word in words {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(version: u8) -> Header {
        let ds = DsDef {
            ds_nam: field(b"x"),
            dst: field(b"GAUGE"),
            par: [60, 1, 2, 0, 0, 0, 0, 0, 0, 7],
        };
        let rra = RraDef {
            cf_nam: field(b"AVERAGE"),
            pad: [1, 2, 3, 4],
            row_cnt: 20,
            pdp_cnt: 3,
            par: [9; 10],
        };
        Header {
            version,
            head_pad: [5; 7],
            pdp_step: 10,
            head_par: [6; 10],
            ds: vec![ds; 2],
            rra: vec![rra; 3],
            last_up: 1_000_000_000,
            last_up_usec: if version < 3 { 0 } else { 123_456 },
            pdp_prep: vec![
                PdpPrep {
                    last_ds: field(b"17"),
                    pad: [8; 2],
                    scratch: [4; 10],
                };
                2
            ],
            cdp_prep: vec![CdpPrep { scratch: [3; 10] }; 6],
            cur_row: vec![0, 19, 7],
        }
    }

    #[test]
    fn a_header_comes_back_and_a_short_one_is_refused() {
        for version in 1..=5 {
            let (header, mut bytes) = (example(version), Vec::new());
            header.encode(&mut bytes);
            assert_eq!(bytes.len() as u64, header.size_bytes());
            assert_eq!(Header::parse(&bytes), Ok(header.clone()));
            for len in 0..bytes.len() {
                assert!(Header::parse(&bytes[..len]).is_err());
            }
            let mut live = Vec::new();
            header.encode_live(&mut live);
            assert_eq!(&bytes[header.live_offset() as usize..], live);
        }
    }

    #[test]
    fn what_the_arithmetic_relies_on_is_checked() {
        let spoil: &[fn(&mut Header)] = &[
            |h| h.pdp_step = 0,
            |h| h.rra[1].row_cnt = 0,
            |h| h.rra[1].pdp_cnt = 0,
            |h| h.rra[1].pdp_cnt = u64::MAX,
            |h| h.rra[1].row_cnt = CELLS_MAX,
            |h| h.cur_row[2] = 20,
            |h| h.version = 6,
        ];
        for (i, spoil) in spoil.iter().enumerate() {
            let (mut header, mut bytes) = (example(3), Vec::new());
            spoil(&mut header);
            header.encode(&mut bytes);
            assert!(Header::parse(&bytes).is_err(), "case {i}");
        }
    }
}
