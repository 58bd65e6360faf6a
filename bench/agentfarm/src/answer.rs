//! A device's answers.

use kymo_wire::snmp::{
    ErrorStatus, Malformed, Message, MessageHead, ObjectValue, PduKind, Version, message_bytes,
    put_message, put_varbind,
};

use crate::lie::Lie;
use crate::mib::{Found, Object, find, find_next};
use crate::view::View;

/// Most repetitions of a GETBULK.
const REPETITIONS_MAX: i32 = 1000;

/// Buffers that are used again.
#[derive(Default)]
pub(crate) struct Scratch {
    varbinds: Vec<u8>,
    name: Vec<u8>,
}

/// Error-status of a whole refused request, and the number of the varbind.
type Refusal = (ErrorStatus, i32);

/// Appends the answer to `out`; returns its error-status.
pub(crate) fn put_answer(
    request: &Message,
    view: &View,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Result<ErrorStatus, Malformed> {
    scratch.varbinds.clear();
    let made = match (request.head.kind, view.version) {
        (PduKind::Get, _) => put_objects(request, view, scratch, put_object),
        (PduKind::GetNext, _) => put_objects(request, view, scratch, put_next_object),
        (PduKind::GetBulk, Version::V2c) => {
            put_bulk(request, view, scratch)?;
            Ok(())
        }
        (PduKind::GetBulk, Version::V1)
        | (PduKind::Response | PduKind::Report | PduKind::Inform | PduKind::Trap, _) => {
            return Err(Malformed::Kind);
        }
    };
    let start = out.len();
    let refusal = match made {
        Ok(()) => {
            put_message(
                out,
                &head(request, ErrorStatus::NO_ERROR, 0),
                &scratch.varbinds,
            );
            if out.len() - start <= view.behaviour.reply_bytes_max {
                return Ok(ErrorStatus::NO_ERROR);
            }
            out.truncate(start);
            (ErrorStatus::TOO_BIG, 0)
        }
        Err(refusal) => refusal,
    };
    put_refusal(request, refusal, view, scratch, out);
    Ok(refusal.0)
}

fn head<'a>(request: &Message<'a>, status: ErrorStatus, index: i32) -> MessageHead<'a> {
    MessageHead {
        kind: PduKind::Response,
        status: status.0,
        index,
        ..request.head
    }
}

/// A refusal repeats the varbinds of its request,
/// except for tooBig in v2c, which has none.
fn put_refusal(
    request: &Message,
    (status, index): Refusal,
    view: &View,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) {
    scratch.varbinds.clear();
    if status != ErrorStatus::TOO_BIG || view.version == Version::V1 {
        for (name, _) in request.varbinds.flatten() {
            put_varbind(&mut scratch.varbinds, name, ObjectValue::Null);
        }
    }
    put_message(out, &head(request, status, index), &scratch.varbinds);
}

type PutObject = fn(&[u8], &View, &mut Scratch) -> Result<(), ErrorStatus>;

fn put_objects(
    request: &Message,
    view: &View,
    scratch: &mut Scratch,
    put: PutObject,
) -> Result<(), Refusal> {
    for (number, varbind) in (1..).zip(request.varbinds) {
        let Ok((name, _)) = varbind else {
            return Err((ErrorStatus::GEN_ERR, number));
        };
        put(name, view, scratch).map_err(|status| (status, number))?;
    }
    Ok(())
}

fn put_object(name: &[u8], view: &View, scratch: &mut Scratch) -> Result<(), ErrorStatus> {
    let exception = match find(name, view) {
        Found::Object(object) => {
            object.put(name, view, &mut scratch.varbinds);
            return Ok(());
        }
        Found::NoObject => ObjectValue::NoSuchObject,
        Found::NoInstance => ObjectValue::NoSuchInstance,
    };
    put_exception(name, exception, view, scratch)
}

fn put_exception(
    name: &[u8],
    exception: ObjectValue,
    view: &View,
    scratch: &mut Scratch,
) -> Result<(), ErrorStatus> {
    match view.version {
        Version::V1 => Err(ErrorStatus::NO_SUCH_NAME),
        Version::V2c => {
            put_varbind(&mut scratch.varbinds, name, exception);
            Ok(())
        }
    }
}

