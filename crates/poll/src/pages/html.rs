//! The page of a target: its elements, classes and comments are MRTG's, because scripts and style sheets look for them. The style
//! is our own.

use super::amount::AmountStyle;
use super::comments::{self, Known};
use super::style::{GraphStyle, Period, has_letter};
use super::words::Words;
use crate::batch::{About, Uptime};
use jiff::Timestamp;
use kymo_wire::mrtg_cfg::{Choice, Globals, Keyword, Target, decoded};
use std::fmt::Write as _;
use std::sync::Arc;

/// Version of MRTG that a page names.
const VERSION: &str = "2.17.10";
/// Seconds after which a browser loads a page again.
const REFRESH_S: u64 = 300;
/// Most characters of a device's name or of its words for the time that it has been up.
const ABOUT_MAX: usize = 255;

/// The look of a target's page. Its texts are HTML of the administrator's, which are passed on as they are.
#[derive(Clone, Debug)]
pub struct PageStyle {
    /// Path of the folder of pictures from that of the page, empty or with a slash at the end.
    pub images: String,
    /// Name of the target in paths of pictures.
    name: String,
    title: String,
    add_head: String,
    body_tag: String,
    page_top: String,
    page_foot: String,
    /// Background and text, as `#rrggbb`.
    colours: [String; 2],
    /// Names of the colours of curves.
    colour_names: [String; 5],
    /// Names of in and out; `None`: there is no row for it.
    directions: [Option<String>; 2],
    /// Name of the percentage's row, likewise.
    percentage: Option<String>,
    /// Texts of the legend: both rates, both peaks, and the percentage.
    legends: [String; 5],
    /// Letters of `Suppress`.
    suppress: Vec<u8>,
    /// `Timezone`
    zone: Option<String>,
    has_peak_legend: bool,
    max_bytes: [u64; 2],
    amounts: AmountStyle,
    interval: String,
    refresh_s: u64,
    words: Arc<Words>,
    /// `IconDir` with a slash at the end.
    icons: Option<String>,
}

impl PageStyle {
    /// The style of a target.
    pub fn of(target: Target<'_>, graphs: &GraphStyle, globals: &Globals) -> PageStyle {
        let text = |keyword| Some(decoded(&target.value(keyword)?));
        let html = |keyword| text(keyword).unwrap_or_default();
        let lines = |keyword| html(keyword).replace("\\n", "\n");
        let some = |keyword| text(keyword).filter(|text| !text.is_empty() && text != "0");
        let options = target.options();
        let words = Words::or_english(globals.language.as_deref());
        let [inward, outward, percentage] = words.rows;
        let direction = |choice, keyword, otherwise: &str| {
            let name = text(keyword).unwrap_or_else(|| otherwise.into());
            (!options.has(choice) && !name.is_empty() && name != "0").then_some(name)
        };
        let prefixes = some(Keyword::Kmg).map(|_| &graphs.prefixes[..]);
        let own_unit = match prefixes {
            Some(_) => text(Keyword::ShortLegend),
            None => some(Keyword::ShortLegend),
        };
        let factor = text(Keyword::Factor).and_then(|text| text.trim().parse().ok());
        let background = target.colour(Keyword::Background).unwrap_or([255; 3]);
        let contrast = match background.map(u32::from).iter().sum::<u32>() < 384 {
            true => [255; 3],
            false => [0; 3],
        };
        let text_colour = target.colour(Keyword::TextColor).unwrap_or(contrast);
        let mut colour_names = words.colours.map(String::from);
        for (name, (own, _)) in colour_names
            .iter_mut()
            .zip(target.colours().unwrap_or_default())
        {
            *name = decoded(&own);
        }
        PageStyle {
            images: String::new(),
            name: link(&target.name()),
            title: html(Keyword::Title),
            add_head: lines(Keyword::AddHead),
            body_tag: body_tag(text(Keyword::BodyTag)),
            page_top: lines(Keyword::PageTop),
            page_foot: lines(Keyword::PageFoot),
            colours: [background, text_colour].map(hexadecimal),
            colour_names,
            directions: [
                direction(Choice::Noi, Keyword::LegendI, inward),
                direction(Choice::Noo, Keyword::LegendO, outward),
            ],
            percentage: text(Keyword::Legend5)
                .or(Some(percentage.into()))
                .filter(|name| !name.is_empty() && name != "0"),
            legends: legends(target, &words, &some),
            suppress: html(Keyword::Suppress).into_bytes(),
            zone: text(Keyword::Timezone),
            has_peak_legend: some(Keyword::WithPeak).is_some(),
            max_bytes: target.max_bytes(),
            amounts: AmountStyle::new(graphs, own_unit.as_deref(), prefixes, factor.unwrap_or(1.0)),
            interval: globals.interval_minutes.to_string(),
            refresh_s: globals.refresh_s.unwrap_or(REFRESH_S),
            icons: globals.icon_dir.as_deref().map(icon_folder),
            words,
        }
    }

