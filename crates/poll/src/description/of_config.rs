//! A target of a configuration as the page has to know it: texts without HTML, numbers read, secrets left where they are.

use kymo_wire::mrtg_cfg::{Choice, Config, Keyword, Source, Target};
use kymo_wire::targets::DescribedTarget;

use super::plain_text;

/// What there is to know of a target. `devices` are what sessions are called, by their number; `series` is the keeper's name.
pub fn described(
    config: &Config,
    target: Target<'_>,
    devices: &[String],
    series: &[u8],
) -> DescribedTarget {
    let text = |keyword| target.value(keyword).map(|html| plain_text::line(&html));
    let word = |keyword| text(keyword).unwrap_or_default();
    let legends = [
        Keyword::Legend1,
        Keyword::Legend2,
        Keyword::Legend3,
        Keyword::Legend4,
        Keyword::Legend5,
    ];
    let page_top = target.value(Keyword::PageTop).unwrap_or_default();
    DescribedTarget {
        name: String::from_utf8_lossy(&target.name()).into_owned(),
        series: String::from_utf8_lossy(series).into_owned(),
        device: device(config, target, devices),
        title: word(Keyword::Title),
        page_top: plain_text::lines(&page_top),
        directory: word(Keyword::Directory),
        max_bytes: target.max_bytes(),
        abs_max: target.abs_max(),
        options: options(target),
        y_legend: text(Keyword::YLegend),
        short_legend: text(Keyword::ShortLegend),
        legends: legends.map(text),
        legend_i: text(Keyword::LegendI),
        legend_o: text(Keyword::LegendO),
        kilo: number(target, Keyword::Kilo),
        kmg: text(Keyword::Kmg),
        colours: colours(&word(Keyword::Colours)),
        x_size: number(target, Keyword::XSize),
        y_size: number(target, Keyword::YSize),
        unscaled: word(Keyword::Unscaled),
        with_peak: word(Keyword::WithPeak),
        suppress: word(Keyword::Suppress),
        factor: number(target, Keyword::Factor),
        y_tics_factor: number(target, Keyword::YTicsFactor),
    }
}

/// The device of the first reading that is asked of one.
fn device(config: &Config, target: Target<'_>, devices: &[String]) -> String {
    let readings = config.readings_of(target.expression());
    let mut sources = readings.iter().filter_map(|&reading| {
        let reading = config.readings().get(usize::try_from(reading).ok()?)?;
        match &reading.source {
            Source::Snmp(asked) => devices.get(usize::try_from(asked.session).ok()?),
            Source::Command(_) => None,
        }
    });
    sources.next().cloned().unwrap_or_default()
}

fn options(target: Target<'_>) -> Vec<String> {
    let has = |(choice, _): &&(Choice, &str)| target.options().has(*choice);
    let words = Choice::ALL.iter().filter(has);
    words.map(|(_, word)| word.to_string()).collect()
}

fn number<T: std::str::FromStr>(target: Target<'_>, keyword: Keyword) -> Option<T> {
    let value = target.value(keyword)?;
    std::str::from_utf8(&value).ok()?.trim().parse().ok()
}

/// `GREEN#00cc00,BLUE#0000ff` → `#00cc00`, `#0000ff`; names are left out.
fn colours(value: &str) -> Vec<String> {
    let colour = |part: &str| {
        part.split_once('#')
            .map(|(_, digits)| format!("#{}", digits.trim()))
    };
    value
        .split(',')
        .map(colour)
        .collect::<Option<_>>()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_without_their_names() {
        for (value, expect) in [
            ("GREEN#00cc00,DARK BLUE#0000ff", &["#00cc00", "#0000ff"][..]),
            ("a #010203 , b#040506", &["#010203", "#040506"]),
            ("", &[]),
            ("GREEN,BLUE#0000ff", &[]),
        ] {
            assert_eq!(colours(value), expect, "{value}");
        }
    }
}
