//! The machine as kymo sees it: clocks and disks, the real ones and their simulated twins.
//! Every system call of the workspace is made here; nothing here knows what the bytes mean.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod ancestry;
pub mod clock;
pub mod clock_discipline;
pub mod datagrams;
pub mod disk;
mod disk_file;
pub mod effort;
pub mod kept_file;
pub mod kernel_file;
pub mod known_folders;
pub mod listen;
pub mod machine;
pub mod name_service;
pub mod own_name;
pub mod own_process;
pub mod owner;
pub mod packet_pipe;
pub mod prefetch;
pub mod privilege;
pub mod procs;
pub mod program;
pub mod ready;
#[cfg(feature = "testing")]
pub mod sim_clock;
#[cfg(feature = "testing")]
pub mod sim_disk;
pub mod skipped;
pub mod space;
pub mod spooled;
pub mod stream;
pub mod sure_folder;
pub mod talk;
pub mod tcp_owner;
pub mod ticker;
pub mod tree;
mod window;
