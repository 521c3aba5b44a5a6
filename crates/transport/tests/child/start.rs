//! What a program gets, and what is said when it does not start.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use toolway_transport::command::{FileSystem, Search, resolve};
use toolway_transport::environment::environment;
use toolway_transport::{Child, ChildConfig, Exit, Platform, StartError};

use crate::support::{DEADLINE, Outcome, config, line, rest, script, start};

#[test]
fn the_program_is_connected_by_its_pipes() -> Outcome {
    for supervise in [true, false] {
        let mut config = config("/bin/cat", &[])?;
        config.supervise = config.supervise.filter(|_| supervise);
        let (mut child, mut stdout, _) = start(&config)?;
        let mut stdin = child.take_stdin().ok_or("no stdin")?;
        for round in 0..3 {
            writeln!(stdin, "message {round}")?;
            assert_eq!(line(&mut stdout)?, format!("message {round}"));
        }
        drop(stdin);
        assert_eq!(rest(&mut stdout)?, "");
        assert_eq!(child.wait(), Exit::Code(0));
    }
    Ok(())
}

#[test]
fn the_environment_is_exactly_the_given_one() -> Outcome {
    let mut config = config("/usr/bin/env", &[])?;
    config.env = [("A", "1"), ("EMPTY", ""), ("ODD", "a=b c\n$X")].map(|(n, v)| (n.into(), v.into())).into();
    let (child, mut stdout, _) = start(&config)?;
    let mut lines: Vec<String> = rest(&mut stdout)?.lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["$X", "A=1", "EMPTY=", "ODD=a=b c"]);
    assert_eq!(child.wait(), Exit::Code(0));
    Ok(())
}

#[test]
fn the_program_runs_in_the_given_directory() -> Outcome {
    let directory = tempfile::tempdir()?;
    let path = directory.path().canonicalize()?;
    let config = ChildConfig { cwd: Some(path.clone()), ..config("/bin/pwd", &[])? };
    let (_child, mut stdout, _) = start(&config)?;
    assert_eq!(line(&mut stdout)?, path.to_string_lossy());
    Ok(())
}

#[test]
fn a_missing_directory_is_named() -> Outcome {
    let config = ChildConfig { cwd: Some("/no/such/place".into()), ..config("/bin/pwd", &[])? };
    let error = Child::spawn(&config).err().ok_or("it started")?;
    assert_eq!(error.to_string(), "the working directory does not exist: /no/such/place");
    Ok(())
}

#[test]
fn what_cannot_be_started_is_said_with_the_reason() -> Outcome {
    let directory = tempfile::tempdir()?;
    let file = |name: &str, text: &str, mode: u32| -> Outcome<String> {
        let path = directory.path().join(name);
        std::fs::write(&path, text)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
        Ok(path.to_string_lossy().into_owned())
    };
    let absent = directory.path().join("absent").to_string_lossy().into_owned();
    let table = [
        (absent, "No such file or directory"),
        (file("plain", "#!/bin/sh\n", 0o644)?, "Permission denied"),
        (file("orphan", "#!/no/such/interpreter\n", 0o755)?, "No such file or directory"),
        (file("garbage", "neither script nor program\n", 0o755)?, "Exec format error"),
        (directory.path().to_string_lossy().into_owned(), "Permission denied"),
    ];
    for (program, reason) in table {
        let config = config(&program, &[])?;
        let (child, mut stdout, stderr) = start(&config)?;
        assert_eq!(rest(&mut stdout)?, "");
        let exit = child.wait();
        assert!(stderr.wait_end(DEADLINE));
        let failure =
            Child::start_failure(exit, &stderr).map(|failure| failure.to_string()).unwrap_or_default();
        assert!(failure.starts_with(&format!("cannot start {program}: {reason}")), "{failure}");

        let bare = ChildConfig { supervise: None, ..config };
        let error = Child::spawn(&bare).err().ok_or("it started")?;
        assert!(matches!(error, StartError::Spawn { .. }), "{error:?}");
        assert!(error.to_string().starts_with(&format!("cannot start {program}: {reason}")), "{error}");
    }
    Ok(())
}

