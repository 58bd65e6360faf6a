//! The fuzzed functions: each accepts any bytes and must neither panic nor show a wrong
//! text. cargo-fuzz and the timed runner call the same functions.

#![forbid(unsafe_code)]

mod views;

use kymo_base::context::Context;
use kymo_base::template::{Grammar, derive};
use kymo_base::text::Text;
use kymo_base::track::{Track, Why};
use kymo_base::track_writer::TrackWriter;
use kymo_base::words::Words;
use kymo_kernel::{source, subsystem};
use kymo_query::sheet::{Of, Pick, id};

/// A function under fuzz and its name.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("template", template),
    ("track_written", track_written),
    ("track_hostile", track_hostile),
    ("layouts", layouts),
    ("block", kymo_recording::fuzz::fuzz_block),
    ("tail", kymo_recording::fuzz::fuzz_tail),
    ("collectl", kymo_recording::collectl::fuzz_collectl),
    ("views", views::views),
    ("rollup", kymo_query::rollup::fuzz_rollup),
    ("field", field),
    ("parameters", kymo_serve::fuzz_parameters),
    ("rrd_create", kymo_rrd::fuzz_files::fuzz_create_args),
    ("rrd_header", kymo_rrd::fuzz_files::fuzz_header),
    ("rrd_restore", kymo_rrd::fuzz_files::fuzz_restore),
    ("rrd_update", kymo_rrd::fuzz::fuzz_update),
    ("rrdcached", kymo_wire::fuzz::fuzz_rrdcached),
    ("collectd", kymo_wire::fuzz::fuzz_collectd),
    ("collectd_commands", kymo_wire::fuzz::fuzz_collectd_commands),
    ("mrtg_cfg", kymo_wire::fuzz::fuzz_mrtg_cfg),
    ("mrtg_secrets", kymo_wire::fuzz::fuzz_mrtg_secrets),
    ("snmp", kymo_wire::fuzz::fuzz_snmp),
    ("devices", kymo_poll::devices::fuzz_devices),
    ("snmp_users", kymo_wire::fuzz::fuzz_snmp_users),
    ("traps", kymo_ingest::fuzz::fuzz_traps),
    ("statsd", kymo_wire::fuzz::fuzz_statsd),
    ("graphite", kymo_wire::fuzz::fuzz_graphite),
    ("promtool_dump", kymo_wire::fuzz::fuzz_promtool_dump),
    ("remote_read", kymo_wire::fuzz::fuzz_remote_read),
    ("remote_write", kymo_wire::fuzz::fuzz_remote_write),
    ("exposition_text", kymo_wire::fuzz::fuzz_exposition_text),
    ("backup_manifest", kymo_backup::fuzz::fuzz_manifest),
    ("scrape", kymo_scrape::fuzz::fuzz_scrape),
    ("receivers", kymo_forward::fuzz::fuzz_receivers),
    ("engine", kymo_upstream::fuzz::fuzz_engine),
    ("otlp", kymo_wire::fuzz::fuzz_otlp),
    ("keeper", kymo_wire::fuzz::fuzz_keeper),
    ("keeper_requests", kymo_ingest::fuzz::fuzz_requests),
    ("mrtg_log", kymo_poll::mrtg_log::fuzz_log),
    ("mrtg_pages", kymo_poll::pages::comments::fuzz_comments),
    ("poller_answers", kymo_poll::sink::fuzz_keeper),
    ("answers", kymo_query::stored::fuzz::fuzz_answers),
    ("targets", kymo_wire::fuzz::fuzz_targets),
    ("feed", kymo_wire::fuzz::fuzz_feed),
    ("feed_source", kymo_query::feed::fuzz_feed_source),
    ("runner", kymo_poll::runner::fuzz_runner),
    ("notifications", kymo_ingest::fuzz::fuzz_notifications),
    ("programs", kymo_ingest::fuzz::fuzz_programs),
    ("rrd_at_time", kymo_rrd::at_time::fuzz_at_time),
    ("journal", kymo_store::fuzz::fuzz_journal),
    ("segment", kymo_store::fuzz::fuzz_segment),
    ("shm", kymo_shm::fuzz::fuzz_shm),
    ("selector", kymo_series::fuzz::fuzz_selector),
    ("names", kymo_series::fuzz::fuzz_names),
    ("promql", kymo_promql::fuzz::fuzz_promql),
    ("promql_values", kymo_promql::fuzz::fuzz_promql_values),
    ("statement", statement),
    ("activity", activity),
    (
        "group_identities",
        kymo_kernel::containers::fuzz::group_identities,
    ),
];

const GRAMMARS: [Grammar; 6] = [
    Grammar::Plain,
    Grammar::Named(0),
    Grammar::Named(2),
    Grammar::Stat,
    Grammar::Keyed,
    Grammar::Word,
];

/// Two texts separated by a NUL: the template of the first, and the step to the second, render both texts.
pub fn template(input: &[u8]) {
    let cut = input.iter().position(|&b| b == 0).unwrap_or(input.len());
    let (first, second) = (&input[..cut], input.get(cut + 1..).unwrap_or_default());
    for grammar in GRAMMARS {
        let mut words = Words::default();
        let mut text = Text {
            bytes: first.to_vec(),
            ..Text::default()
        };
        let template = derive(first, grammar, &mut words, &mut text.values, &mut text.ends);
        let mut out = Vec::new();
        assert!(
            template.render(&text.values, &words, &mut out) && out == first,
            "a text came back changed"
        );
        if text.advance(&template, &mut words, second, &mut Vec::new()) {
            out.clear();
            assert!(
                template.render(&text.values, &words, &mut out) && out == second,
                "a step came back changed"
            );
        }
    }
}

