//! The bytes of a file: as readers see them, as they are on the disk, and the changes between the two.

/// A disk writes a sector whole or not at all.
const SECTOR: usize = 512;
/// The kernel writes back whole pages, unless the power goes meanwhile.
const PAGE: usize = 4096;

/// A change that is not on the disk for certain.
enum Change {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Write(offset, written) => {
                let end = offset + written.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*offset..end].copy_from_slice(written);
            }
            Change::SetLen(len) => bytes.resize(*len, 0),
        }
    }

    /// The bytes of a file of `len` bytes that the change touches.
    fn range(&self, len: usize) -> (usize, usize) {
        match self {
            Change::Write(offset, written) => (*offset, offset + written.len()),
            Change::SetLen(new) => (len.min(*new), len.max(*new)),
        }
    }
}

/// The bytes of one file.
#[derive(Default)]
pub(crate) struct Content {
    /// The bytes that a reader sees.
    pub(crate) seen: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

impl Content {
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.change(Change::Write(offset, bytes.to_vec()));
    }

    pub(crate) fn set_len(&mut self, len: usize) {
        self.change(Change::SetLen(len));
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.seen);
        self.pending.push(change);
    }

    /// Puts all bytes on the disk.
    pub(crate) fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.durable);
        }
    }

    /// Fails a sync: chance decides which pending changes are on the disk, and the others never get there. Readers
    /// still see all of them.
    pub(crate) fn lose_pending(&mut self, random: &mut dyn FnMut(u64) -> u64) {
        self.durable = self.survivor(random);
        self.pending.clear();
    }

    /// Cuts the power; true if all pending changes survived.
    pub(crate) fn cut(&mut self, random: &mut dyn FnMut(u64) -> u64) -> bool {
        let survivor = self.survivor(random);
        let whole = survivor == self.seen;
        self.pending.clear();
        self.seen.clone_from(&survivor);
        self.durable = survivor;
        whole
    }

    /// The bytes on the disk after a cut. The cache has the sum of all writes so far, so each sector on the disk, and
    /// the length, is as the cache was at some moment since the last sync; each has a moment of its own.
    fn survivor(&self, random: &mut dyn FnMut(u64) -> u64) -> Vec<u8> {
        let changes = self.pending.len() as u64;
        match random(5) {
            0 => self.after(0),
            1 => self.after(self.pending.len()),
            2 => self.after(random(changes + 1) as usize),
            3 => self.torn(PAGE, random),
            _ => self.torn(SECTOR, random),
        }
    }

    fn after(&self, count: usize) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for change in &self.pending[..count] {
            change.apply(&mut bytes);
        }
        bytes
    }

    fn torn(&self, piece: usize, random: &mut dyn FnMut(u64) -> u64) -> Vec<u8> {
        let mut moments = self.moments(piece, random);
        let count = self.pending.len() as u64;
        let len_moment = random(count + 1) as usize;
        let mut bytes = self.durable.clone();
        let mut torn = bytes.clone();
        let mut len = bytes.len();
        moments.sort_unstable();
        let mut moments = moments.into_iter().peekable();
        for (index, change) in self.pending.iter().enumerate() {
            change.apply(&mut bytes);
            if index + 1 == len_moment {
                len = bytes.len();
            }
            while let Some((_, at)) = moments.next_if(|(moment, _)| *moment == index + 1) {
                let end = at + piece;
                torn.resize(torn.len().max(end), 0);
                torn[at..end].fill(0);
                let have = bytes.len().clamp(at, end);
                torn[at..have].copy_from_slice(bytes.get(at..have).unwrap_or_default());
            }
        }
        torn.resize(len, 0);
        torn
    }

    /// The place of each touched piece, and the number of changes
    /// that reached the disk there. Leaves out pieces with none.
    fn moments(&self, piece: usize, random: &mut dyn FnMut(u64) -> u64) -> Vec<(usize, usize)> {
        let count = self.pending.len() as u64;
        let mut touched = std::collections::BTreeSet::new();
        let mut len = self.durable.len();
        for change in &self.pending {
            let (from, to) = change.range(len);
            len = match change {
                Change::SetLen(new) => *new,
                Change::Write(..) => len.max(to),
            };
            touched.extend((from / piece..to.div_ceil(piece)).map(|index| index * piece));
        }
        let chosen = touched
            .into_iter()
            .map(|at| (random(count + 1) as usize, at));
        chosen.filter(|(moment, _)| *moment > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dice(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut random = seed | 1;
        move |below| kymo_base::random::next_random(&mut random) % below
    }

    #[test]
    fn a_cut_leaves_of_each_sector_what_the_cache_had_at_some_moment() {
        for seed in 1..2000 {
            let mut content = Content::default();
            content.write(0, &[1; 3000]);
            content.sync();
            content.write(100, &[2; 100]);
            content.write(150, &[3; 3000]);
            content.cut(&mut dice(seed));
            let bytes = content.seen;
            assert!(bytes.len() == 3000 || bytes.len() == 3150, "seed {seed}");
            assert_eq!(bytes[..100], [1; 100], "seed {seed}");
            // The second write never survives without the first one.
            let states = [[1, 1], [2, 2], [2, 3]];
            assert!(states.contains(&[bytes[120], bytes[160]]), "seed {seed}");
            for sector in 1..5 {
                let sector = &bytes[sector * 512..][..512];
                assert!(sector == [1; 512] || sector == [3; 512], "seed {seed}");
            }
        }
    }

    #[test]
    fn all_fates_occur_and_a_sync_is_for_ever() {
        let mut fates = std::collections::BTreeSet::new();
        for seed in 1..500 {
            let mut content = Content::default();
            content.write(0, &[1; 1024]);
            content.sync();
            content.write(0, &[2; 1024]);
            content.set_len(600);
            content.cut(&mut dice(seed));
            fates.insert((content.seen.len(), content.seen[0], content.seen[599]));
            content.write(0, &[4; 10]);
            content.sync();
            content.cut(&mut dice(seed));
            assert_eq!(content.seen[..10], [4; 10]);
        }
        assert_eq!(fates.len(), 8, "{fates:?}");
    }
}
