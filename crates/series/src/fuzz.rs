//! Entry points for fuzzing.

use crate::{Matcher, Op, Selector, names};

/// Parses any text: a valid selector reads back as itself, and `=~` and `!~` with a valid expression are
/// opposites.
pub fn fuzz_selector(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    if let Ok(selector) = Selector::parse(text) {
        let shown = selector.to_string();
        assert_eq!(
            Selector::parse(&shown).as_ref(),
            Ok(&selector),
            "{shown} reads back as another selector"
        );
    }
    let (expression, value) = text.split_once('\0').unwrap_or((text, ""));
    if let Ok(matcher) = Matcher::new("a", Op::Matches, expression) {
        let not = Matcher::new("a", Op::NotMatches, expression);
        let is_opposite =
            not.is_ok_and(|not| not.matches(value.as_bytes()) != matcher.matches(value.as_bytes()));
        assert!(is_opposite, "=~ and !~ are no opposites");
    }
}

/// Names of all sources are label sets that read back, whatever text a source sends.
pub fn fuzz_names(input: &[u8]) {
    let mut parts = input.split(|&byte| byte == 0);
    let mut part = || parts.next().unwrap_or_default();
    let collectd = names::Collectd {
        host: part(),
        plugin: part(),
        plugin_instance: part(),
        type_name: part(),
        type_instance: part(),
    };
    let (source, name) = (part(), part());
    let tags = [(part(), part()), (part(), part())];
    let sets = [
        names::collectd(&collectd, source, true),
        names::rrd(name, source),
        names::target(
            &names::Target {
                name,
                device: part(),
                title: source,
                interface: Some((part(), part())),
            },
            names::Direction::In,
            true,
        ),
        names::program(name, source, part(), &tags),
        names::postgres(source, "xact_commit", Some(("database", name))),
        names::statsd(name, "_bucket", Some("0.5"), &tags),
        names::graphite(name, &tags),
    ];
    for set in sets.into_iter().flatten() {
        let text = set.text();
        assert!(std::str::from_utf8(text).is_ok(), "a name is not UTF-8");
        let again = crate::Labels::parse(text);
        assert_eq!(again.as_ref(), Ok(&set), "a name reads back as another one");
        let metric = names::metric_of(&set);
        assert!(names::is_metric(&metric), "{metric:?} is no metric's name");
    }
}
