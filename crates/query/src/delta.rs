//! The rate rule of this machine: raw readings in, differences out.
