//! An ext4 on its own loop device, to which no other program writes. Needs root.
//! Unmounted and removed at drop; the guard knows it, too.

use crate::bench::Bench;
use crate::fault::{Cannot, Fault, Result};
use crate::guard::{self, Guard};
use crate::row::files_below;
use rustix::fs::{Advice, fadvise};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

const IMAGE_MB: u32 = 300;
const SECTOR_BYTES: u64 = 512;
/// Indexes of writes and sectors written in /sys/block/NAME/stat.
const WRITES: usize = 4;
const SECTORS_WRITTEN: usize = 6;

pub(crate) struct LoopDisk {
    image: PathBuf,
    dir: PathBuf,
    device: String,
    guard: Rc<Guard>,
}

impl LoopDisk {
    pub(crate) fn mount(bench: &Bench, name: &str) -> Result<LoopDisk> {
        LoopDisk::mount_sized(bench, name, IMAGE_MB)
    }

    pub(crate) fn mount_sized(bench: &Bench, name: &str, size_mb: u32) -> Result<LoopDisk> {
        let image = bench.new_path(&format!("{name}.img"));
        let dir = bench.new_dir(&format!("{name}.mnt"))?;
        make_image(&image, size_mb)?;
        // The guard is informed first: if the mount then fails, it finds nothing to undo.
        bench.guard.mounted(&dir)?;
        tool(
            Command::new("mount")
                .args(["-o", "loop"])
                .arg(&image)
                .arg(&dir),
        )?;
        let device = device_of(&dir)?;
        Ok(LoopDisk {
            image,
            dir,
            device,
            guard: Rc::clone(&bench.guard),
        })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes all dirty pages.
    pub(crate) fn sync(&self) -> Result<()> {
        let root = File::open(&self.dir).cannot("open the loop disk")?;
        rustix::fs::syncfs(root).cannot("sync the loop disk")
    }

    /// Drops the cached pages of its files, except for mapped
    /// ones, so that the next reads come from the disk.
    pub(crate) fn drop_caches(&self) -> Result<()> {
        self.sync()?;
        let own = files_below(&self.dir)?;
        for path in own.iter().chain([&self.image]) {
            let file = File::open(path).cannot("open a file of the loop disk")?;
            file.sync_all().cannot("sync a file of the loop disk")?;
            fadvise(&file, 0, None, Advice::DontNeed).cannot("drop a file's pages")?;
        }
        Ok(())
    }

    /// Bytes written to the device so far.
    pub(crate) fn written_bytes(&self) -> Result<u64> {
        Ok(self.stat(SECTORS_WRITTEN)? * SECTOR_BYTES)
    }

    /// Writes of the device so far, after neighbours were merged.
    pub(crate) fn writes(&self) -> Result<u64> {
        self.stat(WRITES)
    }

    fn stat(&self, index: usize) -> Result<u64> {
        let path = format!("/sys/block/{}/stat", self.device);
        let text = fs::read_to_string(&path).cannot(format_args!("read {path}"))?;
        let number = text.split_whitespace().nth(index);
        let number = number.and_then(|word| word.parse().ok());
        number.ok_or_else(|| Fault::new(format!("{path} is too short")))
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        // If it fails, the guard tries again with force after the bench has ended.
        if tool(Command::new("umount").arg(&self.dir)).is_ok() {
            let _ = self.guard.unmounted(&self.dir);
            // Later rows may need these gigabytes; a leftover is removed with the bench's folder.
            let _ = fs::remove_file(&self.image);
        }
    }
}

/// Makes the whole file system at once; otherwise ext4 would go on initializing it.
fn make_image(image: &Path, size_mb: u32) -> Result<()> {
    tool(
        Command::new("fallocate")
            .arg(format!("-l{size_mb}MiB"))
            .arg(image),
    )?;
    tool(
        Command::new("mkfs.ext4")
            .args(["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"])
            .arg(image),
    )
}

fn device_of(dir: &Path) -> Result<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").cannot("read the mounts")?;
    let dir = dir.to_string_lossy();
    let mut lines = mounts.lines().map(|line| line.split(' '));
    let device = lines.find_map(|mut words| {
        let device = words.next()?;
        (words.next()? == dir).then(|| device.to_string())
    });
    let device = device.ok_or_else(|| Fault::new(format!("{dir} is not mounted")))?;
    Ok(device.trim_start_matches("/dev/").to_string())
}

/// Runs a tool to its end; its failure becomes a fault, with its own words.
fn tool(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let end = guard::mark(command).output();
    let end = end.cannot(format_args!("run {name}"))?;
    match end.status.success() {
        true => Ok(()),
        false => {
            let words = String::from_utf8_lossy(&end.stderr);
            Err(Fault::because(format_args!("run {name}"), words.trim()))
        }
    }
}
