//! The listener for collectd's protocol against faults and attackers: kills, slow and full disks, floods of names and of
//! datagrams, forgers, clocks that are set. Each fault is shown to have happened. Some tests need root. On loopback only.

mod disks;
mod files;
mod floods;
mod forgers;
mod hub;
mod intervals;
mod kills;
mod newcomers;
mod notifications;
mod packets;
mod spaces;
mod users;
mod writers;
