//! Every kind of descriptor: all bytes in order, nothing lost by cancellation, no shared flag changed.

use std::io::{Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::*;

/// A reading end of each kind and a writer for it; a regular file has no writer, it is filled before.
type Kind = (&'static str, File, Box<dyn Write + Send>);

fn kinds() -> io::Result<Vec<Kind>> {
    let (read, write) = io::pipe()?;
    let (own, client) = UnixStream::pair()?;
    Ok(vec![
        ("pipe", File::from(OwnedFd::from(read)), Box::new(write)),
        ("socket", File::from(OwnedFd::from(own)), Box::new(client)),
    ])
}

/// The same bytes through a thread, as on a terminal or on Windows.
fn threaded(file: File) -> io::Result<AsyncInput> {
    Ok(AsyncInput { source: Source::Thread(Ahead::start(file)?) })
}

async fn read_all(input: &mut AsyncInput) -> io::Result<Vec<u8>> {
    let mut received = Vec::new();
    let mut buffer = vec![0; 5000];
    loop {
        match input.read(&mut buffer).await? {
            0 => return Ok(received),
            count => received.extend_from_slice(buffer.split_at(count).0),
        }
    }
}

fn sample() -> Vec<u8> {
    (0..1_000_000_u32).map(|n| (n % 251) as u8).collect()
}

#[tokio::test]
async fn everything_arrives_in_order() -> io::Result<()> {
    for by_thread in [false, true] {
        for (kind, file, mut client) in kinds()? {
            let mut input = if by_thread { threaded(file)? } else { AsyncInput::open(file)? };
            assert_eq!(matches!(input.source, Source::Thread(_)), by_thread, "{kind}");
            let writer = std::thread::spawn(move || client.write_all(&sample()));
            assert_eq!(read_all(&mut input).await?, sample(), "{kind}");
            writer.join().map_err(|_| io::Error::other("the writer failed"))??;
            assert_eq!(input.read(&mut [0; 8]).await?, 0, "{kind}: the end stays the end");
        }
    }
    Ok(())
}

#[tokio::test]
async fn regular_files_are_read_by_a_thread() -> io::Result<()> {
    let mut file = tempfile::tempfile()?;
    file.write_all(&sample())?;
    file.rewind()?;
    let mut input = AsyncInput::open(file)?;
    assert!(matches!(input.source, Source::Thread(_)));
    assert_eq!(read_all(&mut input).await?, sample());
    Ok(())
}

#[tokio::test]
async fn an_input_that_was_closed_before_ends_at_once() -> io::Result<()> {
    for written in [&b""[..], b"last words"] {
        for (kind, file, mut client) in kinds()? {
            client.write_all(written)?;
            drop(client);
            let mut input = AsyncInput::open(file)?;
            let read = tokio::time::timeout(Duration::from_secs(20), read_all(&mut input)).await;
            assert_eq!(read.map_err(io::Error::other)??, written, "{kind}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_cancelled_read_loses_nothing() -> io::Result<()> {
    for by_thread in [false, true] {
        for (kind, file, mut client) in kinds()? {
            let mut input = if by_thread { threaded(file)? } else { AsyncInput::open(file)? };
            let mut buffer = [0; 16];
            for byte in 0..200_u8 {
                // Polled once and dropped, with nothing there: it must not have taken the byte that comes next.
                let nothing = tokio::time::timeout(Duration::ZERO, input.read(&mut buffer)).await;
                assert!(nothing.is_err(), "{kind}");
                client.write_all(&[byte])?;
                assert_eq!(input.read(&mut buffer).await?, 1, "{kind}");
                assert_eq!(buffer[0], byte, "{kind}");
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_shared_description_stays_blocking() -> io::Result<()> {
    for (kind, file, _client) in kinds()? {
        let shared = file.as_fd().try_clone_to_owned()?;
        let _input = AsyncInput::open(file)?;
        let flags = rustix::fs::fcntl_getfl(&shared)?;
        assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK), "{kind}");
    }
    Ok(())
}

#[test]
fn an_input_without_end_does_not_keep_the_runtime() -> io::Result<()> {
    let (read, write) = io::pipe()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut input = threaded(File::from(OwnedFd::from(read)))?;
        assert!(tokio::time::timeout(Duration::ZERO, input.read(&mut [0; 8])).await.is_err());
        Ok::<_, io::Error>(())
    })?;
    // Returns although the thread is still reading.
    drop(runtime);
    drop(write);
    Ok(())
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn pieces_and_packets_are_all_read() -> io::Result<()> {
    use rustix::fs::{OFlags, fcntl_setfl};
    for packets in [false, true] {
        let (read, mut write) = io::pipe()?;
        if packets {
            fcntl_setfl(&read, OFlags::DIRECT).map_err(io::Error::from)?;
            fcntl_setfl(&write, OFlags::DIRECT).map_err(io::Error::from)?;
        }
        let mut input = AsyncInput::open(File::from(OwnedFd::from(read)))?;
        let mut buffer = [0; 100];
        // The first read needs no event.
        write.write_all(b"first")?;
        assert_eq!(input.read(&mut buffer).await?, 5);
        for _ in 0..3 {
            write.write_all(b"one")?;
            write.write_all(b"two")?;
            let mut count = 0;
            while count < 6 {
                let read = tokio::time::timeout(Duration::from_secs(20), input.read(&mut buffer)).await??;
                assert_eq!(read == 6, !packets);
                count += read;
            }
        }
        write.write_all(b"last")?;
        drop(write);
        assert_eq!(read_all(&mut input).await?, b"last");
    }
    Ok(())
}
