//! The measuring harness: an upstream, a client, yardstick relays and faults. Not part of the product, and shares no
//! code with it, so that neither hides the other's mistakes. Linux only: processes are measured out of /proc.
#![cfg(target_os = "linux")]

mod args;
mod bridge;
mod checks;
mod conn;
mod faults;
mod front;
mod gateway;
mod huge;
mod json;
mod loopback;
mod measure;
mod proc;
mod relay;
mod report;
mod server;
mod sys;
mod table;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde_json::Value;

use args::Args;
use front::Spec;

/// Runs one command of the harness, with the program's arguments (without its name): 0 done, 1 a fault was not met as
/// it should be (`faults --judge`), 2 anything else, with the usage on stderr.
pub fn run(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    match Args::parse(arguments).and_then(|args| dispatch(&args)) {
        Ok(code) => code,
        Err(error) => {
            sys::note(&format!("toolway-bench: {error:#}\n\n{}", args::USAGE));
            ExitCode::from(2)
        }
    }
}

fn dispatch(args: &Args) -> anyhow::Result<ExitCode> {
    if args.has("--pin") {
        sys::pin_to_one_core().context("--pin")?;
    }
    match args.command.as_str() {
        "faults" => return run_faults(args),
        "server" => server::run(args.server()?),
        "relay" => relay::run(relay_mode(args), &args.rest),
        "bridge" => bridge::run(args.words.first().context("no URL")?),
        "client" => client(args),
        "ab" => {
            let baseline = args.text("--baseline").unwrap_or("direct");
            measure::ab(&specs(args)?, &args.measure()?, baseline, args.path("--out").as_deref())
        }
        "huge" => huge::run(
            &specs(args)?,
            &args.measure()?,
            args.number("--bytes", huge::GIB)?,
            args.path("--out").as_deref(),
        ),
        "gateway" => {
            let what = args.words.first().context("which measure?")?;
            gateway::run(what, &specs(args)?, &args.gateway()?, args.path("--out").as_deref())
        }
        "loopback" => loopback::run(&args.words, args.loopback()?, args.path("--out").as_deref()),
        "checks" => {
            for spec in specs(args)? {
                let row = checks::run(&spec, args.upstream());
                sys::note(&format!("checked {}", spec.name));
                emit(args.path("--out").as_deref(), &row)?;
            }
            Ok(())
        }
        "table" => {
            let rows = rows(&args.words)?;
            sys::say(&table::table(&rows, args.text("--baseline").unwrap_or("direct")));
            Ok(())
        }
        "summary" => {
            let summary = table::summary(&rows(&args.words)?, args.text("--baseline").unwrap_or("direct"));
            sys::say(&summary.to_string());
            Ok(())
        }
        "report" => {
            sys::say(&report::report(&rows(&args.words)?, args.number("--width", 110)?));
            Ok(())
        }
        "judge" => {
            sys::say(&faults::summary(&rows(&args.words)?));
            Ok(())
        }
        other => bail!("no such command: {other}"),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn relay_mode(args: &Args) -> relay::Mode {
    match (args.has("--splice"), args.has("--frame")) {
        (true, _) => relay::Mode::Splice,
        (_, true) => relay::Mode::Frame,
        _ => relay::Mode::Copy,
    }
}

/// One front, or the upstream itself.
fn client(args: &Args) -> anyhow::Result<()> {
    let mut config = args.measure()?;
    config.rounds = args.number("--rounds", 1)?.clamp(1, 100);
    let direct = args.rest.is_empty();
    let command = match (direct, config.upstream.as_str()) {
        (true, "stdio") => vec!["{up}".to_owned()],
        _ => args.rest.clone(),
    };
    let spec = Spec {
        name: args.text("--name").unwrap_or(if direct { "direct" } else { "front" }).to_owned(),
        is_http: direct && config.upstream.starts_with("http"),
        path: "/mcp".into(),
        commands: [(config.upstream.clone(), command)].into(),
        ..Spec::default()
    };
    let name = spec.name.clone();
    measure::ab(&[spec], &config, &name, args.path("--out").as_deref())
}

fn run_faults(args: &Args) -> anyhow::Result<ExitCode> {
    let wanted = args.text("--scenarios");
    let mut rows = vec![];
    for spec in specs(args)? {
        for name in faults::scenarios(args.upstream()) {
            if wanted.is_some_and(|w| !w.split(',').any(|x| x == name)) {
                continue;
            }
            let row = faults::run(&spec, args.upstream(), name);
            let right = match faults::is_right(&row) {
                Some(true) => "right",
                Some(false) => "WRONG",
                None => "-----",
            };
            sys::note(&format!("{right} {}", Value::Object(row.clone())));
            emit(args.path("--out").as_deref(), &row)?;
            rows.push(row);
        }
    }
    if args.has("--judge") {
        sys::say(&faults::summary(&rows));
        if rows.iter().any(|row| faults::is_right(row) == Some(false)) {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The fronts of the file that can do this upstream, or those of `--only`, in that order.
fn specs(args: &Args) -> anyhow::Result<Vec<Spec>> {
    let file = args.path("--fronts").context("--fronts FILE is missing")?;
    let mut able = front::load(&file)?;
    able.retain(|s| s.command(args.upstream()).is_some());
    let Some(only) = args.text("--only") else { return Ok(able) };
    only.split(',')
        .map(|name| {
            let found = able.iter().find(|s| s.name == name).cloned();
            found.with_context(|| format!("no front {name} for {} in {}", args.upstream(), file.display()))
        })
        .collect()
}

/// One line of JSON, appended to the file or printed.
fn emit(out: Option<&Path>, row: &table::Row) -> anyhow::Result<()> {
    use std::io::Write as _;
    let line = Value::Object(row.clone()).to_string();
    let Some(path) = out else {
        sys::say(&line);
        return Ok(());
    };
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    Ok(writeln!(file, "{line}")?)
}

/// The rows of files of JSON lines; lines that are none are passed over.
fn rows(files: &[String]) -> anyhow::Result<Vec<table::Row>> {
    let mut rows = vec![];
    for file in files {
        let text = std::fs::read_to_string(file).with_context(|| file.clone())?;
        rows.extend(text.lines().filter_map(|l| serde_json::from_str::<table::Row>(l).ok()));
    }
    Ok(rows)
}
