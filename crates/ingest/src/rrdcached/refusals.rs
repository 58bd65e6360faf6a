//! Errors in stock's words.

use std::io;

use kymo_base::errno::strerror;
use kymo_base::limits::RRD_CELLS_MAX;
use kymo_store::FileError;
use kymo_wire::rrdcached::{Answers, Refusal};

/// The C library's text for an error number.
pub(super) fn strerror_of(number: i32) -> String {
    strerror(&io::Error::from_raw_os_error(number))
}

/// Refuses a line that is no request.
pub(super) fn refuse(answers: &mut Answers, refusal: Refusal) {
    match refusal {
        Refusal::Unknown(word) => answers.error(&[b"Unknown command: ", word]),
        Refusal::Denied => answers.error(&[b"Permission denied."]),
        Refusal::Misplaced(word) => answers.error(&[b"Can't use '", word, b"' here."]),
        Refusal::Usage(verb) => answers.usage(verb),
        // The connection is closed instead.
        Refusal::Torn => {}
    }
}

/// Refuses a name that `-B` does not permit.
pub(super) fn denied(answers: &mut Answers, spelled: &[u8]) {
    answers.error(&[spelled, b": Permission denied"]);
}

/// Refuses a name that another input writes.
pub(super) fn foreign(answers: &mut Answers, spelled: &[u8]) {
    answers.error(&[
        spelled,
        b": Permission denied: only the poller writes there",
    ]);
}

/// Refuses to change a series that another client writes.
pub(super) fn held(answers: &mut Answers) {
    answers.error(&[b"illegal attempt to update what another client writes"]);
}

/// Refuses a change because the journal accepts no writes.
pub(super) fn no_journal(answers: &mut Answers, error: &io::Error) {
    answers.error(&[
        b"RRD Error: cannot write journal: ",
        strerror(error).as_bytes(),
    ]);
}

/// UPDATE's error for a file that it cannot accept values for.
pub(super) fn untouchable(answers: &mut Answers, error: &FileError, spelled: &[u8]) {
    match error {
        FileError::Outside => denied(answers, spelled),
        FileError::NoSuchFile => answers.error(&[b"No such file: ", spelled]),
        FileError::Name(number) | FileError::Stat(number) => {
            let number = number.to_string();
            answers.error(&[b"stat failed with error ", number.as_bytes(), b"."]);
        }
        FileError::NotRegular => answers.error(&[b"Not a regular file: ", spelled]),
        FileError::Access(cause) => {
            let cause = strerror(cause);
            answers.error(&[b"Cannot read/write ", spelled, b": ", cause.as_bytes()]);
        }
        other => rrd_error(answers, b"RRD Error: ", other, spelled),
    }
}

/// Error of a command that reads a file, after the words `before`.
pub(super) fn rrd_error(answers: &mut Answers, before: &[u8], error: &FileError, spelled: &[u8]) {
    let cause = match error {
        FileError::Outside => return denied(answers, spelled),
        FileError::BadStamp => {
            return answers.error(&[b"Error: rrdcached: Invalid timestamp returned"]);
        }
        FileError::Rrd(text) => return answers.error(&[before, text.as_bytes()]),
        FileError::Locked => return answers.error(&[before, b"could not lock RRD"]),
        FileError::Journal(cause) => return no_journal(answers, cause),
        FileError::Exists => {
            return answers.error(&[before, b"creating '", spelled, b"': File exists"]);
        }
        FileError::NotRegular => {
            return answers.error(&[before, b"'", spelled, b"' is not an RRD file"]);
        }
        FileError::Large(cells) => {
            let text = format!("' has {cells} cells, and {RRD_CELLS_MAX} are the most here");
            return answers.error(&[before, b"'", spelled, text.as_bytes()]);
        }
        FileError::NoSuchFile => "No such file or directory".into(),
        FileError::Name(number) | FileError::Stat(number) => strerror_of(*number),
        FileError::Access(cause) | FileError::Io(cause) | FileError::MakeFolder(_, cause) => {
            strerror(cause)
        }
        FileError::NoFolder(_) => "No such file or directory".into(),
    };
    answers.error(&[before, b"opening '", spelled, b"': ", cause.as_bytes()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_spelled_as_in_c() {
        assert_eq!(strerror_of(2), "No such file or directory");
        assert_eq!(strerror_of(28), "No space left on device");
        assert_eq!(strerror(&io::Error::other("x (y)")), "x (y)");
    }

    #[test]
    fn file_errors_have_stocks_texts() {
        let refused = || io::Error::from_raw_os_error(13);
        for (error, text) in [
            (FileError::Outside, "-1 /f: Permission denied\n"),
            (FileError::NoSuchFile, "-1 No such file: /f\n"),
            (FileError::Stat(36), "-1 stat failed with error 36.\n"),
            (FileError::NotRegular, "-1 Not a regular file: /f\n"),
            (
                FileError::Access(refused()),
                "-1 Cannot read/write /f: Permission denied\n",
            ),
            (
                FileError::Rrd("'/f' is not an RRD file".into()),
                "-1 RRD Error: '/f' is not an RRD file\n",
            ),
            (FileError::Locked, "-1 RRD Error: could not lock RRD\n"),
            (
                FileError::BadStamp,
                "-1 Error: rrdcached: Invalid timestamp returned\n",
            ),
            (
                FileError::Journal(io::Error::from_raw_os_error(28)),
                "-1 RRD Error: cannot write journal: No space left on device\n",
            ),
        ] {
            let mut answers = Answers::default();
            untouchable(&mut answers, &error, b"/f");
            assert_eq!(String::from_utf8_lossy(&answers.out), text);
        }
        let mut answers = Answers::default();
        rrd_error(&mut answers, b"RRD Error: ", &FileError::NoSuchFile, b"/f");
        assert_eq!(
            String::from_utf8_lossy(&answers.out),
            "-1 RRD Error: opening '/f': No such file or directory\n"
        );
    }
}
