//! Changes of the live machine by tests. All are undone at drop, so also after a panic.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::is_root;
pub use kymo_sys::skipped::{not_fetched, skipped};

/// True if the test must be skipped: not as root, or without one of the tools. Prints the reason.
pub fn must_skip(tools: &[&str]) -> bool {
    let missing = tools.iter().find(|tool| !exists(tool));
    let why = match missing {
        _ if !is_root() => "needs root".to_string(),
        Some(tool) => format!("{tool} is missing"),
        None => return false,
    };
    skipped(&why);
    true
}

fn exists(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(tool).is_file())
}

/// Runs a tool; true if it succeeded.
fn tool(name: &str, arguments: &[&str]) -> bool {
    let status = Command::new(name)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Copies a program, to run it under another name. Another process writes the copy: a descriptor open for writing in this
/// one may be in the child of another test for a moment, and then the copy cannot be run ("Text file busy").
pub fn copy_program(program: &Path, copy: &Path) {
    let done = Command::new("cp").arg("--").args([program, copy]).status();
    assert!(
        done.expect("cp").success(),
        "no copy of {}",
        program.display()
    );
}

static DEVICES: Mutex<()> = Mutex::new(());

/// Locks the machine's CPUs, disks and interfaces until drop. Tests of one program run in parallel: a test that changes
/// devices holds the lock, and so does one that compares the numbers of two programs.
pub fn hold_devices() -> MutexGuard<'static, ()> {
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file system in memory.
pub struct Tmpfs(PathBuf);

impl Tmpfs {
    /// Mounts a file system of that size (`900k`) on an empty folder.
    pub fn mount(on: &Path, size: &str) -> Option<Tmpfs> {
        std::fs::create_dir_all(on).ok()?;
        let (size, path) = (format!("size={size},mode=755"), on.to_str()?);
        tool("mount", &["-t", "tmpfs", "-o", &size, "kymo-test", path])
            .then(|| Tmpfs(on.to_path_buf()))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // A recorder that has not ended yet may still have files open.
        tool("umount", &["-l", &self.0.to_string_lossy()]);
    }
}

/// An ext4 file system in a file, which can be frozen: writes then wait until it thaws, as on a disk that stalls.
pub struct StallingDisk(PathBuf);

impl StallingDisk {
    /// Mounts a file system of 256 MiB on an empty folder; its file lies beside the folder.
    pub fn mount(on: &Path) -> Option<StallingDisk> {
        std::fs::create_dir_all(on).ok()?;
        let file = on.with_extension("ext4");
        let made = std::fs::File::create(&file).and_then(|file| file.set_len(256 << 20));
        made.ok()?;
        let (file, path) = (file.to_str()?, on.to_str()?);
        let is_mounted =
            tool("mkfs.ext4", &["-q", file]) && tool("mount", &["-o", "loop", file, path]);
        is_mounted.then(|| StallingDisk(on.to_path_buf()))
    }

    /// Blocks all writes from now on. `false`: the file system cannot be frozen.
    pub fn freeze(&self) -> bool {
        tool("fsfreeze", &["-f", &self.0.to_string_lossy()])
    }

    /// Lets waiting writes continue. `false`: the file system was not frozen.
    pub fn thaw(&self) -> bool {
        tool("fsfreeze", &["-u", &self.0.to_string_lossy()])
    }
}

impl Drop for StallingDisk {
    fn drop(&mut self) {
        self.thaw();
        tool("umount", &["-l", &self.0.to_string_lossy()]);
    }
}

/// A network interface.
pub struct Interface(String);

impl Interface {
    /// Adds an interface of the first type that this kernel knows.
    pub fn add(name: &str) -> Option<Interface> {
        let known = ["dummy", "ifb", "bridge"];
        let added = known
            .iter()
            .any(|kind| tool("ip", &["link", "add", name, "type", kind]));
        added.then(|| Interface(name.into()))
    }

    /// Renames the interface; true on success.
    pub fn rename(&mut self, name: &str) -> bool {
        let renamed = tool("ip", &["link", "set", &self.0, "name", name]);
        if renamed {
            self.0 = name.into();
        }
        renamed
    }
}

impl Drop for Interface {
    fn drop(&mut self) {
        tool("ip", &["link", "del", &self.0]);
    }
}

/// A loop device on a file, with a number that was free.
pub struct LoopDevice(libc::c_int);

/// <linux/loop.h>
const LOOP_CTL_ADD: libc::c_ulong = 0x4c80;
const LOOP_CTL_REMOVE: libc::c_ulong = 0x4c81;

impl LoopDevice {
    /// Adds `/dev/loopNUMBER` on `file`.
    pub fn attach(number: libc::c_int, file: &Path) -> Option<LoopDevice> {
        if !loop_control(LOOP_CTL_ADD, number) {
            return None;
        }
        let device = LoopDevice(number);
        tool("losetup", &[&device.path(), file.to_str()?]).then_some(device)
    }

    /// Path of the device.
    pub fn path(&self) -> String {
        format!("/dev/loop{}", self.0)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        tool("losetup", &["-d", &self.path()]);
        // Other programs, such as udev, may have it open for a moment.
        for _ in 0..50 {
            if loop_control(LOOP_CTL_REMOVE, self.0) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[allow(unsafe_code)]
fn loop_control(request: libc::c_ulong, number: libc::c_int) -> bool {
    let control = std::fs::File::options()
        .write(true)
        .open("/dev/loop-control");
    // SAFETY: both requests take a number by value and touch no memory of ours.
    control
        .is_ok_and(|control| unsafe { libc::ioctl(control.as_raw_fd(), request as _, number) } >= 0)
}

/// A CPU that is offline until drop.
pub struct OfflineCpu(PathBuf);

impl OfflineCpu {
    /// Takes a CPU offline, if that is allowed.
    pub fn take(number: u32) -> Option<OfflineCpu> {
        let switch = PathBuf::from(format!("/sys/devices/system/cpu/cpu{number}/online"));
        let online = std::fs::read(&switch).is_ok_and(|text| text.starts_with(b"1"));
        (online && std::fs::write(&switch, "0").is_ok()).then_some(OfflineCpu(switch))
    }
}

impl Drop for OfflineCpu {
    fn drop(&mut self) {
        if let Err(error) = std::fs::write(&self.0, "1") {
            eprintln!("cannot write {}: {error}", self.0.display());
        }
    }
}
