//! The words of `Options[]`.

/// A word of `Options[]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the words are the configuration's own")]
pub enum Choice {
    Growright,
    Bits,
    Noinfo,
    Absolute,
    Gauge,
    Nopercent,
    Avgpeak,
    Derive,
    Integer,
    Perhour,
    Perminute,
    Transparent,
    Dorelpercent,
    Unknaszero,
    Withzeroes,
    Noborder,
    Noarrow,
    Noi,
    Noo,
    Nobanner,
    Nolegend,
    Logscale,
    Secondmean,
    Pngdate,
    Printrouter,
    Expscale,
}

impl Choice {
    /// All options with their words.
    pub const ALL: [(Choice, &str); 26] = [
        (Choice::Growright, "growright"),
        (Choice::Bits, "bits"),
        (Choice::Noinfo, "noinfo"),
        (Choice::Absolute, "absolute"),
        (Choice::Gauge, "gauge"),
        (Choice::Nopercent, "nopercent"),
        (Choice::Avgpeak, "avgpeak"),
        (Choice::Derive, "derive"),
        (Choice::Integer, "integer"),
        (Choice::Perhour, "perhour"),
        (Choice::Perminute, "perminute"),
        (Choice::Transparent, "transparent"),
        (Choice::Dorelpercent, "dorelpercent"),
        (Choice::Unknaszero, "unknaszero"),
        (Choice::Withzeroes, "withzeroes"),
        (Choice::Noborder, "noborder"),
        (Choice::Noarrow, "noarrow"),
        (Choice::Noi, "noi"),
        (Choice::Noo, "noo"),
        (Choice::Nobanner, "nobanner"),
        (Choice::Nolegend, "nolegend"),
        (Choice::Logscale, "logscale"),
        (Choice::Secondmean, "secondmean"),
        (Choice::Pngdate, "pngdate"),
        (Choice::Printrouter, "printrouter"),
        (Choice::Expscale, "expscale"),
    ];

    fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// A target's [`Choice`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options(u32);

impl Options {
    /// True if the target has this option.
    pub fn has(self, choice: Choice) -> bool {
        self.0 & choice.bit() != 0
    }

    /// Parses words separated by commas or blanks, in any case. The error is the first unknown word: as in MRTG, the empty one, too,
    /// if a comma is before the others.
    pub(super) fn parse(text: &[u8]) -> Result<Options, &[u8]> {
        let words = text.split(|byte| *byte == b',' || byte.is_ascii_whitespace());
        let mut options = Options::default();
        let has_words = words.clone().any(|word| !word.is_empty());
        for (at, word) in words.enumerate() {
            if word.is_empty() && !(at == 0 && has_words) {
                continue;
            }
            let known = Choice::ALL
                .iter()
                .find(|(_, known)| word.eq_ignore_ascii_case(known.as_bytes()));
            options.0 |= known.ok_or(word)?.0.bit();
        }
        Ok(options)
    }
}
