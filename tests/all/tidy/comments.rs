//! Comments that a stranger has to read twice, counted by crate. The words are a thermometer: a comment that avoids them and is as
//! hard to read is no gain.

use std::collections::BTreeMap;
use std::fs;

use regex_lite::Regex;

use super::{judge, root, rust_files};

/// Comment lines that begin with a word for something said elsewhere, or with a clause in the place of a noun; those left are
/// help texts of the command line.
const BEGINNINGS: &[(&str, usize)] = &[("kymo", 5)];
/// Comment lines with a clause in the place of a noun.
const CLAUSES: &[(&str, usize)] = &[("kymo", 14)];

/// Lines of comments that a pattern finds, by crate.
fn lines(pattern: &str) -> BTreeMap<String, Vec<String>> {
    let pattern = Regex::new(pattern).expect("a pattern");
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in ["crates", "tests", "bench"] {
        let mut files = Vec::new();
        rust_files(&root().join(folder), &mut files);
        for path in files {
            let below = path.strip_prefix(root()).expect("below the root");
            let mut parts = below.iter().map(|part| part.to_string_lossy().into_owned());
            let package = match parts.next().as_deref() {
                Some("crates") => parts.next().expect("a crate"),
                part => part.unwrap_or_default().to_string(),
            };
            let text = fs::read_to_string(&path).expect("UTF-8");
            for (at, line) in text.lines().enumerate() {
                let comment = line.trim_start().strip_prefix("//");
                let comment = comment.map(|text| text.trim_start_matches(['/', '!']).trim());
                if comment.is_some_and(|text| pattern.is_match(text)) {
                    let place = format!("{}:{}", below.display(), at + 1);
                    found.entry(package.clone()).or_default().push(place);
                }
            }
        }
    }
    found
}

#[test]
fn comments_begin_with_a_noun_or_a_verb() {
    let found = lines(r"^(What|Who|Whose|Whether|That|The same|It|Its|Of|Those|Such)\b");
    judge("comments that begin with a pronoun", BEGINNINGS, &found);
}

#[test]
fn comments_name_things_by_nouns() {
    let found = lines(r"(?i)\b(what|who) (is|are|has|have|it|they|was|were|comes|does)\b");
    judge("comments with a clause for a noun", CLAUSES, &found);
}
