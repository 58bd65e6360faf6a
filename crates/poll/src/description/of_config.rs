//! Describes a target of a configuration for the page: texts without HTML, parsed numbers, no secrets.

use kymo_wire::mrtg_cfg::{self, Choice, Config, Keyword, Source, Target};
use kymo_wire::targets::DescribedTarget;

use super::plain_text;

/// The description of a target. `devices` has the names of devices by session; `series` is the keeper's name of the series.
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
        name: mrtg_cfg::decoded(&target.name()),
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

/// The device of the target's first SNMP reading; empty if it has commands alone.
fn device(config: &Config, target: Target<'_>, devices: &[String]) -> String {
    let readings = config.readings_of(target.expression());
    let mut sources = readings.iter().filter_map(|&reading| {
        let reading = config.readings().get(usize::try_from(reading).ok()?)?;
        match &reading.source {
            Source::Snmp(snmp) => devices.get(usize::try_from(snmp.session).ok()?),
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
    use crate::poller::device_names;
    use kymo_wire::mrtg_cfg::MemoryFiles;

    const CONFIG: &str = r#"
WorkDir: /tmp
Options[_]: growright, bits
Target[SW1_2]: 2:secret@sw1:1161:::::2
MaxBytes[SW1_2]: 1250000
Title[SW1_2]: Traffic &amp; <img src=x onerror=alert(1)>more
PageTop[SW1_2]: <h1>Traffic for 2</h1>
 <table><tr><td>System:</td> <td>sw1 in Room 5</td></tr></table>
WithPeak[SW1_2]: ymw
LegendI[SW1_2]: &nbsp;In:
Colours[SW1_2]: GREEN#00eb0c,BLUE#1000ff,DARK GREEN#006600,VIOLET#ff00ff
kMG[SW1_2]: ,k,M
Target[Load]: `/bin/load secret`
MaxBytes1[Load]: 10
MaxBytes2[Load]: 20
AbsMax[Load]: 100
Title[Load]: Load
Options[Load]: gauge, nopercent
XSize[Load]: 500
Factor[Load]: 0.01
Suppress[Load]: y
Directory[Load]: hosts
"#;

    fn all() -> Vec<DescribedTarget> {
        let mut files = MemoryFiles::default();
        files.add("/etc/mrtg.cfg", CONFIG.as_bytes());
        let config = mrtg_cfg::read(b"/etc/mrtg.cfg", &mut files);
        let config = config.unwrap_or_else(|problems| panic!("{problems:?}"));
        let devices = device_names(&config);
        let targets = config.targets();
        targets
            .map(|target| described(&config, target, &devices, b"mrtg/mrtg/x.rrd"))
            .collect()
    }

    #[test]
    fn what_a_configuration_says_is_known() {
        let [interface, load] = &all()[..] else {
            panic!("two targets");
        };
        let text = |text: &str| Some(text.to_string());
        assert_eq!(
            interface,
            &DescribedTarget {
                name: "sw1_2".into(),
                series: "mrtg/mrtg/x.rrd".into(),
                device: "sw1:1161".into(),
                title: "Traffic & more".into(),
                page_top: "Traffic for 2\nSystem: sw1 in Room 5".into(),
                max_bytes: [1_250_000; 2],
                options: vec!["growright".into(), "bits".into()],
                with_peak: "ymw".into(),
                legend_i: text("In:"),
                colours: ["#00eb0c", "#1000ff", "#006600", "#ff00ff"]
                    .map(String::from)
                    .to_vec(),
                kmg: text(",k,M"),
                ..DescribedTarget::default()
            }
        );
        assert_eq!((load.device.as_str(), load.max_bytes), ("", [10, 20]));
        assert_eq!(load.abs_max, Some(100));
        assert_eq!(load.options, ["gauge", "nopercent"]);
        assert_eq!((load.x_size, load.factor), (Some(500), Some(0.01)));
        assert_eq!(
            (load.suppress.as_str(), load.directory.as_str()),
            ("y", "hosts")
        );
        for target in [interface, load] {
            assert!(!target.line().contains("secret"), "{target:?}");
        }
    }

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
