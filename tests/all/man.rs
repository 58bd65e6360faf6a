//! dist/*.1, dist/kymo.bash, dist/_kymo and dist/kymo.fish: manual pages and completions, as `kymo man` and `kymo completions`
//! write them. `UPDATE_GOLDEN=1` writes them again; the diff goes with the commit.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kymo_tests::commands::commands;
use kymo_tests::{Scratch, golden_files, kymo, run, stdout_of};

fn dist() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist")
}

/// Texts of a folder's manual pages, by name.
fn pages(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let pages = paths.filter(|path| path.extension().is_some_and(|end| end == "1"));
    pages
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy();
            (name.into(), fs::read_to_string(&path).expect("UTF-8"))
        })
        .collect()
}

/// Manual pages that the program writes.
fn written(name: &str) -> BTreeMap<String, String> {
    let scratch = Scratch::new(name);
    let folder = scratch.text("man1");
    stdout_of(&["man", &folder]);
    pages(&scratch.path("man1"))
}

/// Words of a help text that begin as switches do, at the margin of its lists.
fn switches(help: &str) -> Vec<&str> {
    let lines = help
        .lines()
        .filter(|line| line.starts_with("  "))
        .map(str::trim_start);
    let names = lines.filter(|line| line.starts_with('-'));
    let words = names.flat_map(|line| {
        line.split([' ', ',', '[', '<'])
            .take_while(|word| word.is_empty() || word.starts_with('-'))
    });
    words
        .filter(|word| word.len() > 1 && *word != "--")
        .collect()
}

#[test]
fn dist_has_what_the_program_writes() {
    let mut expected = written("man-pages");
    for (shell, name) in [
        ("bash", "kymo.bash"),
        ("zsh", "_kymo"),
        ("fish", "kymo.fish"),
    ] {
        expected.insert(name.into(), stdout_of(&["completions", shell]));
    }
    let (dist, mut removed) = (dist(), Vec::new());
    for name in pages(&dist).into_keys() {
        if !expected.contains_key(&name) {
            removed.push(name);
        }
    }
    if golden_files::is_update() {
        for name in removed.drain(..) {
            fs::remove_file(dist.join(name)).expect("a page of dist");
        }
    }
    assert!(
        removed.is_empty(),
        "the program writes these no more: {removed:?}"
    );
    let expected = expected.into_iter();
    golden_files::judge(
        &dist,
        expected.map(|(name, text)| (name, text.into_bytes())),
    );
}

#[test]
fn each_command_has_a_page_with_its_switches() {
    let pages = written("man-switches");
    let plain = |name: &str| {
        let page = pages.get(name);
        let page = page.unwrap_or_else(|| panic!("there is no {name}"));
        page.replace("\\-", "-")
    };
    for switch in switches(&stdout_of(&["help", "switches"])) {
        assert!(
            plain("kymo.1").contains(switch),
            "{switch} is not in kymo.1"
        );
    }
    for command in commands() {
        let page = plain(&format!("kymo-{command}.1"));
        assert!(page.contains("EXAMPLES"), "{command}");
        assert!(
            plain("kymo.1").contains(&format!("kymo-{command}(1)")),
            "{command}"
        );
        let help = run(&[&command, "--help"]).stdout;
        let help = String::from_utf8_lossy(&help);
        for switch in switches(&help).iter().filter(|_| command != "collectl") {
            assert!(page.contains(switch), "{switch} is not in kymo-{command}.1");
        }
    }
    assert!(plain("kymo-series-ls.1").contains("--open"));
    assert!(!pages.contains_key("kymo-hub.1"), "a hidden command");
}

/// groff names wrong requests and unknown characters.
#[test]
fn pages_are_sound_for_groff() {
    let found = Command::new("groff").arg("--version").output();
    if found.is_err() {
        return kymo_tests::machine::skipped("groff is missing");
    }
    let scratch = Scratch::new("man-groff");
    let folder = scratch.text("man1");
    stdout_of(&["man", &folder]);
    for name in pages(&scratch.path("man1")).into_keys() {
        let output = Command::new("groff")
            .args(["-man", "-Tutf8", "-ww", "-z"])
            .arg(scratch.path("man1").join(&name))
            .output()
            .expect("groff");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{name}: {said}");
    }
}

#[test]
fn bash_completes_switches_and_commands() {
    let script = dist().join("kymo.bash");
    for (line, expected) in [
        ("kymo --proc", "--procfilt --procopts --procstate"),
        ("kymo --vers", "--version"),
        ("kymo exp", "export"),
        ("kymo export --f", "--from"),
        ("kymo play --showc", "--showcolheaders"),
        ("kymo series l", "ls"),
        ("kymo series ls --o", "--open"),
        ("kymo help subs", "subsystems"),
        ("kymo help ser", "series serve"),
        ("kymo completions z", "zsh"),
        ("kymo record --status a", "always auto"),
        ("kymo kee", ""),
        ("kymo record --seal", ""),
        ("collectl --tcp", "--tcpfilt"),
        ("collectl --vers", "--version"),
        ("collectl exp", ""),
    ] {
        let folder = kymo().parent().expect("its folder").display().to_string();
        let asked = format!(
            "ln -sf {folder}/kymo \"$T/collectl\"; PATH=$T:{folder}:$PATH; source {}; \
             COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _${{COMP_WORDS[0]}} ${{COMP_WORDS[0]}} \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             echo \"${{COMPREPLY[*]}}\"",
            script.display()
        );
        let scratch = Scratch::new("completed");
        let output = Command::new("bash")
            .args(["-c", &asked])
            .env("T", scratch.path(""))
            .output()
            .expect("bash");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut words: Vec<&str> = said.split_whitespace().collect();
        words.sort_unstable();
        assert_eq!(
            (
                words.join(" ").as_str(),
                &*String::from_utf8_lossy(&output.stderr)
            ),
            (expected, ""),
            "{line}"
        );
    }
}

/// The scripts of shells that are not installed here are looked at as texts.
#[test]
fn other_shells_have_each_command() {
    for (shell, begin) in [("zsh", "#compdef kymo"), ("fish", "# Print an optspec")] {
        let script = stdout_of(&["completions", shell]);
        assert!(script.starts_with(begin), "{shell}: {script:.200}");
        for word in commands()
            .iter()
            .map(String::as_str)
            .chain(["tail", "subsystems", "procfilt"])
        {
            assert!(script.contains(word), "{shell} does not complete {word}");
        }
        for hidden in ["poll-runner", "seal-bytes"] {
            assert!(!script.contains(hidden), "{shell} completes {hidden}");
        }
        let check = match shell {
            "zsh" => Command::new("zsh").args(["-n", "-c", &script]).output(),
            _ => Command::new("fish")
                .args(["--no-execute", "-c", &script])
                .output(),
        };
        if let Ok(check) = check {
            assert!(check.status.success(), "{shell}: {check:?}");
        }
    }
    let wrong = run(&["completions", "tcsh"]);
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(2));
    assert_eq!(
        said,
        "kymo: cannot use <SHELL> tcsh: it takes bash, zsh, fish\n"
    );
}