#[test]
fn a_program_that_exits_125_by_itself_did_start() -> Outcome {
    let (child, mut stdout, stderr) = start(&script("echo 'no daemon' >&2; exit 125")?)?;
    rest(&mut stdout)?;
    assert_eq!(child.wait(), Exit::Code(125));
    assert!(stderr.wait_end(DEADLINE));
    assert_eq!(stderr.text(), "no daemon\n");
    assert!(Child::start_failure(Exit::Code(125), &stderr).is_none());
    Ok(())
}

#[test]
fn a_flood_on_stderr_does_not_block_the_answer() -> Outcome {
    let flood = "head -c 4000000 /dev/zero | tr '\\0' 'x' >&2; echo >&2; echo reason >&2; echo answer";
    let (child, mut stdout, stderr) = start(&script(flood)?)?;
    assert_eq!(line(&mut stdout)?, "answer");
    assert_eq!(child.wait(), Exit::Code(0));
    assert!(stderr.wait_end(DEADLINE));
    assert!(stderr.text().ends_with("[3998976 more bytes]\nreason\n"), "{}", stderr.text());
    assert!(stderr.text().len() < 1200);
    Ok(())
}

#[test]
fn the_end_of_stdout_is_seen_while_the_program_runs() -> Outcome {
    let (mut child, mut stdout, _) = start(&script("echo last; exec 1>&-; read line; exit 3")?)?;
    assert_eq!(rest(&mut stdout)?, "last\n");
    assert_eq!(child.try_wait(), None);
    drop(child.take_stdin());
    assert_eq!(child.wait(), Exit::Code(3));
    Ok(())
}

#[test]
fn commands_are_found_in_the_real_file_system() -> Outcome {
    let home = tempfile::tempdir()?;
    let bin = home.path().join(".nvm/versions/node/v22.1.0/bin");
    std::fs::create_dir_all(&bin)?;
    let tool = bin.join("toolway-test-npx");
    std::fs::write(&tool, "#!/bin/sh\necho found\n")?;
    let mut search = Search {
        path: Some("/usr/bin:/bin".as_ref()),
        path_ext: None,
        cwd: "/".as_ref(),
        home: Some(home.path().as_os_str()),
        platform: Platform::CURRENT,
    };
    let name = "toolway-test-npx".as_ref();
    let error = resolve(name, &search, &FileSystem).err().ok_or("found too early")?;
    assert_eq!(error.hint(), None, "a file that may not be executed is no proposal");

    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755))?;
    let error = resolve(name, &search, &FileSystem).err().ok_or("found too early")?;
    assert_eq!(error.to_string(), "command not found: toolway-test-npx; searched: /usr/bin:/bin");
    assert!(error.hint().is_some_and(|hint| hint.contains(&*tool.to_string_lossy())));

    search.path = Some(bin.as_os_str());
    let program = resolve(name, &search, &FileSystem)?;
    let (child, mut stdout, _) = start(&ChildConfig { program, ..config("", &[])? })?;
    assert_eq!(line(&mut stdout)?, "found");
    assert_eq!(child.wait(), Exit::Code(0));
    Ok(())
}

#[test]
fn a_variable_that_a_server_misses_is_among_those_not_passed() -> Outcome {
    let ours = [("PATH", "/usr/bin:/bin"), ("XDG_CONFIG_HOME", "/x")].map(|(n, v)| (n.into(), v.into()));
    let needy = script("test -n \"$XDG_CONFIG_HOME\"")?;
    for (inherit, expected, missed) in
        [(false, Exit::Code(1), vec!["XDG_CONFIG_HOME"]), (true, Exit::Code(0), vec![])]
    {
        let environment = environment(ours.clone(), &[], inherit, Platform::CURRENT);
        let (child, _stdout, _) = start(&ChildConfig { env: environment.variables, ..needy.clone() })?;
        assert_eq!(child.wait(), expected);
        assert_eq!(environment.not_passed, missed);
    }
    Ok(())
}
