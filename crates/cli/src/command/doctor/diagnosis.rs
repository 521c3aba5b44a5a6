//! Owns the order of the diagnosis: files, then starts of what may be started, then the client's own files and the cloud.
//! Changes nothing, and starts nothing that is not approved.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use toolway_config::{CLIENTS, Client};
use toolway_proxy::gateway::{MAX_NAME_CHARS, Naming, ServerConfig, ServerState};

use super::super::shell::{Refusal, Shell, near};
use super::probe::{Probed, Sample, probe};
use super::report::{Check, Layer, Report, SCHEMA, ServerReport};
use super::{client, cloud, entries, offers, sign_ins};
use crate::args::DoctorArgs;
use crate::compose::servers::{Servers, machine, own_machine};

/// Servers that are started at the same time.
const AT_ONCE: usize = 8;

/// What is to be looked at.
#[derive(Debug)]
pub(super) struct Asked {
    servers: Vec<String>,
    client: Option<&'static Client>,
    cloud: bool,
    start: bool,
    sample: Option<Sample>,
}

impl Asked {
    /// Checks what was typed against what is configured.
    pub(super) fn new(args: &DoctorArgs, servers: &Servers) -> Result<Self, Refusal> {
        for name in &args.servers {
            if servers.find(name).is_none() {
                return Err(unknown(&format!("no server is called {name:?}"), name, &servers.names()));
            }
        }
        let client = args.client.as_deref().map(|id| {
            let known: Vec<&str> = CLIENTS.iter().map(|client| client.id).collect();
            Client::by_id(id).ok_or_else(|| unknown(&format!("no client is called {id:?}"), id, &known))
        });
        let sample = args.call.as_ref().map(|tool| {
            if args.servers.len() != 1 {
                return Err(Refusal::usage("--call needs the one SERVER whose tool it is"));
            }
            let object: Result<serde_json::Map<_, _>, _> = serde_json::from_str(&args.arguments);
            let object =
                object.map_err(|error| Refusal::usage(format!("--arguments is no JSON object: {error}")))?;
            let arguments = serde_json::Value::Object(object).to_string();
            Ok(Sample { tool: tool.clone(), arguments })
        });
        Ok(Self {
            servers: args.servers.clone(),
            client: client.transpose()?,
            cloud: args.cloud,
            start: !args.no_start,
            sample: sample.transpose()?,
        })
    }

    fn wants(&self, name: &str) -> bool {
        self.servers.is_empty() || self.servers.iter().any(|wanted| wanted == name)
    }
}

fn unknown(reason: &str, name: &str, known: &[&str]) -> Refusal {
    let nearest = near(name, known.iter().copied());
    let hint = match nearest.as_slice() {
        [] if known.is_empty() => {
            "none is configured: toolway import takes over those of your clients".to_owned()
        }
        [] => format!("there are {}", known.join(", ")),
        nearest => format!("did you mean {}?", nearest.join(" or ")),
    };
    Refusal::usage(reason).with_hint(hint)
}

/// The JSON Schema of the report.
pub(super) fn schema() -> serde_json::Value {
    schemars::schema_for!(Report).to_value()
}

