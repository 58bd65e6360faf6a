//! Answers to PIN and UNPIN, by which a backup copies the store's files while the keeper goes on.

use std::io::{self, Write};

use kymo_store::{PinnedFile, Store};
use kymo_wire::keeper::{Answer, PinnedKind, PinnedPart};

/// Refusal of clients that may not pin.
const NOT_FOR_YOU: &str = "cannot pin the store: only an administrator may, on the socket of administrators, and the process of [backup]";
/// Files of a frame.
const FRAME_FILES: usize = 4096;

/// Answers PIN.
pub(super) fn pin(store: &Store, may_pin: bool, out: &mut dyn Write) -> io::Result<()> {
    if !may_pin {
        return out.write_all(&Answer::Refused(NOT_FOR_YOU.into()).frame());
    }
    let pinned = match store.pin() {
        Ok(pinned) => pinned,
        Err(error) => {
            let why = format!("cannot pin the store: {error}");
            return out.write_all(&Answer::Refused(why).frame());
        }
    };
    let files = pinned.files.into_iter().map(part);
    let adopted = store.adopted().into_iter().map(|name| PinnedPart {
        name,
        bytes: 0,
        kind: PinnedKind::Rrd,
    });
    let parts: Vec<PinnedPart> = files.chain(adopted).collect();
    for some in parts.chunks(FRAME_FILES) {
        let answer = Answer::Pinned(pinned.pin, some.to_vec(), true);
        out.write_all(&answer.frame())?;
    }
    out.write_all(&Answer::Pinned(pinned.pin, Vec::new(), false).frame())
}

/// Answers UNPIN.
pub(super) fn unpin(store: &Store, may_pin: bool, pin: u64, out: &mut dyn Write) -> io::Result<()> {
    let answer = match may_pin && store.unpin(pin) {
        true => Answer::Done,
        false if !may_pin => Answer::Refused(NOT_FOR_YOU.into()),
        false => Answer::Refused(format!("cannot end the pin {pin}: it has ended already")),
    };
    out.write_all(&answer.frame())
}

fn part(file: PinnedFile) -> PinnedPart {
    PinnedPart {
        name: file.name.into_bytes(),
        bytes: file.bytes,
        kind: match file.sealed {
            true => PinnedKind::Sealed,
            false => PinnedKind::Open,
        },
    }
}
