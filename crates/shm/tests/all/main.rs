//! Publishers and readers of real files in memory.

mod c;
mod examples;
mod folder;
mod golden;
mod hostile;
mod places;
mod publish;
mod running;
mod writers;
