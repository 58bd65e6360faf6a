//! A page of the graphs of all targets, as MRTG's indexmaker makes it: the same targets, order, titles, links and pictures. The page
//! around them is our own.

use super::html::{escaped, icon_folder, link, put_footer};
use super::style::Period;
use super::{PageFolders, between};
use kymo_wire::mrtg_cfg::{Config, Keyword, LogFormat, decoded};
use std::cmp::Ordering;
use std::fmt::Write as _;
use std::path::Path;

/// Seconds after which a browser loads the page again, unless the configuration or a longer period says otherwise.
const REFRESH_S: u64 = 300;

/// Orders of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexOrder {
    /// The order of the configurations.
    Original,
    /// By name; numbers within names count as numbers.
    Name,
    /// By title, likewise.
    Title,
    /// By the text beside `Description:` in `PageTop`.
    Description,
}

/// Texts above graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexSection {
    /// The first `<h1>` of `PageTop`, or else the title.
    Heading,
    /// `Title`
    Title,
    /// The name of the target.
    Name,
    /// The text beside `Description:` in `PageTop`, or that of the environment of `SetEnv`.
    Description,
    /// The text beside `Port Name:`.
    PortName,
    /// The text beside `ifName:`.
    IfName,
}

/// The look of an index. Its texts are HTML of the administrator's, which are passed on as they are.
#[derive(Clone, Debug)]
pub struct IndexStyle {
    /// Title and heading.
    pub title: String,
    /// A line below the heading, or nothing.
    pub subtitle: String,
    /// HTML within `<head>`.
    pub add_head: String,
    /// HTML before and behind everything.
    pub page_top: String,
    /// See [`IndexStyle::page_top`].
    pub page_end: String,
    /// Attributes of `<body>`.
    pub body: String,
    /// Number of the heading: 1 for `<h1>`.
    pub head_level: u8,
    /// Graphs in a row.
    pub columns: usize,
    /// Graphs that are shown; `None`: links alone.
    pub show: Option<Period>,
    /// Texts above graphs.
    pub section: IndexSection,
    /// Width and height of graphs in pixels.
    pub size: [Option<u32>; 2],
    /// True if graphs are numbered.
    pub is_numbered: bool,
    /// True if the graphs of each host begin in a row of their own, below its name.
    pub is_by_host: bool,
    /// True if the host stands before each text in which it is not.
    pub names_host: bool,
    /// True if a graph stands before its text.
    pub is_picture_first: bool,
    /// True if text and graph stand beside each other, in cells of their own.
    pub is_beside: bool,
    /// True if there is little room around graphs.
    pub is_compact: bool,
    /// True if the text is a link as well.
    pub links_text: bool,
    /// True if texts are bold.
    pub is_bold: bool,
    /// True if the page ends with its maker's name.
    pub has_footer: bool,
    /// Path or URL of MRTG's own pictures, if they are there.
    pub icons: Option<String>,
    /// Command line that made the page, unless it is not to be shown.
    pub command: Option<String>,
    /// Program that shows .rrd files.
    pub viewer: String,
}

/// A target in an index.
#[derive(Clone, Debug)]
pub struct IndexedTarget {
    /// Name of the target.
    pub name: String,
    /// `Title`
    pub title: String,
    /// `PageTop`
    pub page_top: String,
    environment: String,
    page: String,
    /// Start of the path of its graphs; `None`: a viewer shows them.
    graphs: Option<String>,
    /// Name of the configuration's file.
    config: String,
    /// Device of `Target`, if it is neither a sum nor a command.
    host: Option<String>,
}

impl IndexedTarget {
    /// All targets of a configuration that was read from `file`, whose pages are found from the index by `prefix`.
    pub fn of_all(config: &Config, file: &Path, prefix: &str) -> Vec<IndexedTarget> {
        let globals = config.globals();
        let folders = PageFolders::of(globals, None);
        let images = match folders.html == folders.images {
            true => String::new(),
            false => between(&folders, b""),
        };
        let name = link(file.file_name().unwrap_or_default().as_encoded_bytes());
        let has_graphs = globals.log_format == LogFormat::Rateup;
        let targets = config.targets().map(|target| {
            let bytes = |keyword| target.value(keyword).unwrap_or_default();
            let text = |keyword| decoded(&bytes(keyword));
            let folder = link(&bytes(Keyword::Directory));
            let folder = match folder.trim_end().trim_end_matches('/') {
                "" => String::new(),
                folder => format!("{folder}/"),
            };
            let own = link(&target.name());
            let extension = Some(link(&bytes(Keyword::Extension))).filter(|text| !text.is_empty());
            let extension = extension.unwrap_or_else(|| "html".into());
            IndexedTarget {
                page: format!("{prefix}{folder}{own}.{extension}"),
                graphs: has_graphs.then(|| format!("{prefix}{images}{folder}{own}")),
                title: text(Keyword::Title),
                page_top: text(Keyword::PageTop),
                environment: text(Keyword::SetEnv),
                config: name.clone(),
                host: host(&text(Keyword::Target)),
                name: decoded(&target.name()),
            }
        });
        targets.collect()
    }

