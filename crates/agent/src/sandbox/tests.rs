//! Boxes that are really closed, and what runs in them really tries to get out.

use std::net::TcpListener;
use std::process::{Command, Output};

use super::*;

fn landlock(rules: Rules) -> Sandbox {
    Sandbox { means: Means::Landlock, rules }
}

/// Runs a command line in the box, from a thread of its own.
fn run(sandbox: Sandbox, script: String) -> Output {
    let thread = std::thread::spawn(move || {
        let (program, args) =
            sandbox.wrap("/bin/bash".into(), vec!["-c".into(), script.into()], Path::new("/"));
        sandbox.restrict_this_thread().unwrap();
        Command::new(program).args(args).output().unwrap()
    });
    thread.join().unwrap()
}

/// Whether this kernel can do it at all; where not, there is nothing to test.
fn can() -> bool {
    landlock::missing(&Rules::default()).is_none()
}

#[test]
fn nothing_is_written_outside_by_any_way() {
    if !can() {
        return;
    }
    let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let kept = outside.path().join("kept");
    std::fs::write(&kept, "whole").unwrap();
    let rules = Rules { writable: vec![inside.path().to_owned()], ..Rules::default() };
    let (i, o) = (inside.path().display(), outside.path().display());
    let script = format!(
        "cd {i} && echo in > a && mkdir d && mv a d/b && echo x > /dev/null || exit 1\n\
         ln -s {o}/kept link; ln {o}/kept hard 2>/dev/null && exit 2\n\
         echo no > {o}/new && exit 3\n\
         echo no > link && exit 4\n\
         : > {o}/kept && exit 5\n\
         rm {o}/kept && exit 6\n\
         mv {o}/kept {i}/kept && exit 7\n\
         mkdir {o}/d && exit 8\n\
         truncate -s 0 {o}/kept && exit 9\n\
         (cd {o} && touch ./rel) && exit 10\n\
         exit 0"
    );
    let output = run(landlock(rules), script);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "whole");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(inside.path().join("d/b")).unwrap(), "in\n");
    // This thread was never in the box.
    std::fs::write(outside.path().join("mine"), "").unwrap();
}

#[test]
fn nothing_is_connected_to_unless_the_network_is_open() {
    if !can() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = || format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    let closed = run(landlock(Rules::default()), script());
    assert!(!closed.status.success());
    assert!(String::from_utf8_lossy(&closed.stderr).contains("Permission denied"), "{closed:?}");
    let open = run(landlock(Rules { network: true, ..Rules::default() }), script());
    assert!(open.status.success(), "{open:?}");
}

#[test]
fn processes_outside_cannot_be_signalled() {
    if !can() {
        return;
    }
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    let output = run(landlock(Rules::default()), format!("kill -KILL {}", other.id()));
    let ended = other.try_wait().unwrap();
    other.kill().unwrap();
    other.wait().unwrap();
    // Older kernels cannot keep signals inside; on those this says nothing.
    if ended.is_none() {
        assert!(!output.status.success());
    }
}

#[test]
fn a_box_that_cannot_be_closed_is_a_configuration_error() {
    let config = SandboxConfig { strict: true, ..SandboxConfig::default() };
    let error = Sandbox::close(&config, &["/w".into()], Path::new("/t"), None).unwrap_err();
    assert!(matches!(error, AgentError::Configuration(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("local.sandbox") && text.contains("bubblewrap (bwrap) is not in PATH"), "{text}");
}

#[test]
fn a_bubblewrap_that_does_not_work_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let fake = folder.path().join("bwrap");
    let write = |text: &str| {
        std::fs::write(&fake, text).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    };
    write("#!/bin/sh\necho no user namespaces >&2\nexit 1\n");
    let config = SandboxConfig { strict: true, ..SandboxConfig::default() };
    let close = || Sandbox::close(&config, &["/w".into()], Path::new("/t"), Some(folder.path().as_os_str()));
    let text = close().unwrap_err().to_string();
    assert!(text.contains("does not work here: no user namespaces"), "{text}");
    write("#!/bin/sh\nexit 0\n");
    let (sandbox, notes) = close().unwrap();
    assert_eq!(sandbox.means, Means::Bubblewrap(fake));
    assert_eq!(notes, SandboxNotes::default());
    let (_, args) = sandbox.server_command("srv".into(), vec!["-x".into()], Path::new("/w"), None).unwrap();
    assert_eq!(args.last().unwrap(), "-x");
}

#[test]
fn what_stays_open_is_said() {
    if !can() {
        return;
    }
    let (sandbox, notes) =
        Sandbox::close(&SandboxConfig::default(), &["/w".into()], Path::new("/t"), None).unwrap();
    assert!(sandbox.is_closed());
    assert!(notes.0.iter().any(|note| note.contains("UDP")), "{notes:?}");
    assert_eq!(
        sandbox.described().unwrap(),
        "Commands run in a sandbox: only /w, /t can be written. There is no network."
    );
    let error = sandbox.server_command("srv".into(), Vec::new(), Path::new("/w"), None).unwrap_err();
    assert!(error.to_string().contains("toolway program"), "{error}");
    let helper = Some(Path::new("/bin/toolway"));
    let (program, args) = sandbox.server_command("srv".into(), Vec::new(), Path::new("/w"), helper).unwrap();
    assert_eq!(
        (program, args.first().unwrap().as_os_str()),
        ("/bin/toolway".into(), OsStr::new(SANDBOX_COMMAND))
    );
}

#[test]
fn no_box_is_asked_for_where_it_is_off() {
    let config = SandboxConfig { mode: SandboxMode::Off, strict: true, ..SandboxConfig::default() };
    let (sandbox, _) = Sandbox::close(&config, &[], Path::new("/t"), None).unwrap();
    assert_eq!(sandbox, Sandbox::none());
    assert_eq!(sandbox.described(), None);
}
