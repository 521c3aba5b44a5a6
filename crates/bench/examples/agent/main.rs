//! `cargo xtask bench agent`: what an agent costs, measured from within a program that has one, as a developer's would.
//! Each measure is a process of its own, and says what it found in lines of JSON.
//!
//! `agent start|servers|turns|memory [--count N]`, `agent events --store sqlite|jsonl [--count N]`, `agent many
//! [--count N]`, `agent search --tree DIR [--rg FILE] [--count N]`; all with `--tmp DIR`. `agent model` and `agent server`
//! are the two sides that must not count: a scripted model, and the harness's own upstream.

#[cfg(target_os = "linux")]
mod args;
#[cfg(target_os = "linux")]
mod events;
#[cfg(target_os = "linux")]
mod many;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod place;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod search;
#[cfg(target_os = "linux")]
mod start;
#[cfg(target_os = "linux")]
mod turns;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    if let Some(code) = toolway_agent::begin(std::env::args_os()) {
        return code;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "server") {
        return toolway_bench::run(words);
    }
    match args::Args::parse(words).and_then(|args| run(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            process::line(&mut std::io::stderr(), &format!("agent: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    // Processes and their memory are read out of /proc.
    ExitCode::from(2)
}

#[cfg(target_os = "linux")]
fn run(args: &args::Args) -> anyhow::Result<()> {
    if args.what == "model" {
        return place::serve_model();
    }
    // One thread, as the product has. Helpers that do nothing end soon, so that they can be counted.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(std::time::Duration::from_millis(200))
        .build()?;
    let rows = match args.what.as_str() {
        "start" => runtime.block_on(start::without_servers(args))?,
        "servers" => runtime.block_on(start::with_servers(args))?,
        "turns" => runtime.block_on(turns::measure(args))?,
        "events" => runtime.block_on(events::measure(args))?,
        "memory" => runtime.block_on(memory::measure(args))?,
        "many" => runtime.block_on(many::measure(args))?,
        "search" => runtime.block_on(search::measure(args))?,
        other => anyhow::bail!("no such measure: {other}"),
    };
    for row in rows {
        process::line(&mut std::io::stdout(), &row.to_string());
    }
    Ok(())
}