    fn section(&self, section: IndexSection) -> String {
        let beside = |label: &str| cell(&self.page_top, label).map(str::to_string);
        match section {
            IndexSection::Heading => {
                heading(&self.page_top).map_or_else(|| self.title.clone(), String::from)
            }
            IndexSection::Title => self.title.clone(),
            IndexSection::Name => escaped(&self.name),
            IndexSection::PortName => {
                beside("Port Name:").unwrap_or_else(|| self.without("Portname"))
            }
            IndexSection::IfName => beside("ifName:").unwrap_or_else(|| self.without("Portname")),
            IndexSection::Description => self.description(),
        }
    }

    fn without(&self, what: &str) -> String {
        format!("No {what} for {}", escaped(&self.name))
    }

    /// The description of an interface: cfgmaker writes `Description:`, its ifDescr, and then what people have called it.
    fn description(&self) -> String {
        let quoted = self.environment.split_once("MRTG_INT_DESCR=\"");
        let short = quoted
            .and_then(|(_, rest)| rest.split('"').next())
            .filter(|text| !text.is_empty());
        let Some(short) = short else {
            return self.without("Description");
        };
        let long = cell(&self.page_top, "Description:")
            .and_then(|text| text.strip_prefix(short))
            .map(str::trim_start)
            .filter(|text| text.chars().nth(1).is_some() && !text.contains('<'));
        long.unwrap_or(short).to_string()
    }

    /// The text by which descriptions are in order: without their first word.
    fn sorted_description(&self) -> String {
        let text = cell(&self.page_top, "Description:").unwrap_or_default();
        let behind = text
            .split_once(char::is_whitespace)
            .filter(|(word, _)| !word.is_empty())
            .map(|(_, rest)| rest.trim_start());
        let text = behind.filter(|rest| !rest.is_empty()).unwrap_or(text);
        text.to_lowercase()
    }
}

/// Brings targets into an order.
pub fn sort_index(targets: &mut [IndexedTarget], order: IndexOrder) {
    match order {
        IndexOrder::Original => {}
        IndexOrder::Name => targets.sort_by(|a, b| in_numbers(&a.name, &b.name)),
        IndexOrder::Title => {
            targets.sort_by(|a, b| in_numbers(&a.title, &b.title).then_with(|| a.name.cmp(&b.name)))
        }
        IndexOrder::Description => targets.sort_by_cached_key(IndexedTarget::sorted_description),
    }
}

