//! Global keywords, which hold for all targets.

/// A global keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Global {
    WorkDir,
    HtmlDir,
    ImageDir,
    LogDir,
    Forks,
    Refresh,
    EnableSnmpV3,
    EnableIpv6,
    Interval,
    WriteExpires,
    NoMib2,
    SingleRequest,
    IconDir,
    Language,
    LoadMibs,
    UseRrdtool,
    LogFormat,
    PathAdd,
    LibAdd,
    RunAsDaemon,
    NoDetach,
    MaxAge,
    NoSpaceChar,
    SnmpOptions,
    ConversionCode,
    RrdCached,
    SendToGraphite,
    ThreshDir,
    ThreshHyst,
    HwThreshHyst,
    ThreshMailServer,
    ThreshMailSender,
}

impl Global {
    pub(super) const ALL: [(Global, &str); 32] = [
        (Global::WorkDir, "WorkDir"),
        (Global::HtmlDir, "HtmlDir"),
        (Global::ImageDir, "ImageDir"),
        (Global::LogDir, "LogDir"),
        (Global::Forks, "Forks"),
        (Global::Refresh, "Refresh"),
        (Global::EnableSnmpV3, "EnableSnmpV3"),
        (Global::EnableIpv6, "EnableIPv6"),
        (Global::Interval, "Interval"),
        (Global::WriteExpires, "WriteExpires"),
        (Global::NoMib2, "NoMib2"),
        (Global::SingleRequest, "SingleRequest"),
        (Global::IconDir, "IconDir"),
        (Global::Language, "Language"),
        (Global::LoadMibs, "LoadMIBs"),
        (Global::UseRrdtool, "UseRRDtool"),
        (Global::LogFormat, "LogFormat"),
        (Global::PathAdd, "PathAdd"),
        (Global::LibAdd, "LibAdd"),
        (Global::RunAsDaemon, "RunAsDaemon"),
        (Global::NoDetach, "NoDetach"),
        (Global::MaxAge, "MaxAge"),
        (Global::NoSpaceChar, "NoSpaceChar"),
        (Global::SnmpOptions, "SnmpOptions"),
        (Global::ConversionCode, "ConversionCode"),
        (Global::RrdCached, "RRDCached"),
        (Global::SendToGraphite, "SendToGraphite"),
        (Global::ThreshDir, "ThreshDir"),
        (Global::ThreshHyst, "ThreshHyst"),
        (Global::HwThreshHyst, "HWThreshHyst"),
        (Global::ThreshMailServer, "ThreshMailServer"),
        (Global::ThreshMailSender, "ThreshMailSender"),
    ];

    /// The keyword with this spelling, in any case.
    pub(super) fn of(word: &[u8]) -> Option<Global> {
        let mut all = Global::ALL.into_iter();
        let found = all.find(|(_, known)| word.eq_ignore_ascii_case(known.as_bytes()));
        found.map(|(keyword, _)| keyword)
    }

    /// The keyword in the reference's spelling.
    pub(super) fn word(self) -> &'static str {
        Global::ALL[self.number()].1
    }

    pub(super) fn number(self) -> usize {
        self as usize
    }
}
