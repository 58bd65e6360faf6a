//! Colours and signs. Colours differ in brightness too, and none of them alone carries a meaning.

use ratatui_core::style::{Color, Modifier, Style};

/// Colours of a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Colours {
    /// None: bold and reverse alone.
    None,
    /// The terminal's own palette.
    Sixteen,
    /// 256: the palette of Okabe and Ito, which colour-blind people can tell apart.
    Many,
}

/// Letters and lines of a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Letters {
    /// ASCII alone.
    Ascii,
    /// UTF-8.
    Unicode,
}

/// Look of the screen.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    /// Colours.
    pub colours: Colours,
    /// Letters.
    pub letters: Letters,
}

const BARS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const ASCII_BARS: [&str; 9] = [" ", ".", ".", ":", ":", "=", "=", "#", "#"];

impl Palette {
    fn colour(&self, sixteen: Color, many: u8) -> Style {
        match self.colours {
            Colours::None => Style::new(),
            Colours::Sixteen => Style::new().fg(sixteen),
            Colours::Many => Style::new().fg(Color::Indexed(many)),
        }
    }

    /// Names of meters.
    pub fn name(&self) -> Style {
        self.colour(Color::Cyan, 74).add_modifier(Modifier::BOLD)
    }

    /// Lines over time.
    pub fn line(&self) -> Style {
        self.colour(Color::Blue, 32)
    }

    /// Values that are high.
    pub fn high(&self) -> Style {
        self.colour(Color::Yellow, 214).add_modifier(Modifier::BOLD)
    }

    /// Events.
    pub fn event(&self) -> Style {
        self.colour(Color::Magenta, 175)
            .add_modifier(Modifier::BOLD)
    }

    /// Text beside other text.
    pub fn quiet(&self) -> Style {
        match self.colours {
            Colours::None => Style::new(),
            Colours::Sixteen => Style::new().fg(Color::Gray),
            Colours::Many => Style::new().fg(Color::Indexed(248)),
        }
    }

    /// Heads of tables, the moment on the slider, the selected line.
    pub fn turned(&self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Bold text.
    pub fn bold(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The sign of a value between 0 and 1; a value that is not known has none.
    pub fn bar(&self, share: f64) -> &'static str {
        let bars = match self.letters {
            Letters::Unicode => &BARS,
            Letters::Ascii => &ASCII_BARS,
        };
        if share.is_nan() || share <= 0.0 {
            return match share == 0.0 {
                true => bars[1],
                false => bars[0],
            };
        }
        let level = (1..8u8).take_while(|level| f64::from(*level) < share * 8.0);
        bars[level.count() + 1]
    }

    /// The sign before a child in a tree.
    pub fn branch(&self) -> &'static str {
        match self.letters {
            Letters::Unicode => "└─ ",
            Letters::Ascii => "`- ",
        }
    }

    /// The text with letters that the terminal has.
    pub fn fit(&self, text: &str) -> String {
        let fits = |letter: char| self.letters == Letters::Unicode || letter.is_ascii();
        let letters = text.chars().map(|letter| match fits(letter) {
            true => letter,
            false => '?',
        });
        letters.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow() {
        let palette = |letters| Palette {
            colours: Colours::None,
            letters,
        };
        for (share, unicode, ascii) in [
            (f64::NAN, " ", " "),
            (0.0, "▁", "."),
            (0.1, "▁", "."),
            (0.5, "▄", ":"),
            (0.51, "▅", "="),
            (1.0, "█", "#"),
            (7.0, "█", "#"),
        ] {
            assert_eq!(palette(Letters::Unicode).bar(share), unicode, "{share}");
            assert_eq!(palette(Letters::Ascii).bar(share), ascii, "{share}");
        }
    }
}
