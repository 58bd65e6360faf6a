//! What the hub may reach, by landlock: best effort, for kernels that have it. What is already open
//! stays open; what is not named here does not exist for it.

use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

/// What kernels are asked for at most; an older one gives what it has.
const ASKED: ABI = ABI::V7;
/// What time zones are read from.
const ALWAYS_READ: [&str; 3] = ["/proc", "/usr/share/zoneinfo", "/etc/localtime"];

/// Shuts this thread, and those it starts from now on, in: files to read, folders to write, no
/// connection out, no signal to others. The state in words.
pub fn enter(read: &[PathBuf], write: &[PathBuf]) -> String {
    match restrict(read, write) {
        Ok(Some(version)) => format!("landlock v{version}"),
        Ok(None) => "no landlock (this kernel has none)".into(),
        Err(error) => format!("no landlock ({error})"),
    }
}

fn restrict(read: &[PathBuf], write: &[PathBuf]) -> Result<Option<i32>, RulesetError> {
    let read_access = AccessFs::ReadFile | AccessFs::ReadDir;
    let always = ALWAYS_READ.map(PathBuf::from);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ASKED))?
        .handle_access(AccessNet::from_all(ASKED))?
        .scope(Scope::from_all(ASKED))?
        .create()?
        .add_rules(path_beneath_rules(read.iter().chain(&always), read_access))?
        .add_rules(path_beneath_rules(write, read_access | write_access()))?
        .restrict_self()?;
    Ok(match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => None,
        (_, LandlockStatus::Available { effective_abi, .. }) => {
            Some(effective_abi.min(ASKED) as i32)
        }
        _ => None,
    })
}

fn write_access() -> BitFlags<AccessFs> {
    AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
}
