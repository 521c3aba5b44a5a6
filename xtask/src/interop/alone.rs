//! A place without any network but its own loopback: a network namespace. Linux alone has them, and not every machine lets
//! its users have one; where it does not, the cases that need it are left out with the reason, which CI does not accept.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::process::Step;
use crate::workspace::find_program;

/// Brings the loopback up by an ioctl, since the tools for it need not be installed; makes sure that no way leads out; and
/// becomes the program. Looking for a way sends nothing: a datagram's socket only asks the table of routes.
const ENTER: &str = "import fcntl, os, socket, struct, sys\n\
    fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh', b'lo', 0x41))\n\
    for family, address in ((socket.AF_INET, '192.0.2.1'), (socket.AF_INET6, '2001:db8::1')):\n\
    \ttry:\n\
    \t\tsocket.socket(family, socket.SOCK_DGRAM).connect((address, 9))\n\
    \texcept OSError:\n\
    \t\tcontinue\n\
    \tsys.exit('there is a network beside the loopback: a way leads to ' + address)\n\
    os.execvp(sys.argv[1], sys.argv[1:])";

/// How a namespace is asked for: as anybody, where the system lets everybody have one, else as root.
const WAYS: [&[&str]; 2] = [&["--user", "--map-root-user", "--net"], &["--net"]];
/// How long the question whether there is one may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// What a program is started with to be alone.
#[derive(Debug)]
struct Place {
    python: PathBuf,
    way: &'static [&'static str],
}

impl Place {
    fn step(&self, program: &OsStr) -> Step {
        Step::new("unshare").args(self.way).arg(&self.python).args(&["-c", ENTER]).arg(program)
    }
}

fn place() -> Result<&'static Place, &'static str> {
    static FOUND: OnceLock<Result<Place, String>> = OnceLock::new();
    FOUND.get_or_init(look).as_ref().map_err(String::as_str)
}

fn look() -> Result<Place, String> {
    if !cfg!(target_os = "linux") {
        return Err("network namespaces are Linux's alone".to_owned());
    }
    let python = find_program(&["python3"]).ok_or("python3 is not installed")?;
    let mut reasons = Vec::new();
    for way in WAYS {
        let place = Place { python: python.clone(), way };
        let tried = place.step(OsStr::new("true")).capture(DEADLINE);
        match tried {
            Ok(finished) if finished.success => return Ok(place),
            Ok(finished) => reasons.push(format!("unshare {}: {}", way.join(" "), finished.stderr.trim())),
            Err(error) => reasons.push(format!("{error:#}")),
        }
    }
    Err(format!(
        "no network namespace can be had ({}): let users have them (sysctl kernel.unprivileged_userns_clone=1, \
         kernel.apparmor_restrict_unprivileged_userns=0; docker run --privileged), or run this as root",
        reasons.join("; ")
    ))
}

/// Why there is no such place on this machine, if there is none.
pub(super) fn why_not() -> Option<&'static str> {
    place().err()
}

/// A program that has nothing but the loopback.
pub(super) fn step(program: impl AsRef<OsStr>) -> Result<Step> {
    place().map(|place| place.step(program.as_ref())).map_err(|reason| anyhow!(reason))
}
