//! `tune`: changes a file's definitions, in place or in a new file.

use kymo_rrd::tune::Tune;

use super::file::{self, Access, RrdFile};
use super::message::Message;
use super::session::Session;

/// `tune`: changes the file here, between a flush and a forget of
/// the daemon.
pub(super) fn run(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let tune = Tune::parse(words);
    let daemon = tune.as_ref().ok().and_then(|tune| tune.daemon);
    let connected = session.client.connect(daemon);
    connected.map_err(|_| Message::from("Cannot connect to daemon"))?;
    let tune = tune?;
    if session.client.is_any_connected() {
        // A daemon that does not know the file has nothing to write.
        let _ = session.client.flush(tune.file_name);
    }
    let done = local(session, &tune);
    file::forget(session, tune.file_name);
    done
}

fn local(session: &mut Session, tune: &Tune<'_>) -> Result<(), Message> {
    let name = tune.file_name;
    let mut open = RrdFile::open(name, Access::Write, &mut session.bytes)?;
    let (header, mut rows) = open.parts();
    let applied = tune.apply(header, &mut rows);
    rows.finish()?;
    // Options that were applied before an error stay applied.
    if !tune.options.is_empty() {
        open.write_header(name)?;
    }
    applied?;
    if tune.is_in_place() {
        return Ok(());
    }
    // The lock is held until the new file has replaced the old one.
    if let Some(new) = tune.restructure(&open.load()?, name)? {
        file::replace(session, name, &new)?;
    }
    Ok(())
}