impl IndexStyle {
    /// The index of these targets. `refresh_s`: `Refresh` of the configuration.
    pub fn page(&self, targets: &[IndexedTarget], refresh_s: Option<u64>) -> String {
        let refresh_s = match self.show {
            None | Some(Period::Day) => refresh_s.unwrap_or(REFRESH_S),
            Some(period) => u64::try_from(period.step_s()).unwrap_or(REFRESH_S),
        };
        let (title, level) = (&self.title, self.head_level.clamp(1, 6));
        let (padding, border) = match self.is_compact {
            true => (0, 0),
            false => (5, 1),
        };
        let icons = self.icons.as_deref().map(icon_folder);
        let mut out = String::new();
        let favicon = icons.as_ref().map_or(String::new(), |icons| {
            format!("<link rel=\"icon\" href=\"{icons}favicon.ico\" />\n")
        });
        let command = self.command.as_deref().unwrap_or("<suppressed>");
        let command = escaped(command);
        // Writing to memory does not fail.
        let _ = write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"UTF-8\" />\n\
             <meta name=\"Command-Line\" content=\"{command}\" />\n\
             <meta http-equiv=\"refresh\" content=\"{refresh_s}\" />\n<title>{title}</title>\n\
             <style>td {{ vertical-align: top; padding: {padding}px }} td img {{ border: {border}px solid }} td h2 {{ font-size: 100% }}</style>\n\
             {favicon}{}\n</head>\n<body {}>\n{}\n<h{level}>{title}</h{level}>\n",
            self.add_head, self.body, self.page_top
        );
        if !self.subtitle.is_empty() {
            let _ = writeln!(out, "<p>{}</p>", self.subtitle);
        }
        out.push_str("<table>\n");
        for targets in targets.chunk_by(|a, b| !self.is_by_host || a.host == b.host) {
            if self.is_by_host {
                let host = targets.first().and_then(|target| target.host.as_ref());
                let heading = host.map_or("Special Items".into(), |host| {
                    format!("Interfaces of {}", escaped(host))
                });
                let _ = writeln!(out, "<tr><td><h2>{heading}</h2></td></tr>");
            }
            let columns = self.columns.max(1);
            for (row, targets) in targets.chunks(columns).enumerate() {
                out.push_str("<tr>\n");
                for (column, target) in targets.iter().enumerate() {
                    self.put(target, row * columns + column + 1, &mut out);
                }
                out.push_str("</tr>\n");
            }
        }
        let _ = writeln!(out, "</table>\n{}", self.page_end);
        if self.has_footer {
            put_footer(icons.as_deref(), &mut out);
        }
        out.push_str("</body>\n</html>\n");
        out
    }

    fn put(&self, target: &IndexedTarget, number: usize, out: &mut String) {
        let section = self.section_of(target);
        let name = escaped(&target.name);
        let viewed = || {
            let sign = if self.viewer.contains('?') {
                "&amp;"
            } else {
                "?"
            };
            let config = escaped(&target.config);
            format!("{}{sign}log={name}&amp;cfg={config}", self.viewer)
        };
        let page = match &target.graphs {
            Some(_) => escaped(&target.page),
            None => viewed(),
        };
        let number = match self.is_numbered {
            true => format!("{number}. "),
            false => String::new(),
        };
        let text = match self.links_text || self.show.is_none() {
            true => format!("<a href=\"{page}\">{section}</a>"),
            false => section,
        };
        let text = match self.is_bold {
            true => format!("<b>{number}{text}</b>"),
            false => number + &text,
        };
        let mut parts = vec![text];
        if let Some(period) = self.show {
            let source = match &target.graphs {
                Some(graphs) => escaped(&format!("{graphs}-{}.png", period.word())),
                None => format!("{}&amp;png={}.s&amp;small=1", viewed(), period.word()),
            };
            let sizes = ["width", "height"].iter().zip(self.size);
            let sizes = sizes.filter_map(|(side, size)| Some(format!(" {side}=\"{}\"", size?)));
            let sizes: String = sizes.collect();
            let picture = format!(
                "<a href=\"{page}\"><img alt=\"{name} Traffic Graph\" src=\"{source}\"{sizes} /></a>"
            );
            parts.insert(usize::from(!self.is_picture_first), picture);
        }
        let (open, between, close) = match self.is_beside {
            true => ("<td>", "</td>\n<td>", "</td>"),
            false => ("<td><div>", "</div>\n<div>", "</div></td>"),
        };
        let _ = writeln!(out, "{open}{}{close}", parts.join(between));
    }

    /// The text above a graph.
    fn section_of(&self, target: &IndexedTarget) -> String {
        let section = target.section(self.section);
        let host = target.host.as_deref();
        let host = host.filter(|_| self.is_by_host || self.names_host);
        match host {
            Some(host) if !has_word(&section, host) => format!("{}: {section}", escaped(host)),
            _ => section,
        }
    }
}

/// The host of a target's text that is a single device, as indexmaker finds it: behind the last `@`, up to a colon.
fn host(target: &str) -> Option<String> {
    let bytes = target.as_bytes();
    let is_plain = |at: &usize| *at > 0 && bytes[at - 1] != b'\\';
    let mut signs = target.char_indices();
    if signs.any(|(at, sign)| matches!(sign, ' ' | '`') && (at == 0 || is_plain(&at))) {
        return None;
    }
    let mut signs = target.rmatch_indices('@').map(|(at, _)| at);
    let at = signs.find(is_plain)?;
    let host = target[at + 1..].split(':').next().unwrap_or_default();
    let (first, rest) = host.split_at_checked(1)?;
    Some(first.to_ascii_uppercase() + rest)
}

