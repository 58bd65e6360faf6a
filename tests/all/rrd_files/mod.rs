//! Whole files against rrdtool's: created, dumped, restored, tuned, resized, read. Random, but seeded: a failure
//! shows its command.

mod change;
mod creation;
mod made;
mod read;
mod restoration;
mod sources;
mod stock;
