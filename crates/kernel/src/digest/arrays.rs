//! Disks of the kernel's RAID arrays, from /proc/mdstat.

use kymo_base::scan;

use super::put_line;

/// Arrays of a digest at most.
const ARRAYS_MAX: usize = 256;

/// A line for each array: disks that it needs, active, failed and spare ones, and those that are missing.
///
/// ```text
/// md0 : active raid1 sdc1[2](S) sdb1[1](F) sda1[0]
///       1024 blocks super 1.2 [2/1] [U_]
/// ```
pub(super) fn arrays(text: &[u8], out: &mut Vec<u8>) {
    let mut lines = scan::lines(text).peekable();
    let mut count = 0;
    while let Some(line) = lines.next() {
        let mut words = scan::words(line);
        let (Some(name), Some(b":"), Some(state)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        if !name.starts_with(b"md") || count == ARRAYS_MAX {
            continue;
        }
        count += 1;
        let marked = |mark: &[u8]| {
            let disks = scan::words(line).filter(|word| word.ends_with(mark));
            u64::try_from(disks.count()).ok()
        };
        let status = lines.peek().copied().unwrap_or_default();
        let [needed, active, missing] = match state {
            b"inactive" => [Some(0); 3],
            _ => disks(line, status),
        };
        put_line(
            out,
            name,
            [needed, active, marked(b"(F)"), marked(b"(S)"), missing],
        );
    }
}

/// Disks that an array needs, that are active and that are missing: `[2/1] [U_]`; where the array has no redundancy,
/// the disks of its first line.
fn disks(line: &[u8], status: &[u8]) -> [Option<u64>; 3] {
    let inner = |word: &'_ [u8]| -> Option<Vec<u8>> {
        Some(word.strip_prefix(b"[")?.strip_suffix(b"]")?.to_vec())
    };
    let brackets: Vec<Vec<u8>> = scan::words(status).filter_map(inner).collect();
    let pair = brackets.iter().find_map(|inner| {
        let mut numbers = inner.splitn(2, |&byte| byte == b'/').map(scan::number);
        Some([numbers.next()??, numbers.next()??])
    });
    match pair {
        Some([needed, active]) => {
            let is_states = |inner: &&Vec<u8>| inner.iter().all(|byte| b"U_".contains(byte));
            let states = brackets.iter().find(is_states);
            let missing = states.map_or(0, |states| {
                states.iter().filter(|&&byte| byte == b'_').count()
            });
            [Some(needed), Some(active), u64::try_from(missing).ok()]
        }
        None => {
            let all = scan::words(line).filter(|word| word.contains(&b'['));
            let all = u64::try_from(all.count()).ok();
            [all, all, Some(0)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::of;
    use crate::digest::Digest;
    use crate::tests::MadeRoot;

    #[test]
    fn arrays_have_a_line_each() {
        let made = MadeRoot::new();
        let text = "Personalities : [raid1] [raid6] [raid5] [raid0]\n\
            md0 : active raid1 sdc1[2](S) sdb1[1](F) sda1[0]\n\
            \x20     1024 blocks super 1.2 [2/1] [U_]\n\
            \x20     [==>..................]  recovery = 12.6% (37043392/292945152) finish=127.5min speed=33440K/sec\n\
            \n\
            md127 : active (auto-read-only) raid6 a[0] b[1] c[2] d[3]\n\
            \x20     1024 blocks super 1.2 level 6, 64k chunk, algorithm 2 [4/4] [UUUU]\n\
            \n\
            md1 : active raid0 b[1] a[0]\n\
            \x20     1024 blocks 64k chunks\n\
            md2 : inactive sdd[0](S)\n\
            \x20     1024 blocks\n\
            unused devices: <none>\n";
        made.write("mdstat", text);
        let expected = "md0 2 1 1 1 1\nmd127 4 4 0 0 0\nmd1 2 2 0 0 0\nmd2 0 0 0 1 0\n";
        let found = of(Digest::Arrays, &made, "mdstat");
        assert_eq!(found.as_deref(), Ok(expected));
        made.write("mdstat", "Personalities :\nunused devices: <none>\n");
        assert_eq!(of(Digest::Arrays, &made, "mdstat").as_deref(), Ok("\n"));
        assert_eq!(of(Digest::Arrays, &made, "none"), Err(2));
    }
}
