//! `kymo serve` against faults and attackers: floods, greedy clients, hostile requests, clients without rights,
//! killed children, full or slow disks, rings that wrap, clocks that are set. Each test shows that its fault
//! happened. Touches the live machine, on loopback only.

mod access;
mod client;
mod clocks;
mod deaths;
mod disks;
mod doors;
mod floods;
mod greedy;
mod made_up;
mod parameters;
mod people;
mod requests;
