//! Owns what the files alone tell: which were found, what is wrong in them, and where each entry stands. Starts nothing.

use toolway_config::{Entry, FileReport as Looked, FileStatus, Problem, Resolved, Standing};

use super::report::{Check, FileReport, Layer, ServerReport, Verdict};
use crate::render::quoted;

/// The files that were looked at, and what is wrong with each as a whole.
pub(super) fn files(resolved: &Resolved) -> Vec<FileReport> {
    let mut all: Vec<FileReport> = resolved.files.iter().map(|looked| file(looked, resolved)).collect();
    // Approvals that cannot be used, and plugins that bring nothing, stand in no list of files.
    let listed = |problem: &Problem| resolved.files.iter().any(|looked| looked.path == problem.file);
    let elsewhere = |problem: &&Problem| {
        problem.server.is_none() && !problem.file.as_os_str().is_empty() && !listed(problem)
    };
    for problem in resolved.problems.iter().filter(elsewhere) {
        let path = problem.file.display().to_string();
        if let Some(report) = all.iter_mut().find(|report| report.path == path) {
            report.checks.push(of_problem(problem));
        } else {
            let source = if problem.file == resolved.trust_file { "approvals" } else { "plugins" };
            let checks = vec![of_problem(problem)];
            all.push(FileReport { path, source: source.to_owned(), read: false, checks });
        }
    }
    all
}

fn file(looked: &Looked, resolved: &Resolved) -> FileReport {
    let own = |problem: &&Problem| problem.server.is_none() && problem.file == looked.path;
    let mut checks: Vec<Check> = Vec::new();
    match &looked.status {
        FileStatus::Read { servers } => {
            checks.push(Check::ok(Layer::File, format!("names {servers} servers")));
        }
        FileStatus::Absent => {}
        FileStatus::Same { of } => {
            checks.push(Check::ok(Layer::File, format!("the same file as {}, read once", of.display())));
        }
        FileStatus::Kept(problem) | FileStatus::Failed(problem) => checks.push(of_problem(problem)),
    }
    for problem in resolved.problems.iter().filter(own) {
        let check = of_problem(problem);
        if !checks.contains(&check) {
            checks.push(check);
        }
    }
    FileReport {
        path: looked.path.display().to_string(),
        source: looked.source.to_string(),
        read: matches!(looked.status, FileStatus::Read { .. } | FileStatus::Same { .. }),
        checks,
    }
}

/// A problem of a file as a finding: place and text, and its hint as the fix.
pub(super) fn of_problem(problem: &Problem) -> Check {
    let place = match problem.at {
        Some(at) => format!("{}:{}:{}: ", problem.file.display(), at.line, at.column),
        None if problem.file.as_os_str().is_empty() => String::new(),
        None => format!("{}: ", problem.file.display()),
    };
    let field = problem.field.as_ref().map_or_else(String::new, |field| format!("{field}: "));
    let finding = format!("{place}{field}{}", problem.message);
    let fix = problem.hint.clone().unwrap_or_else(|| match problem.at {
        Some(at) => format!("correct line {} of {}", at.line, problem.file.display()),
        None => format!("correct {}", problem.file.display()),
    });
    let verdict = if problem.is_error() { Verdict::Fault } else { Verdict::Warning };
    // A file of variables that cannot be read is no fault of the file that names it.
    let of_variables =
        problem.field.as_deref() == Some("envFile") && problem.message.contains("cannot be read");
    let layer = if of_variables { Layer::Variables } else { Layer::File };
    Check { layer, verdict, finding, fix: Some(fix) }
}

