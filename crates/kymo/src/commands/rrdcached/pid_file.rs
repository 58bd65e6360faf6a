//! The pid file: made before the fork, so that two daemons with the same command line cannot both start;
//! removed at the end.

use kymo_base::errno::strerror;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use kymo_sys::own_name::OwnName;
use kymo_sys::sure_folder::SureFolder;
use kymo_sys::{machine, privilege};

/// The pid file of this process.
pub(super) struct PidFile {
    name: OwnName,
    file: File,
}

impl PidFile {
    /// Makes the file, or takes over that of a daemon that has ended. Reports obstacles.
    pub(super) fn take(path: &Path, complain: &mut dyn FnMut(&str)) -> Result<PidFile, ()> {
        if let Some(folder) = path.parent()
            && let Err(error) = make_folder(folder)
        {
            let folder = folder.display();
            complain(&format!(
                "Failed to create pidfile directory '{folder}': {}",
                strerror(&error)
            ));
            return Err(());
        }
        let made = options()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(path);
        let file = match made {
            Ok(file) => file,
            Err(error) => {
                complain(&cannot("create", path, &error));
                take_over(path, complain)?
            }
        };
        let name = OwnName::of(path).map_err(|error| complain(&cannot("find", path, &error)))?;
        Ok(PidFile { name, file })
    }

    /// Writes the number of this process into the file.
    pub(super) fn write(&mut self) -> io::Result<()> {
        writeln!(self.file, "{}", std::process::id())
    }

    /// Removes the file, if it is still this process's.
    pub(super) fn remove(&self) {
        // Another user's folder may forbid this; then the next start takes the file over.
        let _ = self.name.remove();
    }
}

/// Options for opening: never through a link, which somebody else may have put there.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(machine::PLAIN_FILE);
    options
}

fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    SureFolder::make(folder, 0o777, &[]).map(drop)
}

fn cannot(verb: &str, path: &Path, error: &io::Error) -> String {
    let path = path.display();
    format!(
        "rrdcached: can't {verb} pid file '{path}' ({})",
        strerror(error)
    )
}

fn take_over(path: &Path, complain: &mut dyn FnMut(&str)) -> Result<File, ()> {
    let mut file = match options().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) => {
            complain(&cannot("open", path, &error));
            complain("FATAL: Fail to create/open PID file ");
            return Err(());
        }
    };
    let mut text = [0; 16];
    let length = file.read(&mut text).unwrap_or(0);
    if length == 0 {
        complain("FATAL: Empty PID file exist");
        return Err(());
    }
    let Some(pid) = number(&text[..length]) else {
        complain("FATAL: PID file is corrupted");
        return Err(());
    };
    if pid != std::process::id() && privilege::is_alive(pid) {
        complain(&format!(
            "FATAL: Another rrdcached daemon is running?? (pid {pid})"
        ));
        return Err(());
    }
    if file.rewind().and_then(|()| file.set_len(0)).is_err() {
        complain(&format!(
            "FATAL: Failed to truncate stale PID file. (pid {pid})"
        ));
        return Err(());
    }
    complain(&format!(
        "rrdcached: removed stale PID file (no rrdcached on pid {pid})"
    ));
    complain("rrdcached: starting normally.");
    Ok(file)
}

fn number(text: &[u8]) -> Option<u32> {
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number: u32 = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
    (number > 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(path: &Path) -> (bool, String) {
        let mut lines = Vec::new();
        let taken = PidFile::take(path, &mut |line| lines.push(line.to_string()));
        (taken.is_ok(), lines.join("\n"))
    }

    #[test]
    fn one_daemon_has_it() {
        let folder = std::env::temp_dir().join(format!("kymo-pid-{}", std::process::id()));
        let path = folder.join("sub/d.pid");
        assert_eq!(taken(&path), (true, String::new()));
        let exists = format!(
            "rrdcached: can't create pid file '{}' (File exists)\n",
            path.display()
        );
        for (content, goes, end) in [
            ("", false, "FATAL: Empty PID file exist".to_string()),
            ("x", false, "FATAL: PID file is corrupted".to_string()),
            ("-4", false, "FATAL: PID file is corrupted".to_string()),
            (
                "1\n",
                !privilege::is_alive(1),
                "FATAL: Another rrdcached daemon is running?? (pid 1)".to_string(),
            ),
            (
                "2147483646\n",
                true,
                "rrdcached: removed stale PID file (no rrdcached on pid 2147483646)\n\
                 rrdcached: starting normally."
                    .to_string(),
            ),
        ] {
            std::fs::write(&path, content).unwrap();
            let (went, message) = taken(&path);
            assert_eq!(went, goes, "{content}");
            if !goes || content.len() > 3 {
                assert_eq!(message, format!("{exists}{end}"));
            }
        }
        let link = folder.join("link.pid");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(!taken(&link).0, "a link was followed");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
