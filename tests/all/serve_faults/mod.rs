//! `kymo serve` against faults and attackers: floods, hostile requests, who may see what, children that are
//! killed, disks that are full or slow, rings that wrap, clocks that are set. Each fault is shown to have
//! happened. Touches the live machine, on loopback only.

mod access;
mod client;
mod clocks;
mod deaths;
mod disks;
mod doors;
mod floods;
mod made_up;
mod parameters;
mod requests;
