//! Commands of the program, as the first screen of its help lists them.

use crate::stdout_of;

/// Column at which the names of commands begin.
const COLUMN: usize = 8;

/// Names of all commands: words behind a group's name or below it, with at least two blanks before the description.
pub fn commands() -> Vec<String> {
    let screen = stdout_of(&["--help"]);
    let listed = screen.lines().filter_map(|line| {
        let (group, rest) = line.split_at_checked(COLUMN)?;
        let (name, _) = rest.split_once("  ")?;
        let is_group = group.ends_with(' ') && !group.trim_end().contains([' ', ':']);
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase());
        (is_group && is_name).then(|| name.to_string())
    });
    let names: Vec<String> = listed.collect();
    assert!(names.len() > 10, "{screen}");
    names
}
