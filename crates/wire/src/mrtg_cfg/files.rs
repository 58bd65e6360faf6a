//! Access to a configuration's files, because this crate opens none itself.

/// Files by path, as the process that reads the configuration sees them.
pub trait Files {
    /// All bytes of a file. The error is the cause, without the path.
    fn read(&mut self, path: &[u8]) -> Result<Vec<u8>, String>;

    /// True if [`Files::read`] has permission to read the file.
    fn is_readable(&mut self, path: &[u8]) -> bool;

    /// The paths that match a pattern with `*`, in a shell's order; none if no path matches.
    fn glob(&mut self, pattern: &[u8]) -> Vec<Vec<u8>>;

    /// True if the path is a directory.
    fn is_dir(&mut self, path: &[u8]) -> bool;

    /// True if the path exists.
    fn exists(&mut self, path: &[u8]) -> bool;
}
