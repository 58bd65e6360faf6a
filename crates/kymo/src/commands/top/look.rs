//! Colours, letters and size by the environment.

use kymo_top::palette::{Colours, Letters, Palette};

/// The look that the environment asks for.
pub(super) fn palette() -> Palette {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    Palette {
        colours: colours(variable),
        letters: letters(variable),
    }
}

fn colours(variable: impl Fn(&str) -> String) -> Colours {
    let term = variable("TERM");
    let has_many = term.contains("256color") || !variable("COLORTERM").is_empty();
    match () {
        () if !variable("NO_COLOR").is_empty() || term == "dumb" => Colours::None,
        () if has_many => Colours::Many,
        () => Colours::Sixteen,
    }
}

/// The first of these variables that is set has the locale.
fn letters(variable: impl Fn(&str) -> String) -> Letters {
    let locales = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable);
    let locale = locales.iter().find(|locale| !locale.is_empty());
    let is_utf8 = locale.is_some_and(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    });
    match is_utf8 {
        true => Letters::Unicode,
        false => Letters::Ascii,
    }
}

/// COLUMNS and LINES, where they are set.
pub(super) fn size(usual: (u16, u16), most: u16) -> (u16, u16) {
    let number = |name: &str, usual: u16| {
        let number = std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u16>().ok());
        number
            .filter(|number| *number > 0)
            .unwrap_or(usual)
            .min(most)
    };
    (number("COLUMNS", usual.0), number("LINES", usual.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_chooses() {
        for (set, colours_, letters_) in [
            (vec![], Colours::Sixteen, Letters::Ascii),
            (
                vec![("TERM", "xterm-256color"), ("LANG", "C.UTF-8")],
                Colours::Many,
                Letters::Unicode,
            ),
            (
                vec![("COLORTERM", "truecolor"), ("NO_COLOR", "1")],
                Colours::None,
                Letters::Ascii,
            ),
            (
                vec![("LC_ALL", "C"), ("LANG", "de_DE.utf8")],
                Colours::Sixteen,
                Letters::Ascii,
            ),
            (
                vec![("LC_CTYPE", "de_DE.utf8"), ("TERM", "dumb")],
                Colours::None,
                Letters::Unicode,
            ),
        ] {
            let variable = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map_or_else(String::new, |(_, value)| value.to_string())
            };
            assert_eq!(
                (colours(variable), letters(variable)),
                (colours_, letters_),
                "{set:?}"
            );
        }
    }
}
