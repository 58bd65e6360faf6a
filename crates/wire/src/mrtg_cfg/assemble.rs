//! Assembles a configuration from its lines: MRTG's final checks, defaults, and each target's readings.

use super::config::{Config, Kept, LAST, LeftOut, Problem, Problems};
use super::expression::{Expression, Formulas};
use super::files::Files;
use super::global::Global;
use super::global_values::globals;
use super::globals::{Globals, LogFormat};
use super::keyword::Keyword;
use super::oids::Oids;
use super::options::{Choice, Options};
use super::perl::{is_digits, is_true, number};
use super::reader::{ConfigLocation, Named, Reader};
use super::readings::{Manner, Readings};
use super::secret::ConfigText;
use super::snmp_options::SnmpOptions;
use super::target_parser::TargetParser;
use super::text::{Text, narrow, wide};
use super::trace::Trace;
use super::user::UserOptions;

/// The warning about keys of a user that nothing asks for.
const IDLE_USER: &str = "SnmpOptions: the user of SNMPv3 has no effect without EnableSnmpV3: yes";

/// Number of problems at which the search for more ends.
const PROBLEMS_MAX: usize = 100;

/// Reads a configuration with all its includes.
pub fn read(path: &[u8], files: &mut dyn Files) -> Result<Config, Problems> {
    read_traced(path, files, &mut Trace::Off)
}

/// As [`read`], and passes each step that `--debug=tarp` shows to `trace`.
pub fn read_traced(
    path: &[u8],
    files: &mut dyn Files,
    trace: &mut Trace,
) -> Result<Config, Problems> {
    let one = |problem| Problems(vec![problem]);
    let reader = Reader::read(path, files).map_err(one)?;
    let mut assembling = Assembling::begin(reader)?;
    for number in 0..assembling.reader.targets.len() {
        assembling.target(number, trace);
        if assembling.problems.len() >= PROBLEMS_MAX {
            break;
        }
    }
    assembling.end()
}

pub(super) struct Assembling<'f> {
    pub(super) reader: Reader<'f>,
    globals: Globals,
    pub(super) readings: Readings,
    pub(super) formulas: Formulas,
    pub(super) kept: Vec<Kept>,
    /// Targets with `RouterUptime` or `RouterName`.
    pub(super) naming: Vec<u32>,
    /// See [`Config::abouts`].
    pub(super) abouts: Vec<(u32, u32)>,
    /// Readings and sessions of numbers.
    pub(super) numbers: (usize, usize),
    left_out: Vec<LeftOut>,
    problems: Vec<Problem>,
    has_no_mail_server: bool,
    /// Parameters of the previous target; the next one often has the same.
    pub(super) chosen: Chosen,
    options: (Option<Text>, Options),
}

/// Parameters of a target's readings.
#[derive(Default)]
pub(super) struct Chosen {
    no_hc: bool,
    ipv4_only: bool,
    has_v3: bool,
    /// Parsed options with their place and number.
    snmp_options: (Option<Text>, SnmpOptions, u32),
}

impl Chosen {
    pub(super) fn manner(&self) -> Manner<'_> {
        Manner {
            ipv4_only: self.ipv4_only,
            no_hc: self.no_hc,
            has_v3: self.has_v3,
            snmp_options: &self.snmp_options.1,
            options_number: self.snmp_options.2,
        }
    }
}