fn put_next_object(name: &[u8], view: &View, scratch: &mut Scratch) -> Result<(), ErrorStatus> {
    match step(Cursor::Name(name.to_vec()), view, scratch) {
        Cursor::End(name) => put_exception(&name, ObjectValue::EndOfMibView, view, scratch),
        _ => Ok(()),
    }
}

/// Position of a walk.
enum Cursor {
    /// After this name.
    Name(Vec<u8>),
    /// At an object.
    Object(Object),
    /// After the last object, whose name this is.
    End(Vec<u8>),
}

/// Moves to the next object and appends it, if there is one.
fn step(cursor: Cursor, view: &View, scratch: &mut Scratch) -> Cursor {
    let (found, name) = match cursor {
        Cursor::Name(name) if lies_about_walks(view) => return lie(name, view, scratch),
        Cursor::Name(name) => (find_next(&name, view), name),
        Cursor::Object(object) => {
            object.put_name(view, &mut scratch.name);
            (object.next(view), scratch.name.clone())
        }
        Cursor::End(name) => return Cursor::End(name),
    };
    let Some(object) = found else {
        return Cursor::End(name);
    };
    object.put_name(view, &mut scratch.name);
    object.put(&scratch.name, view, &mut scratch.varbinds);
    Cursor::Object(object)
}

fn lies_about_walks(view: &View) -> bool {
    matches!(view.behaviour.lie, Some(Lie::Endless | Lie::Stuck))
}

/// Appends another row of an endless table, or the same row again.
fn lie(mut name: Vec<u8>, view: &View, scratch: &mut Scratch) -> Cursor {
    if view.behaviour.lie == Some(Lie::Endless) {
        match name.last_mut() {
            Some(last) if *last < 0x7f => *last += 1,
            _ => name.push(1),
        }
    }
    put_varbind(
        &mut scratch.varbinds,
        &name,
        ObjectValue::OctetString(b"one more"),
    );
    Cursor::Name(name)
}

fn put_bulk(request: &Message, view: &View, scratch: &mut Scratch) -> Result<(), Malformed> {
    let names: Result<Vec<_>, _> = request.varbinds.collect();
    let names = names?;
    let once = usize::try_from(request.head.status).unwrap_or(0);
    let (once, again) = names.split_at(once.min(names.len()));
    let mut room = Room::of(request, view);
    for (name, _) in once {
        let cursor = step(Cursor::Name(name.to_vec()), view, scratch);
        if !room.holds(&cursor, scratch) {
            return Ok(());
        }
    }
    let mut cursors: Vec<Cursor> = again
        .iter()
        .map(|(name, _)| Cursor::Name(name.to_vec()))
        .collect();
    for _ in 0..request.head.index.clamp(0, REPETITIONS_MAX) {
        for cursor in &mut cursors {
            let before = std::mem::replace(cursor, Cursor::End(Vec::new()));
            *cursor = step(before, view, scratch);
            if !room.holds(cursor, scratch) {
                return Ok(());
            }
        }
        if cursors
            .iter()
            .all(|cursor| matches!(cursor, Cursor::End(_)))
        {
            return Ok(());
        }
    }
    Ok(())
}

/// Space for varbinds in a reply.
struct Room {
    bytes: usize,
    /// Bytes of the varbinds that fit so far.
    used: usize,
}

impl Room {
    fn of(request: &Message, view: &View) -> Room {
        let around = message_bytes(request.head.community.len(), 0) + 6;
        Room {
            bytes: view.behaviour.reply_bytes_max.saturating_sub(around),
            used: 0,
        }
    }

    /// Appends the end of the MIB, if the walk is there; removes the last varbind if it
    /// does not fit.
    fn holds(&mut self, cursor: &Cursor, scratch: &mut Scratch) -> bool {
        if let Cursor::End(name) = cursor {
            put_varbind(&mut scratch.varbinds, name, ObjectValue::EndOfMibView);
        }
        let fits = scratch.varbinds.len() <= self.bytes;
        match fits {
            true => self.used = scratch.varbinds.len(),
            false => scratch.varbinds.truncate(self.used),
        }
        fits
    }
}
