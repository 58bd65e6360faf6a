//! `kymo poll` before agents that lose, repeat, delay, lie, restart, renumber or die. What is stored is compared with what
//! the agents count with: a value under the wrong poll would be another rate.

mod addresses;
mod bench;
mod crashes;
mod devices;
mod packets;
mod secrets;
