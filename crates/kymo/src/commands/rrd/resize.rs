//! `resize`: makes an archive longer or shorter, in a new file named
//! resize.rrd.

use std::fs::OpenOptions;
use std::io::Write as _;

use kymo_rrd::resize::{self, Resize};
use rustix::fs::{FlockOperation, fcntl_lock};

use super::file::{Access, RrdFile};
use kymo_base::errno::strerror;

use super::message::Message;
use super::session::Session;

const TO: &str = "resize.rrd";

/// `resize`.
pub(super) fn run(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    let how = Resize::parse(words)?;
    let name = words.first().copied().unwrap_or_default();
    let mut open = RrdFile::open(name, Access::Write, &mut session.bytes)?;
    let resized = resize::resize(&open.load()?, how)?;
    let cannot =
        |error: std::io::Error| Message::from(format!("Can't create '{TO}': {}", strerror(&error)));
    let mut options = OpenOptions::new();
    // The file is truncated only after it was locked.
    options.read(true).write(true).create(true).truncate(false);
    let mut to = options.open(TO).map_err(cannot)?;
    fcntl_lock(&to, FlockOperation::NonBlockingLockExclusive)
        .map_err(|error| cannot(error.into()))?;
    to.set_len(0).map_err(cannot)?;
    to.write_all(&resized.to_bytes()).map_err(cannot)
}
