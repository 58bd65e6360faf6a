//! Colours by Okabe and Ito, which people with any common colour blindness can tell apart; darker on
//! light and lighter on dark. From the ninth line on, lines are dashed too, because colour alone would
//! not distinguish them. The page numbers its colours in the same way.

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

    /// The colours of the theme.
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
    /// Flags of ordinary events.
    pub mark: &'static str,
    /// Flags of failures.
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

/// Least contrast between a line and the paper.
const CONTRAST: f64 = 3.0;

const DASHES: [&str; 4] = ["", "6 3", "2 2", "8 2 2 2"];

impl Inks {
    /// Colour of the n-th line, from 1 on.
    pub(super) fn line(&self, n: usize) -> &'static str {
        self.lines[n.saturating_sub(1) % self.lines.len()]
    }

    /// Dashes of the n-th line; empty for a solid line.
    pub(super) fn dashes(&self, n: usize) -> &'static str {
        DASHES[n.saturating_sub(1) / self.lines.len() % DASHES.len()]
    }
}

/// Red, green and blue of `#rrggbb`; black for any other text.
fn channels(colour: &str) -> [f64; 3] {
    let digits = u32::from_str_radix(colour.trim_start_matches('#'), 16).unwrap_or(0);
    [16, 8, 0].map(|shift| f64::from(digits >> shift & 255))
}

/// Relative luminance by WCAG 2.1.
fn luminance(colour: &str) -> f64 {
    let [red, green, blue] = channels(colour).map(|channel| {
        let part = channel / 255.0;
        match part <= 0.03928 {
            true => part / 12.92,
            false => ((part + 0.055) / 1.055).powf(2.4),
        }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

fn contrast(a: &str, b: &str) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// A line's colour, made lighter or darker until its contrast to the paper suffices.
pub(super) fn seen(colour: &str, paper: &str) -> String {
    let end = if luminance(paper) > 0.4 { 0.0 } else { 255.0 };
    let mixed = |part: f64| {
        let [red, green, blue] = channels(colour).map(|each| (each + (end - each) * part).round());
        format!("#{:06x}", (red * 65_536.0 + green * 256.0 + blue) as u32)
    };
    let parts = (0..=20).map(|step| mixed(f64::from(step) / 20.0));
    let found = parts
        .into_iter()
        .find(|mixed| contrast(mixed, paper) >= CONTRAST);
    found.unwrap_or_else(|| mixed(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_others_are_made_to_be_seen() {
        for (colour, paper, expect) in [
            ("#0000ff", "#ffffff", "#0000ff"),
            ("#006600", "#ffffff", "#006600"),
            ("#ffff00", "#ffffff", "#999900"),
            ("#0000ff", "#14181f", "#4d4dff"),
            ("#000000", "#14181f", "#666666"),
            ("rubbish", "#ffffff", "#000000"),
        ] {
            assert_eq!(seen(colour, paper), expect, "{colour} {paper}");
            assert!(contrast(&seen(colour, paper), paper) >= CONTRAST);
        }
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
