//! Every kind of descriptor: all bytes in order, waiting without blocking, no shared flag changed.

use std::io::{Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::*;

type Kind = (&'static str, File, Box<dyn Read + Send>);

fn kinds() -> io::Result<Vec<Kind>> {
    let (read, write) = io::pipe()?;
    let (own, client) = UnixStream::pair()?;
    Ok(vec![
        ("pipe", File::from(OwnedFd::from(write)), Box::new(read)),
        ("socket", File::from(OwnedFd::from(own)), Box::new(client)),
    ])
}

fn threaded(file: File) -> io::Result<AsyncOutput> {
    Ok(AsyncOutput { sink: Sink::Thread(Behind::start(file)?) })
}

fn sample() -> Vec<u8> {
    (0..1_000_000_u32).map(|n| (n % 251) as u8).collect()
}

#[tokio::test]
async fn everything_leaves_in_order() -> io::Result<()> {
    for by_thread in [false, true] {
        for (kind, file, mut client) in kinds()? {
            let mut output = if by_thread { threaded(file)? } else { AsyncOutput::open(file)? };
            assert_eq!(matches!(output.sink, Sink::Thread(_)), by_thread, "{kind}");
            let reader = std::thread::spawn(move || {
                let mut received = Vec::new();
                client.read_to_end(&mut received).map(|_| received)
            });
            output.write_all(&sample()).await?;
            output.flush().await?;
            drop(output);
            let received = reader.join().map_err(|_| io::Error::other("the reader failed"))??;
            assert_eq!(received, sample(), "{kind}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn flushed_bytes_are_in_the_file() -> io::Result<()> {
    let file = tempfile::tempfile()?;
    let mut seen = file.try_clone()?;
    let mut output = AsyncOutput::open(file)?;
    assert!(matches!(output.sink, Sink::Thread(_)));
    output.write_all(&sample()).await?;
    output.flush().await?;
    let mut received = Vec::new();
    seen.rewind()?;
    seen.read_to_end(&mut received)?;
    assert_eq!(received, sample());
    Ok(())
}

#[tokio::test]
async fn a_client_that_is_gone_is_an_error() -> io::Result<()> {
    for by_thread in [false, true] {
        for (kind, file, client) in kinds()? {
            let mut output = if by_thread { threaded(file)? } else { AsyncOutput::open(file)? };
            drop(client);
            let error = loop {
                if let Err(error) = output.write_all(b"x").await {
                    break error;
                }
            };
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{kind}");
        }
    }
    Ok(())
}

#[test]
fn a_client_that_never_reads_does_not_keep_the_runtime() -> io::Result<()> {
    for by_thread in [false, true] {
        for (kind, file, client) in kinds()? {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let waited = runtime.block_on(async {
                let mut output = if by_thread { threaded(file)? } else { AsyncOutput::open(file)? };
                let endless = async { while output.write(&sample()).await.is_ok() {} };
                Ok::<_, io::Error>(tokio::time::timeout(Duration::from_millis(50), endless).await.is_err())
            })?;
            assert!(waited, "{kind}");
            drop(runtime);
            drop(client);
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_shared_description_stays_blocking() -> io::Result<()> {
    for (kind, file, _client) in kinds()? {
        let shared = file.as_fd().try_clone_to_owned()?;
        let _output = AsyncOutput::open(file)?;
        let flags = rustix::fs::fcntl_getfl(&shared)?;
        assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK), "{kind}");
    }
    Ok(())
}