/// Looks at everything that was asked for.
pub(super) fn diagnose(shell: &Shell, servers: &Servers, asked: &Asked) -> Result<Report, Refusal> {
    let mut reports: Vec<ServerReport> = Vec::new();
    let mut starts: Vec<(usize, Arc<ServerConfig>)> = Vec::new();
    let wanted = servers.resolved.entries.iter().zip(&servers.entries);
    for (entry, planned) in wanted.filter(|(entry, _)| asked.wants(&entry.name)) {
        let mut report = entries::entry(entry, &servers.resolved);
        match &planned.plan {
            Ok(config) => starts.push((reports.len(), shell.timed(config))),
            Err(state) if report.state == "ready" => unplanned(&mut report, state),
            Err(_) => {}
        }
        reports.push(report);
    }
    if asked.start {
        let probed = Shell::block_on(probe_all(shell, &starts, asked.sample.clone()))?;
        add(&mut reports, &starts, probed);
        sign_ins::explain(&mut reports, &starts, &own_machine(&shell.own)?)?;
    }
    let machine = machine(&shell.own)?;
    let project = toolway_config::project_root(&machine.cwd);
    let client = asked.client.map(|client| client::client(client, &machine, &project, &reports));
    let cloud = asked.cloud.then(|| {
        let wanted = servers.resolved.entries.iter().filter(|entry| asked.wants(&entry.name));
        wanted.filter_map(|entry| Some(cloud::cloud(&entry.name, entry.definition.as_ref()?))).collect()
    });
    let files = entries::files(&servers.resolved);
    Ok(Report { schema: SCHEMA, usable: true, files, servers: reports, client, cloud }.settle())
}

/// An entry that the files leave ready, and that cannot be run all the same.
fn unplanned(report: &mut ServerReport, state: &ServerState) {
    state.name().clone_into(&mut report.state);
    report.usable = Some(false);
    let (finding, fix) = match state {
        ServerState::Failed { reason, hint, .. } => (reason.clone(), hint.clone()),
        other => (other.to_string(), None),
    };
    let fix = fix.unwrap_or_else(|| format!("correct the entry at {}", report.source));
    report.checks.push(Check::fault(Layer::Variables, finding, fix));
}

/// Puts what starts have told into the reports.
fn add(reports: &mut [ServerReport], starts: &[(usize, Arc<ServerConfig>)], probed: Vec<Option<Probed>>) {
    let naming = Naming::new(MAX_NAME_CHARS, false);
    let mut catalogues = Vec::new();
    for ((index, config), probed) in starts.iter().zip(probed) {
        let (Some(report), Some(probed)) = (reports.get_mut(*index), probed) else { continue };
        probed.state.clone_into(&mut report.state);
        report.usable = Some(probed.usable);
        report.checks.extend(probed.checks);
        if let Some(lists) = &probed.lists {
            let offer = offers::offer(config, lists, naming);
            report.checks.extend(offer.checks);
            report.tools = Some(offer.report);
            catalogues.push(offer.catalogue);
        }
    }
    for (server, check) in offers::together(catalogues) {
        if let Some(report) =
            reports.iter_mut().find(|report| report.name == server && report.tools.is_some())
        {
            report.checks.push(check);
        }
    }
}

/// Starts them all, a few at a time; in the order given.
async fn probe_all(
    shell: &Shell,
    starts: &[(usize, Arc<ServerConfig>)],
    sample: Option<Sample>,
) -> Result<Vec<Option<Probed>>, Refusal> {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    for (place, (_, config)) in starts.iter().enumerate() {
        let (room, shared) = (Arc::clone(&room), shell.shared().clone());
        let (config, sample) = (Arc::clone(config), sample.clone());
        running.spawn(async move {
            // The semaphore is never closed.
            let _place = room.acquire().await;
            (place, probe(&config, &shared, sample.as_ref()).await)
        });
    }
    let mut all: Vec<Option<Probed>> = starts.iter().map(|_| None).collect();
    loop {
        tokio::select! {
            biased;
            signal = shell.interrupts().next() => {
                running.shutdown().await;
                return Err(Refusal::signal(signal));
            }
            done = running.join_next() => match done {
                None => return Ok(all),
                Some(Ok((place, probed))) => {
                    if let Some(slot) = all.get_mut(place) {
                        *slot = Some(probed);
                    }
                }
                // A panic ends the process; nothing else cancels a start.
                Some(Err(_)) => {}
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::schema;

    #[test]
    fn the_schema_that_is_checked_in_is_the_one_of_the_report() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/doctor.schema.json");
        let text = format!("{:#}\n", schema());
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), text, "run with UPDATE_EXPECT=1");
    }
}
