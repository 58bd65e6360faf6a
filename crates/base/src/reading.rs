//! A reading: the raw numbers of one subsystem in one sample, before any subtraction.

/// The value of a field the kernel did not give. No counter gets there.
pub const MISSING: u64 = 1 << 63;

/// One subsystem at one moment.
#[derive(Clone, Default, Debug, PartialEq)]
pub struct Reading {
    /// Whole-machine numbers, in the order of `Subsystem::globals`.
    pub globals: Vec<u64>,
    /// One row an instance: a CPU, a disk, a NIC, a process.
    pub rows: Vec<Row>,
}

/// One instance at one moment.
#[derive(Clone, Default, Debug, PartialEq)]
pub struct Row {
    /// Tells two instances of one name apart over time (major:minor; a start time).
    /// A changed key is a new baseline, never a rate.
    pub key: u64,
    /// The instance's name as the kernel spells it.
    pub name: Vec<u8>,
    /// True: the row counts in the subsystem's sum (a partition does not).
    pub counted: bool,
    /// Numbers in the order of `Subsystem::fields`; [`MISSING`] where there is none.
    pub values: Vec<u64>,
    /// Texts in the order of `Subsystem::labels` (comm, state, command line).
    pub labels: Vec<Vec<u8>>,
}
