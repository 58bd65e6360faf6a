//! Names and colours of the parts of a target's page: MRTG's where the configuration has none.

use kymo_wire::targets::DescribedTarget;

use super::{Direction, TargetUnit};

/// MRTG's colours: in, out, their peaks, the relation of both.
const COLOURS: [&str; 5] = ["#00cc00", "#0000ff", "#006600", "#ff00ff", "#ef9f4f"];

/// Name of a direction in the table below a graph; `None`: the table does not have it.
pub fn direction_name(target: &DescribedTarget, direction: Direction) -> Option<&str> {
    let (legend, name) = match direction {
        Direction::In => (&target.legend_i, "In"),
        Direction::Out => (&target.legend_o, "Out"),
    };
    let name = legend.as_deref().unwrap_or(name);
    Some(name).filter(|name| !name.is_empty() && direction.is_shown(target))
}

/// Drawn values: rates in and out, their peaks, the relation of both.
pub fn legends(target: &DescribedTarget) -> [String; 5] {
    let rates = TargetUnit::of(&DescribedTarget {
        y_legend: None,
        ..target.clone()
    });
    let own = |number: usize, else_: &str| {
        let own = target.legends[number].as_deref();
        own.filter(|text| !text.is_empty())
            .unwrap_or(else_)
            .to_string()
    };
    [
        own(0, &format!("Incoming Traffic in {}", rates.axis)),
        own(1, &format!("Outgoing Traffic in {}", rates.axis)),
        own(2, "Maximal 5 Minute Incoming Traffic"),
        own(3, "Maximal 5 Minute Outgoing Traffic"),
        own(4, "Incoming of Outgoing Traffic in %"),
    ]
}

/// Their colours, `#rrggbb`.
pub fn colours(target: &DescribedTarget) -> [&str; 5] {
    let mut colours = COLOURS;
    for (colour, own) in colours.iter_mut().zip(&target.colours) {
        *colour = own;
    }
    colours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_configuration_come_before_mrtgs() {
        let plain = DescribedTarget {
            options: vec!["bits".into()],
            y_legend: Some("Traffic".into()),
            ..DescribedTarget::default()
        };
        assert_eq!(legends(&plain)[0], "Incoming Traffic in Bits per Second");
        assert_eq!(direction_name(&plain, Direction::Out), Some("Out"));
        let own = DescribedTarget {
            legends: [Some("Inlet".into()), None, None, Some(String::new()), None],
            legend_i: Some(String::new()),
            legend_o: Some("Exhaust".into()),
            colours: vec!["#010203".into()],
            options: vec!["noo".into()],
            ..DescribedTarget::default()
        };
        let [first, second, _, fourth, _] = legends(&own);
        assert_eq!(
            [first.as_str(), &second],
            ["Inlet", "Outgoing Traffic in Bytes per Second"]
        );
        assert_eq!(fourth, "Maximal 5 Minute Outgoing Traffic");
        assert_eq!(colours(&own)[..2], ["#010203", "#0000ff"]);
        let names = Direction::ALL.map(|direction| direction_name(&own, direction));
        assert_eq!(names, [None, None]);
    }
}
