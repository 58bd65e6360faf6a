//! How a configuration's files are reached: this crate opens none itself.

/// Files by their path, as the process that reads the configuration sees them.
pub trait Files {
    /// All bytes; the error is a cause, without the path.
    fn read(&mut self, path: &[u8]) -> Result<Vec<u8>, String>;

    /// Whether [`Files::read`] would be allowed to.
    fn is_readable(&mut self, path: &[u8]) -> bool;

    /// The paths that match a pattern with `*`, as a shell sorts them; none where nothing matches.
    fn glob(&mut self, pattern: &[u8]) -> Vec<Vec<u8>>;

    /// Whether that is a directory.
    fn is_dir(&mut self, path: &[u8]) -> bool;

    /// Whether there is anything of that name.
    fn exists(&mut self, path: &[u8]) -> bool;
}
