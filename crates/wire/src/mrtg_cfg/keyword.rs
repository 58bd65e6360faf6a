//! The keywords of a target, `Keyword[name]: value`.

/// A keyword of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the words are MRTG's own: mrtg-reference")]
pub enum Keyword {
    Target,
    SnmpOptions,
    RouterUptime,
    RouterName,
    NoHc,
    MaxBytes,
    MaxBytes1,
    MaxBytes2,
    Ipv4Only,
    AbsMax,
    Title,
    Directory,
    CloneDirectory,
    PageTop,
    BodyTag,
    PageFoot,
    AddHead,
    RrdRowCount,
    RrdRowCount30m,
    RrdRowCount2h,
    RrdRowCount1d,
    RrdHwRras,
    Extension,
    Unscaled,
    WeekFormat,
    WithPeak,
    Suppress,
    XSize,
    YSize,
    YTics,
    YTicsFactor,
    Factor,
    Step,
    Timezone,
    Options,
    Colours,
    Background,
    TextColor,
    Kilo,
    Kmg,
    PngTitle,
    YLegend,
    ShortLegend,
    Legend1,
    Legend2,
    Legend3,
    Legend4,
    Legend5,
    LegendI,
    LegendO,
    SetEnv,
    XZoom,
    YZoom,
    XScale,
    YScale,
    ThreshMinI,
    ThreshMinO,
    ThreshMaxI,
    ThreshMaxO,
    ThreshDesc,
    ThreshProgI,
    ThreshProgO,
    ThreshProgOkI,
    ThreshProgOkO,
    ThreshMailAddress,
    HwThreshMinI,
    HwThreshMinO,
    HwThreshMaxI,
    HwThreshMaxO,
    HwThreshDesc,
    HwThreshProgI,
    HwThreshProgO,
    HwThreshProgOkI,
    HwThreshProgOkO,
    HwThreshMailAddress,
    TimeStrPos,
    TimeStrFmt,
}

