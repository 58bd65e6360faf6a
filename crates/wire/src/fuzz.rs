//! Entry points for fuzzing: no bytes of a client or a server may cause a panic or a large allocation.

mod collectd;
mod collectd_commands;
mod exposition_text;
mod graphite;
mod keeper;
mod mrtg_cfg;
mod mrtg_secrets;
mod otlp;
mod promtool_dump;
mod remote_read;
mod remote_write;
mod snmp;
mod snmp_users;
mod statsd;
mod targets;

pub use crate::activity::fuzz_activity;
pub use crate::feed::fuzz_feed;
pub use collectd::fuzz_collectd;
pub use collectd_commands::fuzz_collectd_commands;
pub use exposition_text::fuzz_exposition_text;
pub use graphite::fuzz_graphite;
pub use keeper::{fuzz_keeper, keeper_frames};
pub use mrtg_cfg::fuzz_mrtg_cfg;
pub use mrtg_secrets::fuzz_mrtg_secrets;
pub use otlp::fuzz_otlp;
pub use promtool_dump::fuzz_promtool_dump;
pub use remote_read::fuzz_remote_read;
pub use remote_write::fuzz_remote_write;
pub use snmp::fuzz_snmp;
pub use snmp_users::fuzz_snmp_users;
pub use statsd::fuzz_statsd;
pub use targets::fuzz_targets;

use crate::rrdcached::{
    Answers, Context, Fields, Permissions, Refusal, Request, create_words, list_words, parse,
    put_field, reply, take_line, time_of, tune_words,
};

/// Reads any bytes as a client's commands and as a server's answers.
pub fn fuzz_rrdcached(input: &[u8]) {
    let mut answers = Answers::default();
    let (mut rest, mut scratch) = (input, Vec::new());
    while let Some((line, size)) = take_line(rest) {
        rest = &rest[size..];
        fields_come_back(line);
        answers.begin_command();
        say(&mut answers, Fields::of(line, &mut scratch));
    }
    // All answers can be read in sequence. A BATCH counts its errors in a line before them.
    let mut replies = answers.out.as_slice();
    while !replies.is_empty() {
        match reply::read(replies) {
            reply::Came::Whole(reply) => replies = &replies[reply.size_bytes..],
            other => unreachable!("BUG: {other:?}"),
        }
    }
    let _ = reply::read(input);
}

fn say(answers: &mut Answers, fields: Fields) {
    let context = match answers.in_batch() {
        true => Context::Batch,
        false => Context::Client,
    };
    match parse(fields, context, Permissions::ALL) {
        Err(Refusal::Torn) => {}
        Err(Refusal::Unknown(word)) => answers.error(&[b"Unknown command: ", word]),
        Err(Refusal::Denied) => answers.error(&[b"Permission denied."]),
        Err(Refusal::Misplaced(word)) => answers.error(&[b"Can't use '", word, b"' here."]),
        Err(Refusal::Usage(verb)) => answers.usage(verb),
        Ok(Request::Batch) => answers.batch(),
        Ok(Request::EndBatch) => answers.end_batch(),
        Ok(Request::Help(word)) => answers.help(word, None),
        Ok(Request::Update { values, .. }) => answers.enqueued(values.count()),
        Ok(Request::Create { rest, .. }) => {
            let words = create_words(rest).unwrap_or_default();
            assert!(words.definitions.iter().all(|word| word.len() >= 3));
        }
        Ok(Request::List(rest)) => {
            let path = list_words(rest).map_or(&b""[..], |(_, path)| path);
            assert!(!path.contains(&0), "a NUL in a path");
        }
        Ok(Request::Tune { rest, .. }) => {
            let _ = tune_words(rest);
        }
        Ok(Request::Fetch(fetch) | Request::FetchBin(fetch)) => {
            let _ = fetch.start.and_then(|text| time_of(text, 0));
        }
        Ok(_) => answers.ok(&[b"fine"]),
    }
}

/// Splitting a line, escaping its fields and splitting again must give the same fields.
fn fields_come_back(line: &[u8]) {
    let (mut scratch, mut again) = (Vec::new(), Vec::new());
    let fields: Vec<Vec<u8>> = Fields::of(line, &mut scratch).map(<[u8]>::to_vec).collect();
    for (i, field) in fields.iter().enumerate() {
        if i > 0 {
            again.push(b' ');
        }
        put_field(&mut again, field);
    }
    let back: Vec<&[u8]> = Fields::of(&again, &mut scratch).collect();
    assert!(fields.is_empty() || back == fields, "fields changed");
}
