//! Tests of the engine with simulated agents and networks: no sockets, no waiting.

mod faults;
mod network;
mod polls;
mod shared;
mod users;
