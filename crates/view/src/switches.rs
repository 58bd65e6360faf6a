//! Effects of collectl's switches for single subsystems (`--dskopts`, `--netopts`, `--memopts`, `--cpuopts`, `--slabopts`, the
//! filters) on the options.

use kymo_kernel::subsystem;

use crate::filters::{Names, Renames, Spelling};
use crate::layouts::{self, Layout, Table};
use crate::options::Options;

/// Least width of an interface's name, as in collectl.
const NAME_WIDTH: usize = 5;
/// Largest width of an interface's name.
const NAME_WIDTH_MAX: usize = 99;

/// A filter: its switch, the letter of its subsystem, and the meaning of its words.
const FILTERS: &[(&str, char, Spelling)] = &[
    ("--cpufilt", 'c', Spelling::Numbers),
    ("--dskfilt", 'd', Spelling::Patterns),
    ("--netfilt", 'n', Spelling::Patterns),
    ("--intfilt", 'j', Spelling::Patterns),
    ("--slabfilt", 'y', Spelling::Starts),
];

impl Options {
    /// Sets a filter by the name of its switch.
    pub fn set_filter(&mut self, switch: &str, text: &str) -> Result<(), String> {
        let known = FILTERS.iter().find(|(name, ..)| *name == switch);
        let &(_, letter, words) =
            known.ok_or_else(|| format!("cannot use {switch}: no such filter"))?;
        self.filters.add(letter, Names::parse(switch, text, words)?);
        Ok(())
    }

    /// Sets `--dskremap`.
    pub fn set_disk_names(&mut self, text: &str) -> Result<(), String> {
        self.filters.rename(Renames::parse("--dskremap", text)?);
        Ok(())
    }

    /// `--iosize`: shows sizes of I/Os and packets beside their counts.
    pub fn set_sizes(&mut self) {
        self.layouts
            .replace('d', Table::Brief, &layouts::DISK_SIZES);
        self.layouts.replace('n', Table::Brief, &layouts::NET_SIZES);
    }

    /// Sets the letters of `--cpuopts`.
    pub fn set_cpu(&mut self, letters: &str) -> Result<(), String> {
        for letter in letters.chars() {
            match letter {
                'z' => self.hidden.idle_cpus = true,
                _ => return Err(not_taken("--cpuopts", letter, "z")),
            }
        }
        Ok(())
    }

    /// Sets the letters of `--dskopts`.
    pub fn set_disk(&mut self, letters: &str) -> Result<(), String> {
        for letter in letters.chars() {
            match letter {
                'f' => self
                    .layouts
                    .replace('d', Table::Detail, &layouts::DISK_FRACTIONS),
                'i' => self
                    .layouts
                    .replace('d', Table::Brief, &layouts::DISK_SIZES),
                // Disks that were idle since boot have no columns anyway.
                'o' => {}
                'z' => self.hidden.idle_disks = true,
                _ => return Err(not_taken("--dskopts", letter, "f i o z")),
            }
        }
        Ok(())
    }

    /// Sets the letters of `--netopts`; a width follows `w`.
    pub fn set_net(&mut self, letters: &str) -> Result<(), String> {
        let bare = letters.trim_end_matches(|c: char| c.is_ascii_digit());
        let width = &letters[bare.len()..];
        if bare.ends_with('w') || !width.is_empty() {
            self.set_name_width(letters, bare, width)?;
        }
        for letter in bare.trim_end_matches('w').chars() {
            match letter {
                'e' => self.show_net_errors(),
                'E' => self.errors_only = true,
                'i' => self.layouts.replace('n', Table::Brief, &layouts::NET_SIZES),
                'o' => {}
                _ => return Err(not_taken("--netopts", letter, "e E i o wN")),
            }
        }
        Ok(())
    }

    fn set_name_width(&mut self, letters: &str, bare: &str, width: &str) -> Result<(), String> {
        let wrong = || {
            format!(
                "cannot use --netopts {letters}: w takes a width from {NAME_WIDTH} to {NAME_WIDTH_MAX}"
            )
        };
        let width: usize = width.parse().map_err(|_| wrong())?;
        if !bare.ends_with('w') || !(NAME_WIDTH..=NAME_WIDTH_MAX).contains(&width) {
            return Err(wrong());
        }
        let Some(net) = subsystem::of('n') else {
            return Ok(());
        };
        let mut layout = self.layouts.of(net, Table::Detail);
        let more = " ".repeat(width.saturating_sub(NAME_WIDTH));
        for head in &mut layout.heads {
            *head = head.replace("   Name ", &format!("   {more}Name "));
        }
        layout.row = layout
            .row
            .replace("  {name:6s}", &format!("  {{name:{}s}}", width + 1));
        self.layouts.replace('n', Table::Detail, layout);
        Ok(())
    }

