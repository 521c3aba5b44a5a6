//! Owns the command lines by which something is started in the box: bubblewrap's, and our own binary's that closes the box
//! around itself and becomes the program.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde::{Deserialize, Serialize};

use super::Rules;

/// The first argument that makes our binary close the box around itself: `__sandbox RULES -- PROGRAM [ARGS...]`.
pub const SANDBOX_COMMAND: &str = "__sandbox";
/// Its exit code when it could not.
#[cfg(unix)]
const EXIT_CANNOT_START: u8 = 125;

/// The rules as they stand on a command line. No secrets are among them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    writable: Vec<PathBuf>,
    network: bool,
}

/// bubblewrap's arguments before the program.
fn bubblewrap(rules: &Rules, cwd: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> =
        ["--die-with-parent", "--unshare-pid", "--unshare-ipc", "--ro-bind", "/", "/"]
            .into_iter()
            .chain(["--dev-bind", "/dev", "/dev", "--proc", "/proc"])
            .map(OsString::from)
            .collect();
    for folder in &rules.writable {
        args.extend(["--bind-try".into(), folder.into(), folder.into()]);
    }
    // Later ones lie over earlier ones.
    for path in &rules.protected {
        args.extend(["--ro-bind-try".into(), path.into(), path.into()]);
    }
    if !rules.network {
        args.push("--unshare-net".into());
    }
    args.extend(["--chdir".into(), cwd.into(), "--".into()]);
    args
}

/// The arguments for bubblewrap that start this program.
pub(super) fn in_bubblewrap(
    rules: &Rules,
    cwd: &Path,
    program: &OsStr,
    args: Vec<OsString>,
) -> Vec<OsString> {
    let mut all = bubblewrap(rules, cwd);
    all.push(program.to_owned());
    all.extend(args);
    all
}

/// Why bubblewrap cannot hold anything here: it is tried. Blocks as long as a program takes to start.
pub(super) fn bubblewrap_fault(bubblewrap: &Path, rules: &Rules) -> Option<String> {
    let args = in_bubblewrap(rules, Path::new("/"), OsStr::new("true"), Vec::new());
    let output = Command::new(bubblewrap).args(args).stdin(Stdio::null()).stdout(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Some(format!("{} does not work here: {}", bubblewrap.display(), said.trim()))
        }
        Err(error) => Some(format!("{} cannot be started: {error}", bubblewrap.display())),
    }
}

/// The arguments for our binary that start this program.
pub(super) fn in_helper(rules: &Rules, program: &OsStr, args: Vec<OsString>) -> Vec<OsString> {
    let written = Written { writable: rules.writable.clone(), network: rules.network };
    let written = serde_json::to_string(&written).unwrap_or_default();
    let mut all: Vec<OsString> =
        vec![SANDBOX_COMMAND.into(), written.into(), "--".into(), program.to_owned()];
    all.extend(args);
    all
}

/// Closes the box around this process and becomes the program, when the arguments (our own name first) ask for it; `None`:
/// they are our own. To be called first thing in `main`, before anything has started another thread. Returns only when
/// that failed; the reason is one line on standard error.
pub fn run_sandboxed(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != SANDBOX_COMMAND {
        return None;
    }
    Some(become_program(arguments))
}

#[cfg(unix)]
fn become_program(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    use std::io::Write as _;
    use std::os::unix::process::CommandExt as _;
    let written = arguments.next().and_then(|text| serde_json::from_str::<Written>(text.to_str()?).ok());
    let separator = arguments.next();
    let reason = match (written, separator, arguments.next()) {
        (Some(Written { writable, network }), Some(separator), Some(program)) if separator == "--" => {
            let rules = Rules { writable, protected: Vec::new(), network };
            match super::landlock::restrict_this_thread(&rules) {
                Ok(()) => {
                    let error = Command::new(&program).args(arguments).exec();
                    format!("cannot start {}: {error}", program.to_string_lossy())
                }
                Err(reason) => reason,
            }
        }
        _ => "a sandbox is started by toolway only".to_owned(),
    };
    // Nobody is left to be told if this fails.
    writeln!(std::io::stderr(), "toolway-sandbox: {reason}").ok();
    ExitCode::from(EXIT_CANNOT_START)
}

#[cfg(not(unix))]
fn become_program(_arguments: impl Iterator<Item = OsString>) -> ExitCode {
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(network: bool) -> Rules {
        Rules { writable: vec!["/w".into()], protected: vec!["/w/.cursor".into()], network }
    }

    #[test]
    fn bubblewrap_opens_the_folders_closes_what_is_protected_and_the_network() {
        let args =
            in_bubblewrap(&rules(false), Path::new("/w"), OsStr::new("sh"), vec!["-c".into(), "ls".into()]);
        let text: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
        assert_eq!(
            text.join(" "),
            "--die-with-parent --unshare-pid --unshare-ipc --ro-bind / / --dev-bind /dev /dev --proc /proc \
             --bind-try /w /w --ro-bind-try /w/.cursor /w/.cursor --unshare-net --chdir /w -- sh -c ls"
        );
        assert!(!bubblewrap(&rules(true), Path::new("/")).contains(&OsString::from("--unshare-net")));
    }

    #[test]
    fn our_binary_reads_what_it_is_given() {
        let args = in_helper(&rules(false), OsStr::new("/bin/x"), vec!["-y".into()]);
        assert_eq!(args.first().unwrap(), SANDBOX_COMMAND);
        let written: Written = serde_json::from_str(args[1].to_str().unwrap()).unwrap();
        assert_eq!((written.writable, written.network), (vec![PathBuf::from("/w")], false));
        assert_eq!(args[2..], ["--", "/bin/x", "-y"].map(OsString::from));
    }

    #[test]
    fn other_arguments_are_not_ours() {
        for args in [vec![], vec!["toolway"], vec!["toolway", "doctor"], vec!["__sandbox"]] {
            assert!(run_sandboxed(args.into_iter().map(OsString::from)).is_none());
        }
    }
}