/// Texts separated by NULs go through a track and come back unchanged.
pub fn track_written(input: &[u8]) {
    let (&mode, texts) = input.split_first().unwrap_or((&0, &[]));
    let mut writer = TrackWriter::new(GRAMMARS[usize::from(mode) % GRAMMARS.len()]);
    let mut track = Track::default();
    let mut last: &[u8] = &[];
    for (i, text) in texts.split(|&b| b == 0).enumerate() {
        let key = i % 7 == 0;
        writer.begin(key);
        if i == 0 {
            writer.add(0, b"a");
            writer.add(1, b"b");
        }
        if i % 5 != 4 || !writer.same(0) {
            writer.read(0, text);
            last = text;
        }
        if i % 4 == 1 {
            writer.pack(0);
        }
        if i % 3 == 0 {
            writer.read(1, text)
        } else {
            writer.unread(1, Why::NotDue);
            false
        };
        let section = writer.end().to_vec();
        assert!(
            track.apply(key, &section).is_ok(),
            "a writer's own section was refused"
        );
        let mut out = Vec::new();
        assert!(
            track
                .single()
                .is_some_and(|instance| track.render(instance, &mut out))
                && out == last,
            "a text was lost"
        );
    }
}

/// Any bytes as sections.
pub fn track_hostile(input: &[u8]) {
    let mut track = Track::default();
    let mut out = Vec::new();
    for (i, section) in input.split(|&b| b == 0xfe).enumerate() {
        if track.apply(i % 5 == 0, section).is_err() {
            continue;
        }
        for (_, instance) in track.instances() {
            out.clear();
            track.render(instance, &mut out);
        }
    }
}

/// Any text as each of the kernel's files.
pub fn layouts(input: &[u8]) {
    let context = Context::default();
    for subsystem in subsystem::ALL {
        for &kind in subsystem.sources {
            let Some(source) = source::of(kind) else {
                continue;
            };
            let (mut words, mut values, mut ends) = (Words::default(), Vec::new(), Vec::new());
            let template = derive(input, source.grammar, &mut words, &mut values, &mut ends);
            let layout = (subsystem.layout)(kind, &template, &context);
            let slots = layout.rows.iter().flat_map(|row| &row.key).copied();
            assert!(
                slots.max().is_none_or(|slot| slot < template.len()),
                "a key beyond the text"
            );
        }
    }
}

/// Any text as a field's id, and as the rest of an id after known first words: an id that is understood is
/// spelled the same.
pub fn field(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for known in ["", "cpu.", "cpu.user", "disk.read_kb:"] {
        field_is_spelled(&format!("{known}{text}"));
    }
}

fn field_is_spelled(text: &str) {
    let Ok(pick) = Pick::parse(text) else {
        return;
    };
    let instance = match &pick.of {
        Of::Machine => None,
        Of::One(name) => Some(name.as_str()),
        Of::Each => Some("*"),
    };
    assert_eq!(id(pick.subsystem, pick.column, instance), text);
}

/// Runs the target of that name.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = target.unwrap_or_else(|| unreachable!("BUG: no target {name}"));
    target(input);
}

/// Any bytes, in pieces of any length, as packets about the activity of programs, and as recorded texts of them.
fn activity(input: &[u8]) {
    use kymo_base::activity::{Assembler, PACKET_MAX, SAMPLE_MAX, Taken, packets};
    let mut assembler = Assembler::default();
    let mut rest = input;
    while let Some((&length, left)) = rest.split_first() {
        let bytes = (usize::from(length) * PACKET_MAX / 255).min(left.len());
        let (packet, left) = left.split_at(bytes);
        rest = left;
        if assembler.take(packet, |name| !name.is_empty()) == Taken::Whole {
            let texts = assembler.texts();
            let all = (0..texts.len()).map(|n| texts.get(n));
            let all: Vec<_> = all
                .map(|(name, text)| (name.to_vec(), text.to_vec()))
                .collect();
            let bytes: usize = all.iter().map(|(name, text)| name.len() + text.len()).sum();
            assert!(bytes <= SAMPLE_MAX);
            assert!(all.is_sorted_by(|a, b| a.0 < b.0));
            let mut again = Assembler::default();
            let taken = packets(1, &all)
                .iter()
                .map(|packet| again.take(packet, |_| true))
                .last();
            assert_eq!(taken.unwrap_or(Taken::Whole), Taken::Whole);
            assert_eq!(again.texts().len(), all.len());
        }
    }
    kymo_wire::fuzz::fuzz_activity(input);
}

/// A statement without literals is the same after a second pass.
fn statement(input: &[u8]) {
    let once = kymo_base::statement::without_literals(input);
    let again = kymo_base::statement::without_literals(&once);
    assert_eq!(again, once, "a literal was left");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// `collectl` was once known to cargo-fuzz only, and ran nothing.
    #[test]
    fn cargo_fuzz_knows_the_same_targets() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("its manifest");
        for (name, _) in TARGETS {
            let file = format!("fuzz_targets/{name}.rs");
            assert!(
                manifest.contains(&format!("name = \"{name}\"\npath = \"{file}\"\n")),
                "{name} is not in fuzz/Cargo.toml"
            );
            let text = std::fs::read_to_string(folder.join(&file)).expect(&file);
            let call = format!("fuzz_target!(|input: &[u8]| kymo_fuzz::run(\"{name}\", input));");
            assert!(text.contains(&call), "{file}");
        }
        let files = std::fs::read_dir(folder.join("fuzz_targets")).expect("the targets");
        assert_eq!(
            (files.count(), manifest.matches("[[bin]]").count()),
            (TARGETS.len(), TARGETS.len())
        );
    }
}
