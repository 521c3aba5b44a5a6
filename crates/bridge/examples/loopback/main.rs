//! Loopback servers to be measured: `bare` answers itself, `bridge` lets a host in this process answer, `stdio TOOLWAY`
//! is a host that has `TOOLWAY bridge` beside it. Each says where it listens in one line of JSON, and ends with its stdin.
#![expect(clippy::print_stdout, reason = "the line that says where it listens")]

mod bare;
mod bridged;
mod hosted;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // The measuring side holds our stdin; a thread sees its end.
    std::thread::spawn(|| {
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).ok();
        std::process::exit(0)
    });
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["bare"] => runtime.block_on(bare::run()),
        ["bridge"] => runtime.block_on(bridged::run()),
        ["stdio", toolway] => hosted::run(toolway),
        _ => bail!("usage: loopback bare|bridge|stdio TOOLWAY"),
    }
}