impl Keyword {
    /// All keywords with their spelling.
    pub const ALL: [(Keyword, &str); 77] = [
        (Keyword::Target, "Target"),
        (Keyword::SnmpOptions, "SnmpOptions"),
        (Keyword::RouterUptime, "RouterUptime"),
        (Keyword::RouterName, "RouterName"),
        (Keyword::NoHc, "NoHC"),
        (Keyword::MaxBytes, "MaxBytes"),
        (Keyword::MaxBytes1, "MaxBytes1"),
        (Keyword::MaxBytes2, "MaxBytes2"),
        (Keyword::Ipv4Only, "IPv4Only"),
        (Keyword::AbsMax, "AbsMax"),
        (Keyword::Title, "Title"),
        (Keyword::Directory, "Directory"),
        (Keyword::CloneDirectory, "CloneDirectory"),
        (Keyword::PageTop, "PageTop"),
        (Keyword::BodyTag, "BodyTag"),
        (Keyword::PageFoot, "PageFoot"),
        (Keyword::AddHead, "AddHead"),
        (Keyword::RrdRowCount, "RRDRowCount"),
        (Keyword::RrdRowCount30m, "RRDRowCount30m"),
        (Keyword::RrdRowCount2h, "RRDRowCount2h"),
        (Keyword::RrdRowCount1d, "RRDRowCount1d"),
        (Keyword::RrdHwRras, "RRDHWRRAs"),
        (Keyword::Extension, "Extension"),
        (Keyword::Unscaled, "Unscaled"),
        (Keyword::WeekFormat, "WeekFormat"),
        (Keyword::WithPeak, "WithPeak"),
        (Keyword::Suppress, "Suppress"),
        (Keyword::XSize, "XSize"),
        (Keyword::YSize, "YSize"),
        (Keyword::YTics, "YTics"),
        (Keyword::YTicsFactor, "YTicsFactor"),
        (Keyword::Factor, "Factor"),
        (Keyword::Step, "Step"),
        (Keyword::Timezone, "Timezone"),
        (Keyword::Options, "Options"),
        (Keyword::Colours, "Colours"),
        (Keyword::Background, "Background"),
        (Keyword::TextColor, "TextColor"),
        (Keyword::Kilo, "Kilo"),
        (Keyword::Kmg, "KMG"),
        (Keyword::PngTitle, "PNGTitle"),
        (Keyword::YLegend, "YLegend"),
        (Keyword::ShortLegend, "ShortLegend"),
        (Keyword::Legend1, "Legend1"),
        (Keyword::Legend2, "Legend2"),
        (Keyword::Legend3, "Legend3"),
        (Keyword::Legend4, "Legend4"),
        (Keyword::Legend5, "Legend5"),
        (Keyword::LegendI, "LegendI"),
        (Keyword::LegendO, "LegendO"),
        (Keyword::SetEnv, "SetEnv"),
        (Keyword::XZoom, "XZoom"),
        (Keyword::YZoom, "YZoom"),
        (Keyword::XScale, "XScale"),
        (Keyword::YScale, "YScale"),
        (Keyword::ThreshMinI, "ThreshMinI"),
        (Keyword::ThreshMinO, "ThreshMinO"),
        (Keyword::ThreshMaxI, "ThreshMaxI"),
        (Keyword::ThreshMaxO, "ThreshMaxO"),
        (Keyword::ThreshDesc, "ThreshDesc"),
        (Keyword::ThreshProgI, "ThreshProgI"),
        (Keyword::ThreshProgO, "ThreshProgO"),
        (Keyword::ThreshProgOkI, "ThreshProgOKI"),
        (Keyword::ThreshProgOkO, "ThreshProgOKO"),
        (Keyword::ThreshMailAddress, "ThreshMailAddress"),
        (Keyword::HwThreshMinI, "HWThreshMinI"),
        (Keyword::HwThreshMinO, "HWThreshMinO"),
        (Keyword::HwThreshMaxI, "HWThreshMaxI"),
        (Keyword::HwThreshMaxO, "HWThreshMaxO"),
        (Keyword::HwThreshDesc, "HWThreshDesc"),
        (Keyword::HwThreshProgI, "HWThreshProgI"),
        (Keyword::HwThreshProgO, "HWThreshProgO"),
        (Keyword::HwThreshProgOkI, "HWThreshProgOKI"),
        (Keyword::HwThreshProgOkO, "HWThreshProgOKO"),
        (Keyword::HwThreshMailAddress, "HWThreshMailAddress"),
        (Keyword::TimeStrPos, "TimeStrPos"),
        (Keyword::TimeStrFmt, "TimeStrFmt"),
    ];

    /// The keyword in the reference's spelling.
    pub fn word(self) -> &'static str {
        Keyword::ALL[self.number()].1
    }

    /// The keyword with this spelling, in any case. As in MRTG, `colors` and the
    /// typo `supress` are accepted.
    pub(super) fn of(word: &[u8]) -> Option<Keyword> {
        let word = match word {
            _ if word.eq_ignore_ascii_case(b"colors") => &b"colours"[..],
            _ if word.eq_ignore_ascii_case(b"supress") => b"suppress",
            _ => word,
        };
        let mut all = Keyword::ALL.into_iter();
        let found = all.find(|(_, known)| {
            known.len() == word.len() && word.eq_ignore_ascii_case(known.as_bytes())
        });
        found.map(|(keyword, _)| keyword)
    }

    pub(super) fn number(self) -> usize {
        self as usize
    }

    /// The keyword's bit in a set of keywords.
    pub(super) fn bit(self) -> u128 {
        1 << self.number()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_at_their_number() {
        for (at, (keyword, word)) in Keyword::ALL.into_iter().enumerate() {
            assert_eq!(keyword.number(), at, "{word}");
            assert_eq!(Keyword::of(word.to_lowercase().as_bytes()), Some(keyword));
        }
    }
}