/// What the files tell of one entry. It is settled unless the state is `ready`.
pub(super) fn entry(entry: &Entry, resolved: &Resolved) -> ServerReport {
    let mut checks = well_formed(entry, resolved);
    let (state, usable) = match &entry.standing {
        Standing::Invalid => ("failed", Some(false)),
        Standing::Shadowed { by } => {
            checks.push(Check::warning(
                Layer::Merge,
                format!("the entry of the same name at {by} holds instead"),
                "nothing to do if that is meant; else rename or remove one of the two",
            ));
            ("shadowed", None)
        }
        Standing::Blocked { policy } => {
            let fix = "ask whoever keeps the policy, or remove the entry";
            checks.push(Check::fault(Layer::Policy, format!("forbidden by {policy}"), fix));
            ("blocked", Some(false))
        }
        Standing::Itself => {
            let finding = "it runs toolway serve, which does not serve itself";
            checks.push(Check::ok(Layer::Merge, finding));
            ("disabled", None)
        }
        Standing::Disabled { by } => {
            let fix = format!("toolway enable {}", quoted(&entry.name, cfg!(windows)));
            checks.push(Check::warning(Layer::Merge, format!("switched off at {by}"), fix));
            ("disabled", None)
        }
        Standing::Untrusted { reason } => {
            let fix = format!(
                "look at {}, then: toolway trust {}",
                entry.place,
                quoted(&entry.name, cfg!(windows))
            );
            let finding = format!("never started, because it is not approved: {reason}");
            checks.push(Check::fault(Layer::Trust, finding, fix));
            ("untrusted", Some(false))
        }
        Standing::Unset { variables } => {
            let names = variables.join(", ");
            let fix = format!(
                "set {names} where the client is started, not only in a shell; or give a default: ${{{}:-VALUE}}",
                variables.first().map_or("NAME", String::as_str)
            );
            missing(&mut checks, Check::fault(Layer::Variables, format!("not set: {names}"), fix));
            ("failed", Some(false))
        }
        Standing::NeedsInput { inputs } => {
            let names = inputs.join(", ");
            let fix =
                format!("only its own client can ask for {names}: use a variable instead, ${{env:NAME}}");
            let finding = format!("needs a value that a person types: {names}");
            missing(&mut checks, Check::fault(Layer::Variables, finding, fix));
            ("needs_input", Some(false))
        }
        Standing::Ready => {
            checks.extend(stands_above(entry, resolved));
            checks.push(Check::ok(Layer::Policy, "allowed"));
            checks.push(Check::ok(Layer::Trust, trust(entry)));
            ("ready", None)
        }
    };
    ServerReport {
        name: entry.name.clone(),
        source: entry.place.to_string(),
        state: state.to_owned(),
        usable,
        checks,
        tools: None,
    }
}

/// A value is missing: one cause, with every place that wants it, if they are known.
fn missing(checks: &mut Vec<Check>, all: Check) {
    let wanted: Vec<&str> = checks
        .iter()
        .filter(|check| check.verdict == Verdict::Fault)
        .map(|check| check.finding.as_str())
        .collect();
    let finding = if wanted.is_empty() { all.finding.clone() } else { wanted.join("\n") };
    checks.retain(|check| check.verdict != Verdict::Fault);
    checks.push(Check { finding, ..all });
}

/// Whether the entry itself is in order.
fn well_formed(entry: &Entry, resolved: &Resolved) -> Vec<Check> {
    let own = |problem: &&Problem| {
        problem.server.as_deref() == Some(&entry.name)
            && (problem.file == entry.place.file || problem.file.as_os_str().is_empty())
    };
    // What the entry's standing says, the layer of that standing tells.
    let stands = match &entry.standing {
        Standing::Shadowed { by } => format!("is shadowed by {by}"),
        Standing::Blocked { policy } => format!("blocked by {policy}"),
        _ => String::new(),
    };
    let other = |problem: &&Problem| problem.message != stands;
    let mut checks: Vec<Check> = resolved.problems.iter().filter(own).filter(other).map(of_problem).collect();
    if checks.iter().all(|check| check.verdict != Verdict::Fault) {
        checks.insert(0, Check::ok(Layer::File, format!("read from {}", entry.place)));
    }
    checks
}

/// The entries that this one has the better of.
fn stands_above<'a>(entry: &'a Entry, resolved: &'a Resolved) -> impl Iterator<Item = Check> + 'a {
    let below = |other: &&Entry| matches!(&other.standing, Standing::Shadowed { by } if *by == entry.place);
    resolved
        .entries
        .iter()
        .filter(move |other| other.name == entry.name && below(other))
        .map(|other| Check::ok(Layer::Merge, format!("stands above {}", other.place)))
}

fn trust(entry: &Entry) -> &'static str {
    if entry.source.needs_approval() { "approved" } else { "needs no approval" }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use toolway_config::{Environment, LoadOptions, Platform, SettingSource, load};

    use super::super::report::{Layer, Verdict};
    use super::entry;

    #[test]
    fn a_denied_policy_is_named_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let file = folder.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        let deny = r#"{"mcpServers": {}, "policy": {"deny": [{"command": "npx *"}]}}"#;
        write("managed/mcp.json", deny);
        write("home/.cursor/mcp.json", r#"{"mcpServers": {"x": {"command": "npx", "args": ["-y", "y"]}}}"#);
        let vars = [("HOME".to_owned(), folder.path().join("home").display().to_string())];
        let mut machine = Environment::new(BTreeMap::from(vars), PathBuf::from("/"), Platform::current());
        machine.managed_dirs = vec![folder.path().join("managed")];
        let options = LoadOptions { sources: vec![SettingSource::User], ..LoadOptions::default() };
        let resolved = load(&options, &machine);
        let report = entry(resolved.entry("x").unwrap(), &resolved);
        let faults: Vec<_> = report.checks.iter().filter(|check| check.verdict == Verdict::Fault).collect();
        assert_eq!((report.state.as_str(), report.usable), ("blocked", Some(false)));
        assert_eq!((faults.len(), faults[0].layer), (1, Layer::Policy));
        assert!(faults[0].finding.contains("managed/mcp.json"), "{faults:?}");
    }
}
