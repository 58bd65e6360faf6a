//! The engine against simulated agents: no sockets, no waiting, and any network one likes.

mod faults;
mod network;
mod polls;
mod shared;