    /// True if a period has neither a graph nor a part of the page.
    pub fn is_suppressed(&self, period: Period) -> bool {
        has_letter(&self.suppress, period)
    }

    /// The page with figures of a time, seconds since 1970, of a device that may have said something about itself.
    pub fn page(
        &self,
        graphs: &GraphStyle,
        known: &Known,
        now_s: i64,
        about: Option<&About>,
    ) -> String {
        let mut out = String::with_capacity(8 << 10);
        self.head(graphs, known, &mut out);
        self.put_top(graphs, now_s, about, &mut out);
        for (period, known) in Period::ALL.into_iter().zip(known) {
            if !self.is_suppressed(period) {
                self.put_period(graphs, period, known, &mut out);
            }
        }
        if !graphs.options.has(Choice::Nolegend) {
            self.put_legend(graphs, &mut out);
        }
        if !graphs.options.has(Choice::Nobanner) {
            put_footer(self.icons.as_deref(), &mut out);
        }
        out.push_str(&self.page_foot);
        out.push_str("\n</body>\n</html>\n");
        out
    }

    fn head(&self, graphs: &GraphStyle, known: &Known, out: &mut String) {
        // Writing to memory does not fail.
        let _ = write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"{}\">\n<!-- MRTG {VERSION} by kymo -->\n<!-- Begin Head -->\n<head>\n\
             <meta charset=\"UTF-8\" />\n<meta http-equiv=\"refresh\" content=\"{}\" />\n<title>{}</title>\n",
            self.words.tag, self.refresh_s, self.title
        );
        let has_percent = graphs.options.has(Choice::Dorelpercent);
        for (period, known) in Period::ALL.into_iter().zip(known) {
            comments::put(period, known, has_percent, out);
        }
        let [background, text] = &self.colours;
        let [inward, outward, in_peak, out_peak, relation] = graphs.colours.map(hexadecimal);
        let _ = write!(
            out,
            "<style>\nbody {{ background-color: {background}; color: {text} }}\n\
             div.graph, div#legend {{ border-bottom: 2px solid #aaa; margin-bottom: 5px; padding-bottom: 10px }}\n\
             div.graph h2 {{ font-size: 1.2em }}\ndiv.graph table, div#legend table {{ font-size: 80% }}\n\
             div.graph td {{ padding: 0 10px; text-align: right }}\ndiv#legend th {{ text-align: right }}\n\
             .in th, span.in {{ color: {inward} }}\n.out th, span.out {{ color: {outward} }}\n\
             .inpeak th {{ color: {in_peak} }}\n.outpeak th {{ color: {out_peak} }}\n.relpercent th {{ color: {relation} }}\n\
             div#footer {{ font-size: 80% }}\n</style>{}\n</head>\n<!-- End Head -->\n",
            self.add_head
        );
    }

    fn put_top(&self, graphs: &GraphStyle, now_s: i64, about: Option<&About>, out: &mut String) {
        let time = Timestamp::from_second(now_s).unwrap_or_default();
        let time = time.to_zoned(graphs.zone.clone());
        let zone = self
            .zone
            .as_ref()
            .map_or(String::new(), |zone| format!(" {zone}"));
        let date = format!("<strong>{}{zone}</strong>", self.words.date(&time));
        let _ = write!(
            out,
            "{}\n{}\n<p>{}",
            self.body_tag,
            self.page_top,
            self.words.updated(&date)
        );
        let about = about.filter(|_| !graphs.options.has(Choice::Noinfo));
        if let Some((name, uptime)) = about.and_then(|about| self.about(about)) {
            let _ = write!(out, ",<br />\n{}", self.words.up(&name, &uptime));
        }
        out.push_str("</p>\n");
    }

    /// HTML of the name of a device and of the time that it has been up; `None`: it does not say the time.
    fn about(&self, about: &About) -> Option<(String, String)> {
        let text = |bytes: &[u8]| {
            let text: String = decoded(bytes)
                .chars()
                .filter(|c| !c.is_control())
                .take(ABOUT_MAX)
                .collect();
            (!text.is_empty() && text != "0").then(|| escaped(&text))
        };
        let uptime = match &about.uptime {
            Uptime::Ticks(ticks) => uptime(*ticks),
            Uptime::Words(words) => text(words)?,
        };
        let name = about.name.as_deref().and_then(text);
        let name = name.map(|name| format!("<strong>'{name}'</strong>"));
        Some((
            name.unwrap_or_else(|| self.words.device.into()),
            format!("<strong>{uptime}</strong>"),
        ))
    }

    fn put_period(
        &self,
        graphs: &GraphStyle,
        period: Period,
        known: &[Option<i64>; 11],
        out: &mut String,
    ) {
        let [
            max_in,
            max_out,
            max,
            mean_in,
            mean_out,
            mean,
            new_in,
            new_out,
            newest,
            top_in,
            top_out,
        ] = *known;
        let (title, word) = (self.title_of(period), period.word());
        let [largest, middle, current] = self.words.columns;
        let source = escaped(&format!("{}{}-{word}.png", self.images, self.name));
        let _ = write!(
            out,
            "<!-- Begin {title} interval) -->\n<div class=\"graph\">\n<h2>{}</h2>\n\
             <img src=\"{source}\" title=\"{word}\" alt=\"{word}\" />\n<table>\n\
             <tr><th></th><th scope=\"col\">{largest}</th><th scope=\"col\">{middle}</th><th scope=\"col\">{current}</th></tr>\n",
            self.words.title(period, &self.interval)
        );
        let [inward, outward] = &self.directions;
        let [limit_in, limit_out] = self.max_bytes;
        for (class, name, limit, figures) in [
            ("in", inward, limit_in, [max_in, mean_in, new_in]),
            ("out", outward, limit_out, [max_out, mean_out, new_out]),
        ] {
            if let Some(name) = name {
                let cells = figures.map(|rate| self.amounts.text(rate, limit));
                put_row(class, name, &cells, out);
            }
        }
        if let Some(name) = &self.percentage
            && graphs.options.has(Choice::Dorelpercent)
        {
            let cells = [max, mean, newest].map(|part| format!("{}.0 %", part.unwrap_or(0)));
            put_row("relpercent", name, &cells, out);
        }
        if let [Some(inward), Some(outward)] = &self.directions
            && graphs.options.has(Choice::Avgpeak)
        {
            let [top_in, top_out] = [(top_in, limit_in), (top_out, limit_out)]
                .map(|(rate, limit)| self.amounts.text(rate, limit));
            let _ = writeln!(
                out,
                "<tr><td colspan=\"8\">{} <span class=\"in\">{inward}</span> {top_in}/ <span class=\"out\">{outward}</span> {top_out}</td></tr>",
                self.words.peaks(period, &self.interval_of(period)),
            );
        }
        let _ = write!(out, "</table>\n</div>\n<!-- End {title} interval) -->\n");
    }

    /// The title of a period in comments, which have no language. It ends within parentheses.
    fn title_of(&self, period: Period) -> String {
        let name = match period {
            Period::Day => "Daily",
            Period::Week => "Weekly",
            Period::Month => "Monthly",
            Period::Year => "Yearly",
        };
        format!("`{name}' Graph ({}", self.interval_of(period))
    }

    fn interval_of(&self, period: Period) -> String {
        match period {
            Period::Day => format!("{} Minute", self.interval),
            Period::Week => "30 Minute".into(),
            Period::Month => "2 Hour".into(),
            Period::Year => "1 Day".into(),
        }
    }

    fn put_legend(&self, graphs: &GraphStyle, out: &mut String) {
        let [has_in, has_out] = self.directions.each_ref().map(Option::is_some);
        let has_peaks = self.has_peak_legend;
        let has_percent = graphs.options.has(Choice::Dorelpercent);
        out.push_str("<!-- Begin Legend -->\n<div id=\"legend\">\n<table>\n");
        let rows = [
            ("in", has_in),
            ("out", has_out),
            ("inpeak", has_in && has_peaks),
            ("outpeak", has_out && has_peaks),
            ("relpercent", has_percent),
        ];
        for (((class, is_shown), colour), text) in
            rows.into_iter().zip(&self.colour_names).zip(&self.legends)
        {
            if is_shown {
                put_row(
                    class,
                    &format!("{colour} ###"),
                    std::slice::from_ref(text),
                    out,
                );
            }
        }
        out.push_str("</table>\n</div>\n<!-- End Legend -->\n");
    }
}

