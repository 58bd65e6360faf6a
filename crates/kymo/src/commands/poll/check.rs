//! `--debug`: prints parts of a configuration on stderr, as MRTG does: `--word: message`.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use kymo_base::name::DisplayName;
use kymo_sys::talk;
use kymo_wire::mrtg_cfg::{Config, Files, Problems, Secrets, Target, Trace, read_traced};

/// Values of `--debug` and `--secrets`.
#[derive(Clone, Debug)]
pub(super) struct Debugging {
    /// `cfg`: each target; `tarp` and `snpo`: how its text is read, and its question to the device. Other
    /// words show nothing.
    pub words: Vec<String>,
    pub secrets: Secrets,
}

impl Debugging {
    pub(super) fn new(words: &[String], shows_secrets: bool) -> Debugging {
        Debugging {
            words: words.to_vec(),
            secrets: match shows_secrets {
                true => Secrets::Shown,
                false => Secrets::Masked,
            },
        }
    }

    fn has(&self, word: &str) -> bool {
        self.words.iter().any(|known| known == word)
    }

    /// Reads a configuration and shows the requested parts.
    pub(super) fn run(&self, file: &Path, files: &mut dyn Files) -> Result<Config, Problems> {
        let name = file.as_os_str().as_bytes();
        let mut say = |word: &str, message: &[u8]| {
            if self.has(word) {
                show(word, message);
            }
        };
        let mut trace = match self.has("tarp") || self.has("snpo") {
            true => Trace::On(self.secrets, &mut say),
            false => Trace::Off,
        };
        let config = read_traced(name, files, &mut trace)?;
        if self.has("cfg") {
            config.targets().for_each(|target| self.show_target(target));
        }
        Ok(config)
    }

    fn show_target(&self, target: Target) {
        let mut lines = Vec::new();
        target.put_dump(self.secrets, &mut lines);
        for line in lines.split(|byte| *byte == b'\n') {
            if !line.is_empty() {
                show("cfg", line);
            }
        }
    }
}

/// Prints a message. Messages come from outside, so bytes that a terminal would obey are escaped. Line
/// ends are MRTG's.
fn show(word: &str, message: &[u8]) {
    let mut text = format!("--{word}: ");
    for (at, line) in message.split(|byte| *byte == b'\n').enumerate() {
        if at > 0 {
            text.push('\n');
        }
        text.push_str(&DisplayName(line).to_string());
    }
    talk::say(text);
}
