//! Pages of docs/reference that the program writes: the help of each command, and kymo.toml with all keys. `UPDATE_GOLDEN=1` writes
//! them again.

use std::path::Path;

use kymo_tests::commands::commands;
use kymo_tests::{golden_files, run, stdout_of};

/// Commands that are families: their own commands, from the list that the help has.
fn commands_below(command: &str, help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines
        .take_while(|line| line.starts_with("  "))
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help");
    names.map(|name| format!("{command} {name}")).collect()
}

fn help_of(command: &str) -> String {
    let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
    String::from_utf8(run(&words).stdout).expect("UTF-8")
}

fn section(command: &str, help: &str) -> String {
    format!("\n## kymo {command}\n\n```text\n{}\n```\n", help.trim_end())
}

/// Help of all commands as one page.
fn options() -> String {
    let mut page = "# Options\n\nThe help of each command, as the program prints it; do not edit: `UPDATE_GOLDEN=1 cargo test -p kymo-tests \
                    reference` writes this page again. Commands by what they are for: [commands](commands.md).\n"
        .to_string();
    for command in commands() {
        let help = help_of(&command);
        page.push_str(&section(&command, &help));
        for below in commands_below(&command, &help) {
            page.push_str(&section(&below, &help_of(&below)));
        }
    }
    page
}

fn keys() -> String {
    format!(
        "# Keys of kymo.toml\n\nAll keys with their defaults, as `kymo config` prints them; do not edit: `UPDATE_GOLDEN=1 cargo test -p \
         kymo-tests reference` writes this page again. Tables and where to read on: [kymo.toml](kymo-toml.md).\n\n```toml\n{}\n```\n",
        stdout_of(&["config"]).trim_end()
    )
}

#[test]
fn reference_pages_are_what_the_program_prints() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference");
    let pages = [("options.md", options()), ("keys.md", keys())];
    golden_files::judge(
        &folder,
        pages.map(|(name, text)| (name.to_string(), text.into_bytes())),
    );
}
