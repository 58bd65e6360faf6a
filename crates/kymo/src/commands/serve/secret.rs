//! The token for texts, and codes that are valid once.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use kymo_sys::machine;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;
/// Random bytes of a code.
const CODE_BYTES: usize = 16;
/// Fewest characters of a token that a person chose.
const TOKEN_CHARS_MIN: usize = 32;
const TOKEN_CHARS_MAX: usize = 1024;

/// A new random token.
pub(crate) fn fresh_token() -> Result<String> {
    random_hex(TOKEN_BYTES)
}

/// A new random code.
pub(crate) fn fresh_code() -> Result<String> {
    random_hex(CODE_BYTES)
}

fn random_hex(length: usize) -> Result<String> {
    let mut bytes = vec![0; length];
    machine::random(&mut bytes).context("cannot get random numbers")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The token of the file, which is made if it does not exist. The folder may be another user's, so the
/// file is trusted only if no other user can have made it or can read it.
pub(crate) fn token_of(path: &Path) -> Result<String> {
    let (stat, text) = match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return write(path),
        read => read.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let folder = fs::metadata(folder_of(path))
        .with_context(|| format!("cannot read {}", folder_of(path).display()))?;
    if let Err(cause) = trusted(&stat, folder.uid()) {
        bail!("cannot use {}: {cause}", path.display());
    }
    match checked(&text) {
        Some(token) => Ok(token.into()),
        None => bail!(
            "cannot use {}: it holds no token ({TOKEN_CHARS_MIN} or more letters, digits, - and _); remove it for a new one",
            path.display()
        ),
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Checks that only its owner can use a token file, and that the owner is root, this user, or the
/// folder's owner.
fn trusted(stat: &Metadata, folder_uid: u32) -> Result<(), String> {
    let mode = stat.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(format!(
            "others can read it (mode {mode:04o}); chmod 600 it, or remove it for a new one"
        ));
    }
    if ![machine::ROOT, machine::user(), folder_uid].contains(&stat.uid()) {
        return Err(format!(
            "user {} put it there, whose folder it is not; remove it for a new one",
            stat.uid()
        ));
    }
    if stat.nlink() > 1 {
        return Err("it has another name, too (a hard link); remove it for a new one".into());
    }
    Ok(())
}

fn checked(text: &str) -> Option<&str> {
    let token = text.trim_end_matches(['\n', '\r', ' ']);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let sound = (TOKEN_CHARS_MIN..=TOKEN_CHARS_MAX).contains(&token.len());
    (sound && token.bytes().all(plain)).then_some(token)
}

/// Metadata and text of the file.
fn read(path: &Path) -> io::Result<(Metadata, String)> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(machine::PLAIN_FILE)
        .open(path)?;
    let stat = file.metadata()?;
    if !stat.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut text = Vec::new();
    file.take(TOKEN_CHARS_MAX as u64 + 2)
        .read_to_end(&mut text)?;
    // A file that is not UTF-8 has no token.
    Ok((stat, String::from_utf8(text).unwrap_or_default()))
}

/// Writes a new token file, completely or not at all.
fn write(path: &Path) -> Result<String> {
    let token = fresh_token()?;
    let half = path.with_extension("tmp");
    let made = (|| {
        match fs::remove_file(&half) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file: File = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&half)?;
        // The folder's owner must be able to read the file, also without root.
        let owner = fs::metadata(folder_of(path))?;
        if machine::is_root() {
            std::os::unix::fs::fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
        }
        file.write_all(format!("{token}\n").as_bytes())?;
        file.sync_all()?;
        fs::rename(&half, path)?;
        // A URL with this token must stay valid after a power cut, too.
        File::open(folder_of(path))?.sync_all()
    })();
    made.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_made_once_and_kept_from_others() {
        let dir = std::env::temp_dir().join(format!("kymo-secret-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a folder");
        let path = dir.join("token");
        let token = token_of(&path).expect("a token");
        assert_eq!(token.len(), 2 * TOKEN_BYTES);
        assert_eq!(token_of(&path).expect("the same"), token);
        let mode = fs::metadata(&path).expect("the file").mode();
        assert_eq!(mode & 0o7777, 0o600);
        for (text, mode, cause) in [
            (token.as_str(), 0o640, "others can read it (mode 0640)"),
            (&token[..31], 0o600, "it holds no token"),
            ("", 0o600, "it holds no token"),
            (
                "a token with blanks, and more than 32",
                0o600,
                "it holds no token",
            ),
        ] {
            fs::write(&path, text).expect("write");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("chmod");
            let error = token_of(&path).expect_err(text).to_string();
            assert!(error.contains(cause), "{error}");
        }
        fs::write(&path, &token).expect("write");
        fs::hard_link(&path, dir.join("other")).expect("a link");
        let error = token_of(&path).expect_err("a hard link").to_string();
        assert!(error.contains("it has another name"), "{error}");
        fs::remove_file(dir.join("other")).expect("remove");
        assert_eq!(token_of(&path).expect("the same"), token);
        if machine::is_root() {
            std::os::unix::fs::chown(&path, Some(65534), None).expect("chown");
            let error = token_of(&path).expect_err("another's").to_string();
            assert!(error.contains("user 65534 put it there"), "{error}");
            std::os::unix::fs::chown(&dir, Some(65534), None).expect("chown");
            assert_eq!(token_of(&path).expect("the folder's owner's"), token);
        }
        fs::remove_file(&path).expect("remove");
        std::os::unix::fs::symlink("/etc/passwd", &path).expect("a link");
        let error = format!("{:#}", token_of(&path).expect_err("a link"));
        assert!(error.starts_with("cannot read "), "{error}");
        fs::remove_dir_all(&dir).expect("remove");
    }

    #[test]
    fn codes_differ() {
        let (one, other) = (fresh_code().expect("a code"), fresh_code().expect("a code"));
        assert_eq!(one.len(), 2 * CODE_BYTES);
        assert_ne!(one, other);
    }
}