/// True if a text has these words, whatever their case, and not as a part of longer ones.
fn has_word(text: &str, words: &str) -> bool {
    let is_word =
        |byte: Option<&u8>| byte.is_some_and(|of| of.is_ascii_alphanumeric() || *of == b'_');
    let bytes = text.as_bytes();
    let is_edge = |at: usize| {
        is_word(at.checked_sub(1).and_then(|at| bytes.get(at))) != is_word(bytes.get(at))
    };
    let there = |at: usize| bytes.get(at..at + words.len());
    (0..bytes.len()).any(|at| {
        there(at).is_some_and(|there| there.eq_ignore_ascii_case(words.as_bytes()))
            && is_edge(at)
            && is_edge(at + words.len())
    })
}

/// The place of a text in another one, whatever their case; both ends.
fn find(text: &str, wanted: &str) -> Option<(usize, usize)> {
    let is_there = |at: &usize| {
        let there = text.get(*at..*at + wanted.len());
        there.is_some_and(|there| there.eq_ignore_ascii_case(wanted))
    };
    let at = (0..text.len()).find(is_there)?;
    Some((at, at + wanted.len()))
}

/// The text of the first `<h1>`.
fn heading(html: &str) -> Option<&str> {
    let (_, from) = find(html, "<h1")?;
    let rest = &html[from..];
    let rest = &rest[rest.find('>')? + 1..];
    let text = &rest[..find(rest, "</h1")?.0];
    (!text.is_empty()).then_some(text)
}

/// The cell beside that of a label.
fn cell<'a>(html: &'a str, label: &str) -> Option<&'a str> {
    let (_, from) = find(html, &format!("<td>{label}</td>"))?;
    let rest = html[from..].trim_start();
    let (begin, from) = find(rest, "<td>")?;
    let rest = (begin == 0).then(|| &rest[from..])?;
    Some(&rest[..find(rest, "</td>")?.0])
}

/// Compares texts; numbers in them have nine digits at least.
fn in_numbers(a: &str, b: &str) -> Ordering {
    let key = |text: &str| {
        let (mut key, mut digits) = (String::new(), String::new());
        for character in text.chars().chain(['\0']) {
            if character.is_ascii_digit() {
                digits.push(character);
                continue;
            }
            if !digits.is_empty() {
                let number = digits.trim_start_matches('0');
                let _ = write!(key, "{number:0>9}");
                digits.clear();
            }
            key.push(character);
        }
        key
    };
    key(a).cmp(&key(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_order() {
        let mut names = ["r10", "r9", "r1.2", "r1.10", "r", "q12"];
        names.sort_by(|a, b| in_numbers(a, b));
        assert_eq!(names, ["q12", "r", "r1.2", "r1.10", "r9", "r10"]);
    }

    #[test]
    fn hosts_stand_behind_the_sign() {
        for (target, expected) in [
            ("1:public@r1.example.net:161::::2", Some("R1.example.net")),
            ("1:a\\@b@r2", Some("R2")),
            ("1:a@b\\@c", Some("B\\@c")),
            ("1:p@r + 2:p@r", None),
            ("`run p@r`", None),
            ("1:p@", None),
            ("@r", None),
            ("1:p@[::1]", Some("[")),
            ("", None),
        ] {
            assert_eq!(host(target).as_deref(), expected, "{target}");
        }
        for (text, expected) in [
            ("Traffic of R1", true),
            ("r1: eth0", true),
            ("xr1", false),
            ("r1x r10", false),
            ("", false),
            ("r1\u{e4}", true),
        ] {
            assert_eq!(has_word(text, "r1"), expected, "{text}");
        }
    }

    #[test]
    fn parts_of_html_are_found() {
        let html = "<H1 class=x>Line <b>1</b></H1> <table><tr><TD>Port Name:</TD>\n <td>Gi0/1</td></tr>\
                    <tr><td>Description:</td><td>eth0 Uplink ä</td></tr>";
        assert_eq!(heading(html), Some("Line <b>1</b>"));
        assert_eq!(cell(html, "Port Name:"), Some("Gi0/1"));
        assert_eq!(cell(html, "Description:"), Some("eth0 Uplink ä"));
        for broken in [
            "",
            "<h1",
            "<h1>x",
            "<h1></h1>",
            "ä<td>Port Name:</td>",
            "<td>Port Name:</td><td>x",
        ] {
            assert_eq!((heading(broken), cell(broken, "Port Name:")), (None, None));
        }
    }
}
