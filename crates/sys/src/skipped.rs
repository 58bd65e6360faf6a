//! Tests that cannot run here say so in a file, since a passing test's output is not shown. `tests/run` prints the
//! file last, and fails in CI when it has a line. The program itself never calls this.

use std::io::Write as _;

/// Notes that this thread's test is skipped, and why: a line in the file named by `KYMO_SKIPS`, else on stderr.
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {why}", thread.name().unwrap_or("a test"));
    let noted = match std::env::var_os("KYMO_SKIPS") {
        Some(path) => append(path.as_ref(), &format!("{line}\n")),
        None => {
            crate::talk::say(line);
            Ok(())
        }
    };
    noted.unwrap_or_else(|error| panic!("cannot note that a test is skipped: {error}"));
}

/// Notes that this thread's test is skipped since something cannot be fetched. CI does not fail for such a line: the servers that
/// have it are not the project's.
pub fn not_fetched(what: &str) {
    skipped(&format!("{what} cannot be fetched"));
}

fn append(path: &std::path::Path, line: &str) -> std::io::Result<()> {
    let mut options = std::fs::File::options();
    // One write, so that lines of several test programs do not mix.
    let mut file = options.append(true).create(true).open(path)?;
    file.write_all(line.as_bytes())
}
