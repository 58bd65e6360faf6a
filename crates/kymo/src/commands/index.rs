//! `kymo poll --index`: a page of the graphs of all targets, with the options of MRTG's indexmaker.

mod words;

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use clap::{Parser, ValueEnum};
use kymo_base::name::DisplayName;
use kymo_poll::pages::{
    self, IndexOrder, IndexSection, IndexStyle, IndexedTarget, PageFolders, Period, sort_index,
};
use kymo_sys::disk::{Disk as _, RealDisk};
use kymo_sys::talk;
use kymo_sys::tree::{Existing, Reach, Safe};
use kymo_wire::mrtg_cfg::{self, Config};
use regex_lite::Regex;

use super::poll::CfgFiles;
use crate::options::refuse;
use crate::output;

/// Exit code without an index.
const FAILED: u8 = 2;
/// Attributes of `<body>` that indexmaker gives.
const BODY: &str =
    "bgcolor=\"#ffffff\" text=\"#000000\" link=\"#000000\" vlink=\"#000000\" alink=\"#000000\"";

/// A page with a graph of each target, which is a link to the target's page. Options are indexmaker's, and may be shortened;
/// --NAME-file FILE takes the text of an option from a file, and --noNAME takes back an option without a value
#[derive(Parser, Debug)]
#[command(
    name = "kymo poll --index",
    disable_version_flag = true,
    args_override_self = true
)]
struct IndexOptions {
    /// Configurations of MRTG
    #[arg(value_name = "CONFIGURATION", required = true)]
    files: Vec<PathBuf>,
    /// File to write; default: stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only targets whose title, pagetop or name matches (=~) or does not match (!~): 'title=~Uplink', 'name!~^test'
    #[arg(long, value_name = "FILTER")]
    filter: Vec<String>,
    /// Order: original, name, title or descr
    #[arg(
        long,
        value_name = "ORDER",
        default_value = "original",
        hide_possible_values = true
    )]
    sort: OrderWord,
    /// Graphs to show: day, week, month, year or none
    #[arg(
        long,
        value_name = "PERIOD",
        default_value = "day",
        hide_possible_values = true
    )]
    show: PeriodWord,
    /// Text above a graph: h1 (of PageTop), title, name, descr, portname or ifname
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "h1",
        hide_possible_values = true
    )]
    section: SectionWord,
    /// Graphs in a row
    #[arg(long, value_name = "NUMBER", default_value = "2", value_parser = clap::value_parser!(u16).range(1..))]
    columns: u16,
    /// Width of graphs, pixels
    #[arg(long, value_name = "PIXELS")]
    width: Option<u32>,
    /// Height of graphs, pixels
    #[arg(long, value_name = "PIXELS")]
    height: Option<u32>,
    /// Title and heading, HTML as all texts
    #[arg(long, value_name = "HTML", default_value = "MRTG Index Page")]
    title: String,
    /// A line below the heading
    #[arg(long, value_name = "HTML", default_value = "")]
    subtitle: String,
    /// Number of the heading: 1 for <h1>
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u8).range(1..=6))]
    headlevel: u8,
    /// Attributes of the <body>
    #[arg(long, value_name = "HTML", default_value = BODY, hide_default_value = true)]
    bodyopt: String,
    /// Added to the <head>
    #[arg(long, value_name = "HTML", default_value = "")]
    addhead: String,
    /// Above the heading
    #[arg(long, value_name = "HTML", default_value = "")]
    pagetop: String,
    /// Below the graphs
    #[arg(long, value_name = "HTML", default_value = "")]
    pageend: String,
    /// In place of --pagetop and --pageend, where they are missing
    #[arg(long, value_name = "HTML", default_value = "")]
    pagetopend: String,
    /// Added to the <head>, before --addhead
    #[arg(long, value_name = "HTML", default_value = "")]
    headeradd: String,
    /// Path or URL of MRTG's own pictures, which stand at the end; default: IconDir
    #[arg(long, value_name = "PATH")]
    icondir: Option<String>,
    /// Number the graphs
    #[arg(long)]
    enumerate: bool,
    /// Make the text a link, too
    #[arg(long)]
    clicktext: bool,
    /// Begin a row for each host, below its name
    #[arg(long)]
    perhost: bool,
    /// Put the host before texts in which it is not
    #[arg(long)]
    sectionhost: bool,
    /// Leave little room around graphs
    #[arg(long)]
    compact: bool,
    /// Put graphs before their texts
    #[arg(long)]
    picfirst: bool,
    /// Put texts and graphs side by side
    #[arg(long)]
    sidebyside: bool,
    /// Leave out the end of the page, which names its maker
    #[arg(long)]
    nolegend: bool,
    /// Do not write the command line into the page
    #[arg(long)]
    nooptlog: bool,
    /// Texts above graphs are not bold
    #[arg(long)]
    nobold: bool,
    /// Path or URL from the index to the pages, where the index is not in HtmlDir
    #[arg(long, value_name = "PATH", conflicts_with = "autoprefix")]
    prefix: Option<String>,
    /// Find this path by the folder of --output and by HtmlDir
    #[arg(long, requires = "output")]
    autoprefix: bool,
    /// Program that shows .rrd files, where LogFormat is rrdtool
    #[arg(long, value_name = "URL", default_value = "/cgi-bin/14all.cgi")]
    rrdviewer: String,
}

