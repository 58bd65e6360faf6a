//! Colours: Okabe and Ito's, which people with any of the usual colour blindnesses can tell apart, darker
//! on light and lighter on dark; from the ninth line on dashed too, so that colour is never all there is.
//! The page numbers its colours the same way.

/// Light or dark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Theme {
    /// For paper and light pages.
    #[default]
    Light,
    /// For dark pages.
    Dark,
}

impl Theme {
    /// Reads `light` or `dark`.
    pub fn parse(name: &str) -> Option<Theme> {
        match name {
            "light" => Some(Theme::Light),
            "dark" => Some(Theme::Dark),
            _ => None,
        }
    }

    /// Its inks.
    pub(super) fn inks(self) -> &'static Inks {
        match self {
            Theme::Light => &LIGHT,
            Theme::Dark => &DARK,
        }
    }
}

/// All colours of a theme.
pub(super) struct Inks {
    pub paper: &'static str,
    pub ink: &'static str,
    /// Axes, units, small print.
    pub muted: &'static str,
    pub grid: &'static str,
    pub frame: &'static str,
    /// Of flags of what happened.
    pub mark: &'static str,
    /// Of flags of what was wrong.
    pub alarm: &'static str,
    lines: [&'static str; 8],
}

static LIGHT: Inks = Inks {
    paper: "#ffffff",
    ink: "#1a1f29",
    muted: "#5b6472",
    grid: "#e6e8ec",
    frame: "#c3c8d0",
    mark: "#3344bb",
    alarm: "#b45309",
    lines: [
        "#2a8fd0", "#00916a", "#d55e00", "#b3578f", "#998f00", "#6b7280", "#3344bb", "#bd8200",
    ],
};

static DARK: Inks = Inks {
    paper: "#14181f",
    ink: "#e6e9ee",
    muted: "#949dab",
    grid: "#262c36",
    frame: "#434b58",
    mark: "#8f9cff",
    alarm: "#f0b429",
    lines: [
        "#56b4e9", "#2bc79a", "#f2814a", "#d68fb8", "#f0e442", "#b9c0cc", "#7f8fff", "#e69f00",
    ],
};

const DASHES: [&str; 4] = ["", "6 3", "2 2", "8 2 2 2"];

impl Inks {
    /// Colour of the n-th line, counted from one.
    pub(super) fn line(&self, n: usize) -> &'static str {
        self.lines[n.saturating_sub(1) % self.lines.len()]
    }

    /// Dashes of the n-th line; empty: none.
    pub(super) fn dashes(&self, n: usize) -> &'static str {
        DASHES[n.saturating_sub(1) / self.lines.len() % DASHES.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as WCAG 2.1 has it.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let byte = u8::from_str_radix(&colour[at..at + 2], 16).expect("hex");
            let part = f64::from(byte) / 255.0;
            match part <= 0.03928 {
                true => part / 12.92,
                false => ((part + 0.055) / 1.055).powf(2.4),
            }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn lines_and_texts_stand_out() {
        for theme in [Theme::Light, Theme::Dark] {
            let inks = theme.inks();
            for line in inks.lines {
                let contrast = contrast(line, inks.paper);
                assert!(contrast >= 3.0, "{theme:?} {line}: {contrast:.2}");
            }
            for text in [inks.ink, inks.muted, inks.mark, inks.alarm] {
                let contrast = contrast(text, inks.paper);
                assert!(contrast >= 4.5, "{theme:?} {text}: {contrast:.2}");
            }
        }
    }

    #[test]
    fn the_ninth_line_is_dashed() {
        let inks = Theme::Light.inks();
        for (n, colour, dashes) in [
            (1, "#2a8fd0", ""),
            (8, "#bd8200", ""),
            (9, "#2a8fd0", "6 3"),
            (17, "#2a8fd0", "2 2"),
            (33, "#2a8fd0", ""),
        ] {
            assert_eq!((inks.line(n), inks.dashes(n)), (colour, dashes), "{n}");
        }
    }
}