/// `IconDir` as the start of a path in a page.
pub(super) fn icon_folder(folder: &str) -> String {
    escaped(&format!("{}/", folder.trim_end_matches('/')))
}

/// The end of a page. The pictures in the folder of icons are MRTG's, which kymo has none of.
pub(super) fn put_footer(icons: Option<&str>, out: &mut String) {
    out.push_str("<!-- Begin MRTG Block -->\n<div id=\"footer\">");
    if let Some(icons) = icons {
        out.push_str("<a href=\"http://oss.oetiker.ch/mrtg/\">");
        for (part, width) in [("l", 63), ("m", 25), ("r", 388)] {
            let _ = write!(
                out,
                "<img src=\"{icons}mrtg-{part}.png\" width=\"{width}\" title=\"MRTG\" alt=\"MRTG\" />"
            );
        }
        out.push_str("</a><br />");
    }
    out.push_str("kymo poll</div>\n<!-- End MRTG Block -->\n");
}

fn put_row(class: &str, name: &str, cells: &[String], out: &mut String) {
    let _ = write!(out, "<tr class=\"{class}\"><th scope=\"row\">{name}</th>");
    for cell in cells {
        let _ = write!(out, "<td>{cell}</td>");
    }
    out.push_str("</tr>\n");
}

fn body_tag(own: Option<String>) -> String {
    match own {
        None => "<body>".into(),
        Some(tag) if tag.to_ascii_lowercase().contains("<body") => tag,
        Some(attributes) => format!("<body {attributes}>"),
    }
}

