//! The result of a power cut: as hostile as POSIX allows, which is more than ext4, XFS or btrfs are. The rules:
//!
//! - bytes and length of a file survive if its `fsync` or `fdatasync` has returned; its name need not;
//! - a name is safe when the `fsync` of its folder has returned, and not before, even if its file was synced;
//! - a rename, also over an older name, survives whole or not at all, and in any order with writes: the new name may stand for
//!   bytes that never reached the disk, unless they were synced before;
//! - each other creation, removal and rename survives or not by itself, whatever came before it;
//! - each sector of 512 bytes of a file, and its length, is as at some moment since the last sync, each by itself.
//!
//! Owners, modes and times are on the disk at once.

use kymo_base::random::next_random;

use super::names::Tree;

impl Tree {
    /// Cuts the power; returns the number of files and names that did not survive as readers saw them.
    pub(super) fn cut(&mut self, random: &mut u64) -> u64 {
        let mut lost = self.cut_names(random);
        for inode in self.inodes.values_mut() {
            let whole = inode.content.cut(&mut |below| dice(random, below));
            lost += u64::from(!whole);
        }
        self.start_from_disk();
        lost
    }

    fn cut_names(&mut self, random: &mut u64) -> u64 {
        let pending = std::mem::take(&mut self.pending);
        let count = pending.len() as u64;
        let kept: u64 = match dice(random, 4) {
            0 => 0,
            1 => count,
            2 => dice(random, count + 1),
            _ => {
                let mut kept = 0;
                for change in &pending {
                    if dice(random, 2) == 0 {
                        self.keep(change);
                        kept += 1;
                    }
                }
                return count - kept;
            }
        };
        for change in &pending[..kept as usize] {
            self.keep(change);
        }
        count - kept
    }
}

pub(super) fn dice(random: &mut u64, below: u64) -> u64 {
    next_random(random) % below
}
