//! docs/metrics.md, made of the subsystems' tables.

use std::fmt::Write as _;

use kymo_base::column::Column;
use kymo_base::field::{Field, Rule};
use kymo_kernel::source;
use kymo_kernel::subsystem::{self, Subsystem};

/// The text of docs/metrics.md.
pub fn metrics_md() -> String {
    let mut out = String::from(
        "# Metrics\n\nMade from the tables in `crates/kernel/src/subsystem/`; do not edit: \
         `UPDATE_GOLDEN=1 cargo test -p kymo-view` writes it anew.\n\n\
         A column is named SUBSYSTEM.COLUMN in CSV and JSON. Fields are the raw numbers that are recorded; \
         how they move decides how two of them make a rate (`crates/query/src/delta.rs`).\n",
    );
    for subsystem in subsystem::ALL {
        describe(&mut out, subsystem);
    }
    out
}

fn describe(out: &mut String, subsystem: &Subsystem) {
    let letter = subsystem.letter;
    let letters = match (subsystem.columns.is_empty(), subsystem.detail.is_empty()) {
        (false, false) => format!("`{letter}`, each: `{}`", letter.to_ascii_uppercase()),
        (false, true) => format!("`{letter}`"),
        _ => format!("`{}`", letter.to_ascii_uppercase()),
    };
    let paths = subsystem
        .sources
        .iter()
        .filter_map(|&kind| source::of(kind));
    let paths: Vec<String> = paths
        .map(|source| format!("`/{}`", source.path.replace("{}", "*")))
        .collect();
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "\n## {} ({letters})\n\n{}. From {}.\n",
        subsystem.name,
        subsystem.help,
        paths.join(", ")
    );
    columns(out, "Columns", subsystem.columns);
    columns(out, "Columns of each", subsystem.detail);
    fields(out, "Fields", subsystem.globals);
    fields(out, "Fields of each", subsystem.fields);
}

fn columns(out: &mut String, title: &str, columns: &[Column]) {
    if columns.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "\n### {title}\n\n| column | unit | meaning |\n|---|---|---|\n"
    );
    for column in columns {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} |",
            column.name,
            column.unit.symbol(),
            column.help
        );
    }
}

fn fields(out: &mut String, title: &str, fields: &[Field]) {
    if fields.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "\n### {title}\n\n| field | moves | unit | meaning |\n|---|---|---|---|\n"
    );
    for field in fields {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            field.name,
            rule(field.rule),
            field.unit.symbol(),
            field.help
        );
    }
}

fn rule(rule: Rule) -> &'static str {
    match rule {
        Rule::Gauge => "both ways",
        Rule::Counter64 => "up",
        Rule::Counter32 => "up, wraps at 2^32",
        Rule::CounterMayStepBack => "up, may step back",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/metrics.md is what the tables say.
    #[test]
    fn the_document_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"))
                .expect("docs");
            std::fs::write(path, metrics_md()).expect("docs/metrics.md");
        }
        let present = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            present == metrics_md(),
            "docs/metrics.md is stale: run with UPDATE_GOLDEN=1"
        );
    }
}
