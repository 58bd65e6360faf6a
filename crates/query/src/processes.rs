//! The process table at a moment: the scan that covers it.