    fn show_net_errors(&mut self) {
        self.layouts
            .replace('n', Table::Verbose, &layouts::NET_ERRORS);
        self.layouts
            .replace('n', Table::Detail, &layouts::NET_ERRORS_EACH);
        let Some(net) = subsystem::of('n') else {
            return;
        };
        let brief = self.layouts.of(net, Table::Brief);
        self.layouts.replace('n', Table::Brief, with_errors(brief));
    }

    /// Sets the letters of `--memopts`.
    pub fn set_memory(&mut self, letters: &str) -> Result<(), String> {
        if letters.contains('R') && letters.len() > 1 {
            return Err(format!("cannot use --memopts {letters}: R is used alone"));
        }
        for letter in letters.chars() {
            match letter {
                'R' => {
                    self.changes = true;
                    self.layouts
                        .replace('m', Table::Brief, &layouts::MEMORY_CHANGES);
                    self.layouts
                        .replace('m', Table::Verbose, &layouts::MEMORY_CHANGES_ALL);
                }
                'P' | 'V' => self.wants_verbose = true,
                'p' | 's' => {
                    return Err(format!(
                        "cannot use --memopts {letter}: kernels have no such counters a zone since 4.8"
                    ));
                }
                _ => return Err(not_taken("--memopts", letter, "R P V")),
            }
        }
        match (letters.contains('P'), letters.contains('V')) {
            (true, false) => self
                .layouts
                .replace('m', Table::Verbose, &layouts::MEMORY_PHYSICAL),
            (false, true) => self
                .layouts
                .replace('m', Table::Verbose, &layouts::MEMORY_VIRTUAL),
            _ => {}
        }
        Ok(())
    }

    /// Sets the letters of `--slabopts`.
    pub fn set_slabs(&mut self, letters: &str) -> Result<(), String> {
        for letter in letters.chars() {
            match letter {
                's' => self.hidden.empty_slabs = true,
                'S' => self.hidden.still_slabs = true,
                _ => return Err(not_taken("--slabopts", letter, "s S")),
            }
        }
        Ok(())
    }
}

/// The brief row of `-sn` with a column of errors.
fn with_errors(mut brief: Layout) -> Layout {
    brief.title = brief.title.replace("Network", "---Network---");
    if let Some(head) = brief.heads.last_mut() {
        head.push_str("Error ");
    }
    brief.row.push_str("{trouble:5c} ");
    brief
}

fn not_taken(switch: &str, letter: char, taken: &str) -> String {
    format!(
        "cannot use {switch} {}: it takes {taken}",
        letter.escape_debug()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_widths() {
        let set = |switch: &str, letters: &str| {
            let mut options = Options::new("n").expect("sound");
            match switch {
                "net" => options.set_net(letters),
                "disk" => options.set_disk(letters),
                "cpu" => options.set_cpu(letters),
                "slabs" => options.set_slabs(letters),
                _ => options.set_memory(letters),
            }
        };
        for (switch, letters, taken) in [
            ("net", "eEiow10", true),
            ("net", "w", false),
            ("net", "w4", false),
            ("net", "w100", false),
            ("net", "10", false),
            ("net", "x", false),
            ("disk", "fioz", true),
            ("disk", "x", false),
            ("cpu", "z", true),
            ("cpu", "f", false),
            ("memory", "R", true),
            ("memory", "RP", false),
            ("memory", "PV", true),
            ("memory", "p", false),
            ("slabs", "sS", true),
            ("slabs", "z", false),
        ] {
            let done = set(switch, letters);
            assert_eq!(done.is_ok(), taken, "{switch} {letters}");
            if let Err(error) = done {
                assert!(error.starts_with("cannot use --"), "{error}");
            }
        }
    }

    /// `RowText` silently skips a place with an unknown column.
    #[test]
    fn every_place_has_its_column() {
        for (letter, lines) in [
            ('d', &layouts::DISK_SIZES),
            ('d', &layouts::DISK_FRACTIONS),
            ('n', &layouts::NET_SIZES),
            ('n', &layouts::NET_ERRORS),
            ('n', &layouts::NET_ERRORS_EACH),
            ('m', &layouts::MEMORY_CHANGES),
            ('m', &layouts::MEMORY_CHANGES_ALL),
            ('m', &layouts::MEMORY_PHYSICAL),
            ('m', &layouts::MEMORY_VIRTUAL),
        ] {
            let of = subsystem::of(letter).expect("a subsystem");
            let row = with_errors(Layout::from(lines)).row;
            let row = if letter == 'n' {
                row.as_str()
            } else {
                lines.row
            };
            for place in row.split('{').skip(1) {
                let name = place.split(':').next().unwrap_or_default();
                let known = ["name", "branch", "number"].contains(&name)
                    || of.columns.iter().chain(of.detail).any(|c| c.name == name);
                assert!(known, "{letter}: {name}");
            }
        }
    }
}
