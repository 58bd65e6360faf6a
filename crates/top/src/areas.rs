//! Places of the last picture, for the mouse and for the keys that move by lines.

use ratatui_core::layout::Rect;

use crate::lines::Identity;

/// Places of a picture.
#[derive(Clone, Debug, Default)]
pub struct Areas {
    /// Number of lines of the table, shown or not.
    pub lines: usize,
    /// The slider, and its first and last moment.
    pub slider: Option<(Rect, i64, i64)>,
    /// The head of the table, and its text.
    pub head: Option<(Rect, String)>,
    /// The lines of the table.
    pub table: Option<Rect>,
}

/// A picture's effect on the screen.
#[derive(Clone, Debug, Default)]
pub struct Drawn {
    /// Places.
    pub areas: Areas,
    /// Position of the selected line.
    pub cursor: usize,
    /// First line that is shown.
    pub top: usize,
    /// Lines that fit.
    pub page: usize,
    /// First line of the help or the details.
    pub scroll: usize,
    /// The line at the cursor.
    pub selected: Identity,
}

impl Areas {
    /// The moment at a place of the slider.
    pub fn moment(&self, x: u16, y: u16) -> Option<i64> {
        let (area, from_ns, thru_ns) = self.slider?;
        if !holds(area, x, y) {
            return None;
        }
        let cell_ns = (thru_ns - from_ns) / i64::from(area.width.max(1));
        Some(from_ns + cell_ns * (i64::from(x - area.x) + 1))
    }

    /// The word at a place of the head.
    pub fn word(&self, x: u16, y: u16) -> Option<String> {
        let (area, text) = self.head.as_ref()?;
        if !holds(*area, x, y) {
            return None;
        }
        let at = usize::from(x - area.x);
        // Columns are aligned right: blanks belong to the word behind them.
        let rest = text.get(at..)?;
        let start = match rest.starts_with(' ') {
            true => at + rest.len() - rest.trim_start().len(),
            false => text[..at].rfind(' ').map_or(0, |blank| blank + 1),
        };
        let word = text[start..].split(' ').next()?;
        Some(word.to_string())
    }

    /// The line of the table at a height, counted from the first that is shown.
    pub fn line(&self, y: u16) -> Option<usize> {
        let area = self.table?;
        let line = y.checked_sub(area.y).filter(|line| *line < area.height)?;
        Some(usize::from(line))
    }
}

fn holds(area: Rect, x: u16, y: u16) -> bool {
    (area.x..area.x + area.width).contains(&x) && (area.y..area.y + area.height).contains(&y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found() {
        let areas = Areas {
            lines: 9,
            slider: Some((Rect::new(2, 1, 10, 1), 0, 100)),
            head: Some((Rect::new(0, 3, 20, 1), "    PID  User   RSS".into())),
            table: Some(Rect::new(0, 4, 20, 3)),
        };
        for (x, y, expect) in [
            (2, 1, Some(10)),
            (11, 1, Some(100)),
            (12, 1, None),
            (2, 2, None),
        ] {
            assert_eq!(areas.moment(x, y), expect, "{x} {y}");
        }
        for (x, expect) in [(0, "PID"), (6, "PID"), (8, "User"), (17, "RSS")] {
            assert_eq!(areas.word(x, 3).as_deref(), Some(expect), "{x}");
        }
        for (y, expect) in [(3, None), (4, Some(0)), (6, Some(2)), (7, None)] {
            assert_eq!(areas.line(y), expect, "{y}");
        }
    }
}