impl<'f> Assembling<'f> {
    fn begin(mut reader: Reader<'f>) -> Result<Assembling<'f>, Problems> {
        let mut problems = Vec::new();
        let globals = globals(&mut reader, &mut problems);
        let globals = globals.ok_or_else(|| Problems(std::mem::take(&mut problems)))?;
        let mib_files = reader.globals[Global::LoadMibs.number()].map(|(text, _)| {
            let text = reader.texts.get(text);
            let names = text.split(|byte| *byte == b',' || byte.is_ascii_whitespace());
            let names = names.filter(|name| !name.is_empty());
            names.map(<[u8]>::to_vec).collect::<Vec<_>>()
        });
        Ok(Assembling {
            globals,
            readings: Readings::new(Oids::new(mib_files.unwrap_or_default())),
            formulas: Formulas::default(),
            kept: Vec::with_capacity(reader.targets.len()),
            naming: Vec::new(),
            abouts: Vec::new(),
            numbers: (0, 0),
            left_out: Vec::new(),
            problems,
            has_no_mail_server: false,
            chosen: Chosen::default(),
            options: (None, Options::default()),
            reader,
        })
    }

    fn end(mut self) -> Result<Config, Problems> {
        if !self.problems.is_empty() {
            return Err(Problems(self.problems));
        }
        self.add_abouts();
        let mut reader = self.reader;
        reader.texts.shrink();
        Ok(Config {
            texts: reader.texts,
            globals: self.globals,
            paths: reader.paths,
            targets: self.kept,
            values: reader.values,
            readings: self.readings.all,
            sessions: self.readings.sessions,
            oids: self.readings.oids.numbers,
            formulas: self.formulas,
            abouts: self.abouts,
            numbers: self.numbers,
            left_out: self.left_out,
            warnings: reader.warnings,
        })
    }

    fn wrong(&mut self, place: ConfigLocation, what: String) {
        let problem = self.reader.problem(place, what);
        self.problems.push(problem);
    }

    fn target(&mut self, number: usize, trace: &mut Trace) {
        let Named {
            name,
            place,
            first_value,
            ..
        } = self.reader.targets[number];
        let mut values = [None; Keyword::ALL.len()];
        let mut at = first_value;
        while at != LAST {
            let value = self.reader.values[wide(at)];
            values[value.keyword.number()] = Some(value.text);
            at = value.next;
        }
        let value = |keyword: Keyword| values[keyword.number()];
        let problems = self.problems.len();
        let shown = |this: &Self| ConfigText(&this.reader.texts.get(name)).to_string();
        self.check_mail(value(Keyword::ThreshMailAddress), place, &shown);
        if value(Keyword::Title).is_none() {
            let what = format!("Title[{}] is not said", shown(self));
            self.wrong(place, what);
        }
        let max_bytes = self.max_bytes(&value, place, &shown);
        let options = self.options(value(Keyword::Options), place, &shown);
        self.check_colours(&value, options, place, &shown);
        self.check_row_counts(&value, place, &shown);
        let abs_max = value(Keyword::AbsMax).map(|text| self.bytes_a_second(text));
        if abs_max.is_some_and(|most| most < max_bytes[0].max(max_bytes[1])) {
            let what = format!("AbsMax[{}] is smaller than MaxBytes", shown(self));
            self.wrong(place, what);
        }
        let Some(text) = value(Keyword::Target) else {
            let what = format!("Target[{}] is not said", shown(self));
            self.wrong(place, what);
            return;
        };
        if self.problems.len() > problems {
            return;
        }
        self.choose([Keyword::NoHc, Keyword::Ipv4Only, Keyword::SnmpOptions].map(value));
        match self.expression(text, name, trace) {
            Ok(expression) => {
                let devices = [Keyword::RouterUptime, Keyword::RouterName].map(value);
                if devices != [None; 2] {
                    self.naming.push(narrow(self.kept.len()));
                }
                self.kept.push(Kept {
                    name,
                    file: place.file,
                    line: place.line,
                    first_value,
                    options,
                    max_bytes,
                    abs_max,
                    expression,
                });
            }
            Err(why) => {
                let ConfigLocation { file, line } = self.reader.targets[number].target_place;
                self.left_out.push(LeftOut {
                    target: self.reader.texts.get(name).into_owned(),
                    file: self.reader.paths[wide(file)].clone(),
                    line,
                    why,
                });
            }
        }
    }

    fn check_mail(
        &mut self,
        address: Option<Text>,
        place: ConfigLocation,
        shown: &dyn Fn(&Self) -> String,
    ) {
        if address.is_some() && self.globals.thresh_mail.is_none() && !self.has_no_mail_server {
            self.has_no_mail_server = true;
            let what = format!(
                "ThreshMailAddress[{}] needs ThreshMailServer and ThreshMailSender",
                shown(self)
            );
            self.wrong(place, what);
        }
    }

    fn bytes_a_second(&self, text: Text) -> u64 {
        let text = self.reader.texts.get(text);
        // The text has only digits; more than 64 bits become the maximum.
        let digits = std::str::from_utf8(&text).unwrap_or_default();
        digits.parse().unwrap_or(u64::MAX)
    }

    fn max_bytes(
        &mut self,
        value: &dyn Fn(Keyword) -> Option<Text>,
        place: ConfigLocation,
        shown: &dyn Fn(&Self) -> String,
    ) -> [u64; 2] {
        let mut bytes = [0; 2];
        let both = value(Keyword::MaxBytes);
        let each = [
            (Keyword::MaxBytes1, "MaxBytes1"),
            (Keyword::MaxBytes2, "MaxBytes2"),
        ];
        let is_silent = each
            .iter()
            .all(|(keyword, _)| value(*keyword).or(both).is_none());
        if is_silent {
            let what = format!("MaxBytes[{}] is not said", shown(self));
            self.wrong(place, what);
            return bytes;
        }
        for (bytes, (keyword, word)) in bytes.iter_mut().zip(each) {
            match value(keyword).or(both) {
                Some(text) => *bytes = self.bytes_a_second(text),
                None => {
                    let what = format!("{word}[{}] is not said", shown(self));
                    self.wrong(place, what);
                }
            }
        }
        bytes
    }

    fn options(
        &mut self,
        text: Option<Text>,
        place: ConfigLocation,
        shown: &dyn Fn(&Self) -> String,
    ) -> Options {
        let Some(text) = text else {
            return Options::default();
        };
        if self.options.0 == Some(text) {
            return self.options.1;
        }
        let bytes = self.reader.texts.get(text).into_owned();
        let options = match Options::parse(&bytes) {
            Ok(options) => options,
            Err(_) => {
                let what = format!("Options[{}]: one of them is unknown", shown(self));
                self.wrong(place, what);
                return Options::default();
            }
        };
        if options.has(Choice::Derive) && self.globals.log_format != LogFormat::Rrdtool {
            let name = shown(self);
            let what = format!("Options[{name}]: derive needs LogFormat: rrdtool");
            self.wrong(place, what);
        } else {
            self.options = (Some(text), options);
        }
        options
    }

    fn check_colours(
        &mut self,
        value: &dyn Fn(Keyword) -> Option<Text>,
        options: Options,
        place: ConfigLocation,
        shown: &dyn Fn(&Self) -> String,
    ) {
        let count = match options.has(Choice::Dorelpercent) {
            true => 5,
            false => 4,
        };
        if let Some(text) = value(Keyword::Colours)
            && super::looks::colours(&self.reader.texts.get(text), count).is_none()
        {
            let name = shown(self);
            let what = format!("Colours[{name}]: {count} are needed, as Name#rrggbb, Name#rrggbb");
            self.wrong(place, what);
        }
        for keyword in [Keyword::Background, Keyword::TextColor] {
            if let Some(text) = value(keyword)
                && super::looks::colour(&self.reader.texts.get(text)).is_none()
            {
                let what = format!("{}[{}]: must be #rrggbb", keyword.word(), shown(self));
                self.wrong(place, what);
            }
        }
    }

    /// Refuses counts of rows of which rrdtool makes no file. Other formats do not look at them.
    fn check_row_counts(
        &mut self,
        value: &dyn Fn(Keyword) -> Option<Text>,
        place: ConfigLocation,
        shown: &dyn Fn(&Self) -> String,
    ) {
        if self.globals.log_format != LogFormat::Rrdtool {
            return;
        }
        for keyword in [
            Keyword::RrdRowCount,
            Keyword::RrdRowCount30m,
            Keyword::RrdRowCount2h,
            Keyword::RrdRowCount1d,
        ] {
            let Some(text) = value(keyword) else {
                continue;
            };
            let text = self.reader.texts.get(text);
            if is_true(&text)
                && !(is_digits(&text) && (1.0..=4294967295.0).contains(&number(&text)))
            {
                let word = keyword.word();
                let what = format!(
                    "{word}[{}]: must be a whole number bigger than 0",
                    shown(self)
                );
                self.wrong(place, what);
            }
        }
    }

    /// Takes over a target's `NoHC`, `IPv4Only` and `SnmpOptions`.
    pub(super) fn choose(&mut self, [no_hc, only_v4, own]: [Option<Text>; 3]) {
        let is_yes = |text: Option<Text>| {
            let text = text.map(|text| self.reader.texts.get(text));
            text.is_some_and(|text| text.eq_ignore_ascii_case(b"yes"))
        };
        self.chosen.no_hc = is_yes(no_hc);
        self.chosen.ipv4_only = is_yes(only_v4) || !self.globals.enable_ipv6;
        self.chosen.has_v3 = self.globals.enable_snmp_v3;
        let options =
            own.or(self.reader.globals[Global::SnmpOptions.number()].map(|(text, _)| text));
        let known = &mut self.chosen.snmp_options;
        if options == known.0 {
            return;
        }
        let parsed = options.map(|text| SnmpOptions::parse(&self.reader.texts.get(text)));
        let parsed = parsed.and_then(Result::ok).unwrap_or_default();
        if parsed != known.1 {
            known.2 += 1;
            let others = parsed.others.iter().map(|other| {
                let other = other.unwrap_or(ConfigText::DOTS);
                format!("SnmpOptions: {other} has no effect")
            });
            let is_idle = !self.globals.enable_snmp_v3 && parsed.user != UserOptions::default();
            for warning in others.chain(is_idle.then(|| IDLE_USER.to_owned())) {
                if !self.reader.warnings.contains(&warning) {
                    self.reader.warnings.push(warning);
                }
            }
        }
        (known.0, known.1) = (options, parsed);
    }

    fn expression(
        &mut self,
        text: Text,
        name: Text,
        trace: &mut Trace,
    ) -> Result<Expression, String> {
        let (texts, files) = self.reader.texts_and_files();
        let mut parser = TargetParser {
            readings: &mut self.readings,
            formulas: &mut self.formulas,
            texts,
            files,
            manner: &self.chosen.manner(),
        };
        parser.parse(text, name, trace)
    }
}
