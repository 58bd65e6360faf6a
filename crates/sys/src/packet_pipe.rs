//! A pipe of packets between two processes, neither of which waits for the other: the bytes of one write are read by one
//! read, a full pipe refuses, an empty one has nothing. Both ends stay open in the process that made the pipe, so that the
//! pipe survives either process.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

/// A pipe that holds about that number of bytes if the kernel lets it, else its usual 64 KiB: the ends to read and to write.
pub fn packet_pipe(bytes: usize) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK | PipeFlags::DIRECT;
    let (read, write) = pipe_with(flags)?;
    // The kernel gives small pipes to a user with many.
    let _smaller = fcntl_setpipe_size(&write, bytes);
    Ok((read, write))
}

/// Reads the next packet; bytes that do not fit into `into` are lost. `None`: there is no packet now.
pub fn take_packet(pipe: impl AsFd, into: &mut [u8]) -> Option<usize> {
    loop {
        match rustix::io::read(&pipe, &mut *into) {
            Ok(0) => return None,
            Ok(bytes) => return Some(bytes),
            Err(Errno::INTR) => {}
            // The pipe is empty, or reading failed.
            Err(_) => return None,
        }
    }
}

/// Writes a packet, of 4,096 bytes at most. `false`: there is no room.
pub fn put_packet(pipe: impl AsFd, packet: &[u8]) -> bool {
    loop {
        match rustix::io::write(&pipe, packet) {
            Err(Errno::INTR) => {}
            written => return written == Ok(packet.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_whole_and_neither_end_waits() {
        let (read, write) = packet_pipe(16 << 10).unwrap();
        let mut into = [0; 8];
        assert_eq!(take_packet(&read, &mut into), None, "nothing there");
        let mut count = 0_usize;
        while put_packet(&write, b"packet") {
            count += 1;
        }
        assert!((4..100).contains(&count), "{count} packets");
        for _ in 0..count {
            assert_eq!(take_packet(&read, &mut into), Some(6));
        }
        assert_eq!(take_packet(&read, &mut into), None);
        assert!(put_packet(&write, b"much too long"), "there is room again");
        assert_eq!(take_packet(&read, &mut into), Some(8));
        assert_eq!(take_packet(&read, &mut into), None, "the rest is lost");
        drop(write);
        assert_eq!(take_packet(&read, &mut into), None, "no writer");
    }
}