/// Values of `--sort`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum OrderWord {
    Original,
    Name,
    Title,
    #[value(alias = "description")]
    Descr,
}

/// Values of `--show`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PeriodWord {
    Day,
    Week,
    Month,
    Year,
    None,
}

/// Values of `--section`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SectionWord {
    H1,
    Title,
    Name,
    #[value(alias = "description")]
    Descr,
    Portname,
    Ifname,
}

/// An expression of `--filter`.
struct Filter {
    area: Area,
    expression: Regex,
    /// True for `=~`.
    wants_match: bool,
}

/// Texts that a filter may look at.
#[derive(Clone, Copy)]
enum Area {
    Title,
    PageTop,
    Name,
}

/// Runs `kymo poll --index` with the words behind it.
pub(crate) fn run(words: &[OsString]) -> ExitCode {
    index(words).unwrap_or_else(|error| {
        let line = format!("{error:#}");
        talk::say(format_args!("kymo: {}", DisplayName(line.as_bytes())));
        ExitCode::from(FAILED)
    })
}

fn index(words: &[OsString]) -> Result<ExitCode> {
    let all = std::iter::once(OsString::from("kymo poll --index")).chain(words::normal(words)?);
    let options = match IndexOptions::try_parse_from(all) {
        Ok(options) => options,
        Err(error) if error.use_stderr() => {
            bail!(refuse::line(&error, "kymo poll --index --help"))
        }
        Err(help) => {
            output::put(&help.to_string())?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let filters = options.filter.iter().map(|text| Filter::of(text));
    let filters = filters.collect::<Result<Vec<_>>>()?;
    let (mut targets, mut refresh_s) = (Vec::new(), None);
    let mut icons = None;
    for file in &options.files {
        let config = read(file)?;
        let prefix = options.prefix_of(&config);
        targets.extend(IndexedTarget::of_all(&config, file, &prefix));
        refresh_s = config.globals().refresh_s.or(refresh_s);
        icons = config.globals().icon_dir.clone().or(icons);
    }
    targets.retain(|target| filters.iter().all(|filter| filter.takes(target)));
    ensure!(!targets.is_empty(), "cannot make an index: no target fits");
    sort_index(&mut targets, options.order());
    let style = IndexStyle {
        icons: options.icondir.clone().or(icons.map(String::from)),
        command: (!options.nooptlog).then(|| command_line(words)),
        ..options.style()
    };
    let page = style.page(&targets, refresh_s);
    match &options.output {
        Some(file) => write(file, page.as_bytes())
            .with_context(|| format!("cannot write {}", file.display()))?,
        None => output::put(&page)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A command line as one text; words that a shell would split or read otherwise are quoted.
fn command_line(words: &[OsString]) -> String {
    let mut line = String::from("kymo poll --index");
    for word in words {
        let word = mrtg_cfg::decoded(word.as_bytes());
        match word.contains([' ', '|', '(', ')']) {
            true => line += &format!(" \"{word}\""),
            false => line += &format!(" {word}"),
        }
    }
    line
}

fn read(file: &Path) -> Result<Config> {
    let read = mrtg_cfg::read(file.as_os_str().as_bytes(), &mut CfgFiles);
    read.map_err(|problems| {
        let lines: Vec<String> = problems.0.iter().map(ToString::to_string).collect();
        anyhow!("cannot read {}: {}", file.display(), lines.join("; "))
    })
}

/// Puts a page in place as a whole.
fn write(file: &Path, page: &[u8]) -> io::Result<()> {
    let tree = RealDisk.tree(Path::new("/"), Reach::Anywhere)?;
    let file = std::path::absolute(file)?;
    let put = tree.put(&file, page, Existing::Succeed, Safe::Unsynced);
    put.map(drop)
}

impl IndexOptions {
    fn order(&self) -> IndexOrder {
        match self.sort {
            OrderWord::Original => IndexOrder::Original,
            OrderWord::Name => IndexOrder::Name,
            OrderWord::Title => IndexOrder::Title,
            OrderWord::Descr => IndexOrder::Description,
        }
    }

    fn style(&self) -> IndexStyle {
        IndexStyle {
            title: self.title.clone(),
            subtitle: self.subtitle.clone(),
            add_head: [&*self.headeradd, &self.addhead].join("\n"),
            page_top: or_else(&self.pagetop, &self.pagetopend),
            page_end: or_else(&self.pageend, &self.pagetopend),
            body: self.bodyopt.clone(),
            head_level: self.headlevel,
            columns: self.columns.into(),
            show: match self.show {
                PeriodWord::Day => Some(Period::Day),
                PeriodWord::Week => Some(Period::Week),
                PeriodWord::Month => Some(Period::Month),
                PeriodWord::Year => Some(Period::Year),
                PeriodWord::None => None,
            },
            section: match self.section {
                SectionWord::H1 => IndexSection::Heading,
                SectionWord::Title => IndexSection::Title,
                SectionWord::Name => IndexSection::Name,
                SectionWord::Descr => IndexSection::Description,
                SectionWord::Portname => IndexSection::PortName,
                SectionWord::Ifname => IndexSection::IfName,
            },
            size: [self.width, self.height],
            is_numbered: self.enumerate,
            is_by_host: self.perhost,
            names_host: self.sectionhost,
            is_picture_first: self.picfirst,
            is_beside: self.sidebyside,
            is_compact: self.compact,
            is_bold: !self.nobold,
            has_footer: !self.nolegend,
            icons: None,
            command: None,
            links_text: self.clicktext,
            viewer: self.rrdviewer.clone(),
        }
    }

    /// The path from the index to the pages of a configuration: empty, or with a slash at the end.
    fn prefix_of(&self, config: &Config) -> String {
        let folders = PageFolders::of(config.globals(), None);
        match (&self.output, &self.prefix) {
            (Some(output), None) if self.autoprefix => {
                let output = std::path::absolute(output).unwrap_or_else(|_| output.clone());
                pages::path_between(output.parent().unwrap_or(Path::new("/")), &folders.html)
            }
            (_, Some(prefix)) if !prefix.is_empty() => {
                format!("{}/", prefix.trim_end_matches('/'))
            }
            _ => String::new(),
        }
    }
}

/// A text, or the other one if it is empty.
fn or_else(text: &str, other: &str) -> String {
    let text = if text.is_empty() { other } else { text };
    text.into()
}

impl Filter {
    fn of(text: &str) -> Result<Filter> {
        let wrong = || {
            anyhow!(
                "cannot use --filter {text}: it has to be title=~EXPRESSION, or pagetop, name, !~"
            )
        };
        let (at, wants_match) = ["=~", "!~"]
            .iter()
            .filter_map(|sign| Some((text.rfind(sign)?, *sign == "=~")))
            .max()
            .ok_or_else(wrong)?;
        let area = match &text[..at] {
            "title" => Area::Title,
            "pagetop" => Area::PageTop,
            "name" => Area::Name,
            _ => return Err(wrong()),
        };
        let expression = Regex::new(&text[at + 2..]);
        Ok(Filter {
            area,
            expression: expression
                .map_err(|error| anyhow!("cannot use --filter {text}: {error}"))?,
            wants_match,
        })
    }

    fn takes(&self, target: &IndexedTarget) -> bool {
        let text = match self.area {
            Area::Title => &target.title,
            Area::PageTop => &target.page_top,
            Area::Name => &target.name,
        };
        self.expression.is_match(text) == self.wants_match
    }
}
