//! Files and addresses that a process may reach, by landlock, as far as the kernel has it. Open files stay open; a
//! path that is not named here does not exist for the process. [`calls`] lists the system calls that it may make.

use std::path::PathBuf;
use std::slice;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};

mod calls;

pub(crate) use calls::Process;

/// Newest version of landlock that is requested; an older kernel gives its own version.
const ASKED: ABI = ABI::V7;
/// Files that are needed for time zones.
const ALWAYS_READ: [&str; 3] = ["/proc", "/usr/share/zoneinfo", "/etc/localtime"];
/// Files that are needed to resolve host names.
pub(crate) const NAME_FILES: [&str; 8] = [
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/run/systemd/resolve",
    "/usr/lib",
    "/lib",
];
/// Port for name service by TCP.
pub(crate) const NAME_PORT: u16 = 53;

/// Confines this thread and all threads that it starts later: files to read, folders to write, no outgoing
/// connections, no signals to other processes. Returns the state in words.
pub(crate) fn enter(read: &[PathBuf], write: &[PathBuf]) -> String {
    enter_with_ports(read, write, &[])
}

/// Confines like [`enter_with_ports`], but permits this folder and all below to be listed, too.
pub(crate) fn enter_and_list(
    list: &PathBuf,
    read: &[PathBuf],
    write: &[PathBuf],
    ports: &[u16],
) -> String {
    words(restrict(slice::from_ref(list), read, write, ports))
}

/// Confines like [`enter`], but permits TCP connections to these ports.
pub(crate) fn enter_with_ports(read: &[PathBuf], write: &[PathBuf], ports: &[u16]) -> String {
    words(restrict(&[], read, write, ports))
}

fn words(restricted: Result<Option<i32>, RulesetError>) -> String {
    match restricted {
        Ok(Some(version)) => format!("landlock v{version}"),
        Ok(None) => "no landlock (this kernel has none)".into(),
        Err(error) => format!("no landlock ({error})"),
    }
}

fn restrict(
    list: &[PathBuf],
    read: &[PathBuf],
    write: &[PathBuf],
    ports: &[u16],
) -> Result<Option<i32>, RulesetError> {
    let read_access = AccessFs::ReadFile | AccessFs::ReadDir;
    let always = ALWAYS_READ.map(PathBuf::from);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ASKED))?
        .handle_access(AccessNet::from_all(ASKED))?
        .scope(Scope::from_all(ASKED))?
        .create()?
        .add_rules(path_beneath_rules(list, AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(read.iter().chain(&always), read_access))?
        .add_rules(path_beneath_rules(write, read_access | write_access()))?
        .add_rules(ports.iter().map(|&port| -> Result<NetPort, RulesetError> {
            Ok(NetPort::new(port, AccessNet::ConnectTcp))
        }))?
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
        | AccessFs::Refer
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::UnixDatagram;

    /// Name of an attempt, and true if it was refused.
    fn tried<T>(what: &'static str, result: std::io::Result<T>) -> (&'static str, bool) {
        let refused = result.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
        (what, refused)
    }

    #[test]
    fn new_sockets_are_refused() {
        let before = TcpListener::bind("127.0.0.1:0").expect("a port");
        let shut_in = std::thread::spawn(move || {
            let state = Process::Keeper.confine();
            let tried = [
                tried("send datagrams", UdpSocket::bind("127.0.0.1:0")),
                tried("connect", TcpStream::connect("127.0.0.1:9")),
                tried("talk to a unix socket", UnixDatagram::unbound()),
            ];
            (state, tried, before.set_nonblocking(true).is_ok())
        });
        let (state, tried, keeps) = shut_in.join().expect("no panic");
        assert_eq!(state, "seccomp (no new sockets, no programs)");
        for (what, refused) in tried {
            assert!(refused, "{what}");
        }
        assert!(keeps, "a socket that is there stays");
    }

    #[test]
    fn what_is_not_named_is_out_of_reach() {
        let dir = std::env::temp_dir().join(format!("kymo-sandbox-{}", std::process::id()));
        let (ring, rollups) = (dir.join("ring"), dir.join("ring/rollups"));
        fs::create_dir_all(&rollups).expect("folders");
        fs::write(ring.join("block"), "text").expect("a file");
        fs::write(dir.join("outside"), "text").expect("a file");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        // Only the thread that calls `enter` is confined.
        let (ring_, rollups_, dir_) = (ring.clone(), rollups.clone(), dir.clone());
        let shut_in = std::thread::spawn(move || {
            let state = enter(
                std::slice::from_ref(&ring_),
                std::slice::from_ref(&rollups_),
            );
            let tried = [
                tried("read the ring", File::open(ring_.join("block"))),
                tried("list the ring", fs::read_dir(&ring_)),
                tried("read /proc", File::open("/proc/stat")),
                tried("write a roll-up", fs::write(rollups_.join("1.tmp"), "text")),
                tried(
                    "rename a roll-up",
                    fs::rename(rollups_.join("1.tmp"), rollups_.join("1")),
                ),
                tried("remove a roll-up", fs::remove_file(rollups_.join("1"))),
                tried("write the ring", fs::write(ring_.join("block"), "other")),
                tried("add to the ring", File::create(ring_.join("new"))),
                tried("read elsewhere", File::open(dir_.join("outside"))),
                tried("read /etc/passwd", File::open("/etc/passwd")),
                tried(
                    "start a program",
                    std::process::Command::new("/bin/true").status(),
                ),
                tried("connect", TcpStream::connect(address)),
                tried("listen", TcpListener::bind("127.0.0.1:0")),
            ];
            (state, tried)
        });
        let (state, tried) = shut_in.join().expect("no panic");
        fs::remove_dir_all(&dir).expect("removed");
        let version = state.strip_prefix("landlock v").map(str::parse::<i32>);
        let Some(Ok(version)) = version else {
            kymo_sys::skipped::skipped(&state);
            return;
        };
        for (n, (what, refused)) in tried.into_iter().enumerate() {
            // landlock restricts the network since version 4.
            let may = n < 6 || n > 10 && version < 4;
            assert_eq!(refused, !may, "{what} with {state}");
        }
    }
}
