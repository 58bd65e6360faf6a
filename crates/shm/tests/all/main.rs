//! Publishers and readers of real files in memory.

mod c;
mod folder;
mod golden;
mod publish;
mod running;
mod writers;
