//! `kymo poll` with agents that lose, repeat, delay, lie, restart, renumber or die. The stored values are compared with
//! the agents' counters: a value under the wrong poll would be another rate.

mod addresses;
mod bench;
mod crashes;
mod devices;
mod packets;
mod secrets;
