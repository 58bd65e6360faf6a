//! Entry points for fuzzing: arbitrary headers and arbitrary arguments of update. None may cause a panic, run for
//! long, or reach beyond the rows.

use crate::error::Error;
use crate::header::{CdpPrep, DsDef, Header, PdpPrep, RraDef, Univals, field};
use crate::rows::Rows;
use crate::update::{Now, Scratch, Update, update_all, update_with};
use crate::{Rrd, UNKNOWN};

const DSTS: [&[u8]; 8] = [
    b"GAUGE",
    b"COUNTER",
    b"DERIVE",
    b"ABSOLUTE",
    b"COMPUTE",
    b"DCOUNTER",
    b"DDERIVE",
    b"NONE",
];
const CFS: [&[u8]; 11] = [
    b"AVERAGE",
    b"MIN",
    b"MAX",
    b"LAST",
    b"HWPREDICT",
    b"MHWPREDICT",
    b"SEASONAL",
    b"DEVSEASONAL",
    b"DEVPREDICT",
    b"FAILURES",
    b"NONE",
];
/// Limit of cells up to which written rows are recorded.
const TOLD_MAX: u64 = 10_000;

/// The input up to a NUL makes a header, and the rest arguments, one on each line. The whole input is also parsed
/// as a file.
pub fn fuzz_update(input: &[u8]) {
    let _ = Rrd::parse(input);
    let cut = input
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(input.len());
    let (mut header, rest) = (header(&mut Bytes(&input[..cut])), &input[cut..]);
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    if Header::parse(&bytes).is_err() {
        return;
    }
    let args: Vec<&[u8]> = rest.split(|&byte| byte == b'\n').collect();
    for rest in [&args[..], &SOME_ARGUMENTS] {
        let scratch = &mut Scratch::default();
        let rows = &mut Bounded(header.cell_count());
        let (mut each, mut seen) = (header.clone(), Vec::new());
        let tells = (header.cell_count() < TOLD_MAX).then_some(&mut seen);
        let _ = update_with(scratch, &mut each, rows, &how(), rest, tells);
        is_whole(&each);
        let _ = update_all(scratch, &mut header, rows, &how(), rest, &mut Vec::new());
        is_whole(&header);
    }
}

/// Fixed arguments, some of them valid, with jumps in time.
const SOME_ARGUMENTS: [&[u8]; 8] = [
    b"N:1",
    b"-1:2:3",
    b"2000000000.5:77",
    b"2000000000.7:-5:1e300",
    b"2000000100:12345678901234567890123456789",
    b"2000000300:inf",
    b"9000000000000000000:3:4",
    b"9223372036854775000:3",
];

fn how() -> Update<'static> {
    Update {
        file_name: b"file",
        template: None,
        skip_past: true,
        now: Now {
            sec: 1_700_000_000,
            usec: 5,
        },
        at_time: &|text| Ok(Some(text.len() as i64)),
    }
}

/// Asserts that the header after an update can be parsed.
fn is_whole(header: &Header) {
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    let again = Header::parse(&bytes).map(|again| {
        let mut bytes = Vec::new();
        again.encode(&mut bytes);
        bytes
    });
    assert!(
        again.is_ok_and(|again| again == bytes),
        "a header was broken"
    );
}

fn header(input: &mut Bytes) -> Header {
    let (ds_cnt, rra_cnt) = (1 + input.below(3), input.below(8));
    let ds = (0..ds_cnt).map(|_| DsDef {
        ds_nam: field(&[b'a' + input.next() % 4]),
        dst: field(DSTS[input.below(8)]),
        par: input.words(),
    });
    let ds: Vec<DsDef> = ds.collect();
    let rra = (0..rra_cnt).map(|_| {
        let mut par = input.words();
        par[3] = u64::from(input.next()) % 9;
        RraDef {
            cf_nam: field(CFS[input.below(11)]),
            pad: [0; 4],
            row_cnt: (input.word() % (1 << 20)).max(1),
            pdp_cnt: [1, 1, 2, 7, 1 << 30][input.below(5)],
            par,
        }
    });
    let rra: Vec<RraDef> = rra.collect();
    let pdp_prep = (0..ds_cnt).map(|_| PdpPrep {
        last_ds: input.text(),
        pad: [0; 2],
        scratch: input.words(),
    });
    let pdp_prep = pdp_prep.collect();
    let cdp_prep = (0..ds_cnt * rra_cnt).map(|_| CdpPrep {
        scratch: input.words(),
    });
    let cdp_prep = cdp_prep.collect();
    let cur_row = rra.iter().map(|rra| input.word() % rra.row_cnt).collect();
    let version = 1 + input.next() % 5;
    Header {
        version,
        head_pad: [0; 7],
        pdp_step: [1, 10, 300, 1 << 20][input.below(4)],
        head_par: [0; 10],
        ds,
        rra,
        last_up: input.word() as i64,
        last_up_usec: if version < 3 { 0 } else { input.word() as i64 },
        pdp_prep,
        cdp_prep,
        cur_row,
    }
}

/// Yields the input and then zeros.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    fn below(&mut self, n: u8) -> usize {
        usize::from(self.next() % n)
    }

    fn word(&mut self) -> u64 {
        match self.next() % 12 {
            0 => 0,
            1 => 1,
            2 => u64::from(self.next()),
            3 => u64::MAX,
            4 => i64::MIN as u64,
            5 => UNKNOWN.to_bits(),
            6 => f64::INFINITY.to_bits(),
            7 => f64::from(self.next()).to_bits(),
            8 => (f64::from(self.next()) / 256.0).to_bits(),
            9 => f64::MAX.to_bits(),
            10 => 1_699_999_000,
            _ => u64::from_le_bytes(std::array::from_fn(|_| self.next())),
        }
    }

    fn words(&mut self) -> Univals {
        std::array::from_fn(|_| self.word())
    }

    fn text(&mut self) -> [u8; 30] {
        let len = self.below(31);
        std::array::from_fn(|i| if i < len { self.next() } else { 0 })
    }
}

/// Rows without memory: writes within bounds succeed, and reads return made-up values.
struct Bounded(u64);

impl Bounded {
    fn require(&self, first: u64, len: usize) {
        let end = first.checked_add(len as u64);
        assert!(
            end.is_some_and(|end| end <= self.0),
            "rows lie beyond the end"
        );
    }
}

impl Rows for Bounded {
    fn read(&mut self, first: u64, cells: &mut [f64]) -> Result<(), Error> {
        self.require(first, cells.len());
        for (i, cell) in cells.iter_mut().enumerate() {
            *cell = (first + i as u64) as f64 / 7.0;
        }
        Ok(())
    }

    fn write(&mut self, first: u64, cells: &[f64]) -> Result<(), Error> {
        self.require(first, cells.len());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn no_header_and_no_argument_breaks_update(
            header in prop::collection::vec(1u8.., 0..1000),
            args in "[0-9N:@eU.+-]{0,40}",
        ) {
            let mut input = header;
            input.push(0);
            input.extend(args.bytes());
            fuzz_update(&input);
        }
    }
}
