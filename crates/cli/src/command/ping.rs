//! `toolway ping`: a sign of life of one server, or of all.

use std::sync::Arc;

use serde_json::{Value, json};
use toolway_proxy::gateway::{ServerConfig, ServerState};

use super::shell::{Choice, Refusal, Shell, Started, Wanted, exit_of, start_all, told};
use crate::args::PingArgs;
use crate::exit::Exit;

/// Which exit stands above which, where servers differ.
const WORST_FIRST: [Exit; 4] = [Exit::NotStarted, Exit::NotSignedIn, Exit::Untrusted, Exit::Usage];

/// Asks them.
pub(super) fn run(args: &PingArgs) -> Exit {
    told(ping(args))
}

/// One that is asked, or why not.
struct Asked {
    name: String,
    plan: Result<Arc<ServerConfig>, ServerState>,
}

fn ping(args: &PingArgs) -> Result<Exit, Refusal> {
    let shell = Shell::new(&args.talk)?;
    let given = args.ad_hoc.command.is_some() || args.ad_hoc.url.is_some();
    let asked = if let (Some(name), true) = (&args.server, given) {
        return Err(Refusal::usage(format!("SERVER {name:?} stands beside --command or --url")));
    } else if given || args.server.is_some() {
        let words: Vec<String> = args.server.iter().cloned().collect();
        let Choice { config, .. } = shell.choose(&args.ad_hoc, &args.sources, &words)?;
        vec![Asked { name: config.name.clone(), plan: Ok(config) }]
    } else {
        let entries = shell.servers(&args.sources)?.entries;
        let skipped = |state: &ServerState| {
            matches!(
                state,
                ServerState::Disabled { .. } | ServerState::Shadowed { .. } | ServerState::Blocked { .. }
            )
        };
        let wanted = entries.into_iter().filter(|entry| !entry.plan.as_ref().is_err_and(skipped));
        wanted
            .map(|entry| Asked { plan: entry.plan.map(|config| shell.timed(&config)), name: entry.name })
            .collect()
    };
    if asked.is_empty() {
        return Err(Refusal::usage("no server is configured that could be asked")
            .with_hint("toolway list shows what is configured, and why it is not started"));
    }
    let configs = asked
        .iter()
        .enumerate()
        .filter_map(|(index, asked)| Some((index, Arc::clone(asked.plan.as_ref().ok()?))));
    let mut started =
        Shell::block_on(start_all(&shell, configs.collect(), Wanted::Ping))?.into_iter().peekable();
    let mut answers = Vec::new();
    for (index, asked) in asked.into_iter().enumerate() {
        let answer = started.next_if(|started| started.index == index);
        let state = match (&answer, asked.plan) {
            (Some(answer), _) => answer.state.clone(),
            (None, Err(state)) => state,
            (None, Ok(_)) => ServerState::Missing,
        };
        answers.push((asked.name, state, answer));
    }
    print(&shell, &answers)?;
    let exits: Vec<Exit> = answers.iter().map(|(_, state, _)| exit_of(state)).collect();
    Ok(WORST_FIRST.into_iter().find(|exit| exits.contains(exit)).unwrap_or(Exit::Done))
}

fn print(shell: &Shell, answers: &[(String, ServerState, Option<Started>)]) -> Result<(), Refusal> {
    if shell.json {
        let servers: Vec<Value> =
            answers.iter().map(|(name, state, answer)| described(name, state, answer.as_ref())).collect();
        return shell.report_json(&json!({ "schema": 1, "servers": servers }));
    }
    for (name, state, answer) in answers {
        let line = match answer.as_ref().and_then(|answer| Some((answer.ping?, answer.negotiated.as_ref()?)))
        {
            Some((time, negotiated)) => {
                let milliseconds = time.as_secs_f64() * 1000.0;
                format!(
                    "{name}: {milliseconds:.1} ms ({}, {})",
                    negotiated.version,
                    negotiated.carrier.name()
                )
            }
            None => format!("{name}: {state}"),
        };
        shell.report(&format!("{line}\n"))?;
    }
    Ok(())
}

fn described(name: &str, state: &ServerState, answer: Option<&Started>) -> Value {
    let reason = match state {
        ServerState::Connected => None,
        other => Some(other.to_string()),
    };
    let negotiated = answer.and_then(|answer| answer.negotiated.as_ref());
    let milliseconds = |time: std::time::Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    json!({
        "name": name,
        "state": state.name(),
        "reason": reason,
        "pingMs": answer.and_then(|answer| answer.ping).map(milliseconds),
        "startMs": answer.map(|answer| milliseconds(answer.took)),
        "protocol": negotiated.map(|negotiated| negotiated.version.clone()),
        "transport": negotiated.map(|negotiated| negotiated.carrier.name()),
    })
}
