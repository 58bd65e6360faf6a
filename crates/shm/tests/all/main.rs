//! Publishers and readers of real files in memory.

mod folder;
mod publish;
