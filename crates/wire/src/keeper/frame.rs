//! Frames: a length, the protocol's version, a kind, a body.

/// Bytes of a frame's length.
pub const HEAD: usize = 4;
/// The version of the protocol.
pub const VERSION: u8 = 4;
/// Most bytes of a request.
pub const QUESTION_MAX: usize = 1 << 20;
/// Most bytes of an answer.
pub const ANSWER_MAX: usize = 64 << 20;

/// Number of bytes behind a frame's length; an error if the length is not sound.
pub fn body_bytes(head: [u8; HEAD], most: usize) -> Result<usize, &'static str> {
    let bytes = u32::from_le_bytes(head) as usize;
    match bytes {
        0..2 => Err("has no kind"),
        _ if bytes > most => Err("is too long"),
        _ => Ok(bytes),
    }
}

/// Declares an enum of frames: for each frame its code, its fields, and the functions that append and read
/// its body.
macro_rules! frames {
    ($(#[$doc:meta])* $name:ident {$(
        $(#[$about:meta])*
        $code:literal = $frame:ident
            $(($($field:ident: $type:ty),+; $put:path, $take:path))?
            $({$(#[$hint:meta])* $named:ident: $only:ty; $put_named:path, $take_named:path})?,
    )+}) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {$(
            $(#[$about])*
            $frame $(($($type),+))? $({$(#[$hint])* $named: $only})?,
        )+}

        impl $name {
            /// The bytes of the frame.
            pub fn frame(&self) -> Vec<u8> {
                match self {$(
                    $name::$frame $(($($field),+))? $({$named})? => $crate::keeper::frame::framed($code, |_out| {
                        $($put($($field,)+ _out))?
                        $($put_named($named, _out))?
                    }),
                )+}
            }

            /// Reads the bytes behind a frame's length. The error is the reason, for people.
            // The pattern of a single field needs no parentheses.
            #[allow(unused_parens)]
            pub fn read(frame: &[u8]) -> Result<$name, &'static str> {
                let (code, mut body) = Take::begin(frame)?;
                let read = match code {
                    $($code => {
                        $(let ($($field),+) = $take(&mut body).ok_or("is cut short")?;)?
                        $(let $named = $take_named(&mut body).ok_or("is cut short")?;)?
                        $name::$frame $(($($field),+))? $({$named})?
                    })+
                    _ => return Err("is of an unknown kind"),
                };
                body.end().map(|()| read)
            }
        }
    };
}
pub(super) use frames;

/// A frame with this kind and body.
pub(super) fn framed(kind: u8, put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![0; HEAD];
    out.extend([VERSION, kind]);
    put(&mut out);
    let bytes = (out.len() - HEAD) as u32;
    out[..HEAD].copy_from_slice(&bytes.to_le_bytes());
    out
}
