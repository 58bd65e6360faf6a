//! Generates docs/metrics.md from the subsystems' tables.

use std::fmt::Write as _;

use kymo_base::column::Column;
use kymo_base::field::{Field, Rule};
use kymo_kernel::source;
use kymo_kernel::subsystem::exposed::{Exposed, Family, Parts};
use kymo_kernel::subsystem::{self, Subsystem};

use crate::prometheus;

/// The text of docs/metrics.md.
pub fn metrics_md() -> String {
    let mut out = String::from(
        "# Metrics\n\nMade from the tables in `crates/kernel/src/subsystem/`; do not edit: \
         `UPDATE_GOLDEN=1 cargo test -p kymo-view` writes it again.\n\n\
         A column is named SUBSYSTEM.COLUMN in CSV and JSON. Fields are the raw numbers that are recorded; \
         how they move decides how two of them make a rate (`crates/query/src/delta.rs`). \
         In `/metrics` they have the names and units of node_exporter: seconds and bytes, but for what is named \
         `node_vmstat_` or `_sectors_`, which is as the kernel has it.\n",
    );
    for subsystem in subsystem::ALL {
        describe(&mut out, subsystem);
    }
    own(&mut out);
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
        .map(|source| {
            // The others are no files, such as statvfs.
            let is_file = ["proc/", "sys/"]
                .iter()
                .any(|top| source.path.starts_with(top));
            let root = if is_file { "/" } else { "" };
            format!("`{root}{}`", source.path.replace("{}", "*"))
        })
        .collect();
    // Writes to a String do not fail.
    let _ = write!(
        out,
        "\n## {} ({letters})\n\n{}. From {}.\n",
        subsystem.name,
        subsystem.help,
        paths.join(", ")
    );
    columns(out, "Columns", subsystem.columns);
    columns(out, "Columns of each", subsystem.detail);
    let Exposed { machine, each } = &subsystem.exposed;
    fields(out, "Fields", subsystem.globals, &[(machine, vec![])]);
    let of_each: Vec<_> = each
        .iter()
        .map(|each| {
            let labels = each.labels.iter().map(|label| label.name.to_string());
            (each.families, labels.collect())
        })
        .collect();
    fields(out, "Fields of each", subsystem.fields, &of_each);
    beyond_fields(out, &of_each);
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

/// Metric families, and the labels of their instances.
type Exposing<'a> = (&'a [Family], Vec<String>);

fn fields(out: &mut String, title: &str, fields: &[Field], exposing: &[Exposing]) {
    if fields.is_empty() {
        return;
    }
    let is_exposed = exposing.iter().any(|(families, _)| !families.is_empty());
    let (head, line) = match is_exposed {
        false => ("", ""),
        true => (" in `/metrics` |", "---|"),
    };
    let _ = write!(
        out,
        "\n### {title}\n\n| field | moves | unit | meaning |{head}\n|---|---|---|---|{line}\n"
    );
    for (at, field) in fields.iter().enumerate() {
        let _ = write!(
            out,
            "| `{}` | {} | {} | {} |",
            field.name,
            rule(field.rule),
            field.unit.symbol(),
            field.help
        );
        if is_exposed {
            let _ = write!(out, " {} |", exposed_as(at, exposing));
        }
        out.push('\n');
    }
}

/// The metrics that expose a field, with labels: the first one for each set of labels.
fn exposed_as(field: usize, exposing: &[Exposing]) -> String {
    let of_each = exposing.iter().filter_map(|(families, labels)| {
        let place = |family: &Family| family.fields().position(|at| at == field);
        let has = |family: &&Family| place(family).is_some() && family.has_fields();
        let family = families.iter().find(has)?;
        let part = match family.parts {
            Parts::Named { label, values } | Parts::Apart { label, values, .. } => values
                .get(place(family)?)
                .map(|value| format!("{label}=\"{value}\"")),
            Parts::ByInstance { label, .. } | Parts::Cpus { label } => Some(label.to_string()),
            Parts::One => None,
        };
        Some(metric(family.name, labels.iter().cloned().chain(part)))
    });
    of_each.collect::<Vec<_>>().join(", ")
}

/// Appends metrics that are not fields: counters per CPU, descriptions of instances.
fn beyond_fields(out: &mut String, exposing: &[Exposing]) {
    let mut lines = String::new();
    for (families, labels) in exposing {
        for family in *families {
            let part = match family.parts {
                Parts::Cpus { label } => Some(label.to_string()),
                _ if !family.has_fields() => None,
                _ => continue,
            };
            let name = metric(family.name, labels.iter().cloned().chain(part));
            let _ = writeln!(lines, "| {name} | {} |", family.help);
        }
    }
    if !lines.is_empty() {
        let _ = write!(
            out,
            "\n### More in `/metrics`\n\n| metric | meaning |\n|---|---|\n{lines}"
        );
    }
}

fn metric(name: &str, labels: impl Iterator<Item = String>) -> String {
    let labels: Vec<String> = labels.collect();
    match labels.is_empty() {
        true => format!("`{name}`"),
        false => format!("`{name}{{{}}}`", labels.join(",")),
    }
}

/// kymo's own metrics.
fn own(out: &mut String) {
    out.push_str(
        "\n## kymo itself\n\nOnly in `/metrics`.\n\n| metric | type | meaning |\n|---|---|---|\n",
    );
    for metric in prometheus::OWN {
        let label = match metric.label {
            "" => String::new(),
            label => format!("{{{label}}}"),
        };
        let _ = writeln!(
            out,
            "| `{}{label}` | {} | {} |",
            metric.name,
            metric.kind.word(),
            metric.help
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

    /// docs/metrics.md equals the generated text.
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
