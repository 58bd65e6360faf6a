//! Access to a configuration's files, because this crate opens none itself.

/// Files by path, as the process that reads the configuration sees them.
pub trait Files {
    /// All bytes of a file. The error is the cause, without the path.
    fn read(&mut self, path: &[u8]) -> Result<Vec<u8>, String>;

    /// True if [`Files::read`] has permission to read the file.
    fn is_readable(&mut self, path: &[u8]) -> bool;

    /// The names in a folder, in any order; none if it cannot be read.
    fn names(&mut self, folder: &[u8]) -> Vec<Vec<u8>>;

    /// True if the path is a directory.
    fn is_dir(&mut self, path: &[u8]) -> bool;

    /// True if the path exists.
    fn exists(&mut self, path: &[u8]) -> bool;
}