fn legends(
    target: Target<'_>,
    words: &Words,
    own: &dyn Fn(Keyword) -> Option<String>,
) -> [String; 5] {
    let options = target.options();
    let unit = usize::from(!options.has(Choice::Bits));
    let time = match () {
        () if options.has(Choice::Perminute) => 1,
        () if options.has(Choice::Perhour) => 2,
        () => 0,
    };
    let [inward, outward] = words.traffic(unit, time);
    let [in_peak, out_peak] = words.peak_legends.map(String::from);
    let one = own(Keyword::Legend1).unwrap_or(inward);
    let two = own(Keyword::Legend2).unwrap_or(outward);
    let relation = own(Keyword::Legend5).unwrap_or_else(|| format!("(({one})/({two}))*100"));
    [
        one,
        two,
        own(Keyword::Legend3).unwrap_or(in_peak),
        own(Keyword::Legend4).unwrap_or(out_peak),
        relation,
    ]
}

/// The time of sysUpTime's hundredths of a second, as MRTG writes it.
fn uptime(ticks: u32) -> String {
    let seconds = ticks / 100;
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let clock = format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60);
    match days {
        0 => clock,
        1 => format!("1 day, {clock}"),
        days => format!("{days} days, {clock}"),
    }
}

fn hexadecimal([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// A path as a link of a page, which is UTF-8: of other bytes a browser needs the numbers.
pub(crate) fn link(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to memory does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// A text within an attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_utf_8() {
        for (path, expected) in [
            (&b"a/b-1.png"[..], "a/b-1.png"),
            ("gr\u{fc}n".as_bytes(), "gr\u{fc}n"),
            (b"gr\xfcn/\xe4", "gr%FCn/%E4"),
        ] {
            assert_eq!(link(path), expected);
        }
    }

    #[test]
    fn times_are_written_as_mrtg_writes_them() {
        for (ticks, expected) in [
            (0, "0:00:00"),
            (5_999, "0:00:59"),
            (8_640_000 + 360_000, "1 day, 1:00:00"),
            (u32::MAX, "497 days, 2:27:52"),
        ] {
            assert_eq!(uptime(ticks), expected);
        }
    }
}
