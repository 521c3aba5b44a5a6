//! Owns what a program's file, its last words, its stdout and its command line tell of why a server does not start.
//! Reads the beginning of the program's file, and starts nothing.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use toolway_proxy::gateway::{OpenError, ServerConfig, Target};

/// How much of a program's file is looked at.
const BEGINNING: u64 = 512;

/// What was found, and what to do.
pub(super) type Cause = (String, String);

/// Why the system does not start a file that is there and may be executed.
pub(super) fn of_program(program: &Path) -> Option<Cause> {
    if !program.is_file() {
        return None;
    }
    let mut beginning = Vec::new();
    File::open(program).ok()?.take(BEGINNING).read_to_end(&mut beginning).ok()?;
    let name = program.display();
    let Some(line) = beginning.strip_prefix(b"#!") else {
        if beginning.starts_with(b"\x7fELF") || beginning.starts_with(b"MZ") || is_mach(&beginning) {
            let found = format!("{name} is no program for this system and processor, or damaged");
            return Some((found, "install the one that was built for this machine".to_owned()));
        }
        let fix = format!(
            "begin it with a line like #!/bin/sh, or name its interpreter: \"command\": \"sh\", \"args\": [\"{name}\"]"
        );
        return Some((
            format!("{name} has no #! line that says what runs it, and is no program itself"),
            fix,
        ));
    };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    if line.ends_with('\r') {
        let found =
            format!("the first line of {name} ends with a carriage return, which becomes part of a name");
        return Some((found, format!("save it with the line ends of Unix: sed -i 's/\\r$//' {name}")));
    }
    let interpreter = line.split_whitespace().next()?;
    (!Path::new(interpreter).exists()).then(|| {
        let found = format!("{name} wants to be run by {interpreter}, and that is not there");
        (found, format!("install {interpreter}, or correct the first line of {name}"))
    })
}

fn is_mach(beginning: &[u8]) -> bool {
    let magic: [[u8; 4]; 3] = [[0xcf, 0xfa, 0xed, 0xfe], [0xce, 0xfa, 0xed, 0xfe], [0xca, 0xfe, 0xba, 0xbe]];
    magic.iter().any(|magic| beginning.starts_with(magic))
}

/// What last words mean, by what stands in them; the first that fits.
const WORDS: [(&[&str], &str); 12] = [
    (&["npm", "E404"], "the registry has no such package: check its name and version in args"),
    (&["docker", "pull access denied"], "check the image's name in args, or docker login"),
    (&["Docker daemon"], "start Docker, and see that your user may use it: docker ps"),
    (
        &["ModuleNotFoundError"],
        "install that module for the Python which the command runs, or give a virtual environment's own python as the \
         command",
    ),
    (&["No module named"], "install that module for the Python which the command runs, or use uvx"),
    (&["Cannot find module"], "install its dependencies, or correct the path in args"),
    (&["ERR_MODULE_NOT_FOUND"], "install its dependencies, or correct the path in args"),
    (&["EADDRINUSE"], "something has that port already: end the other copy, or give this one another port"),
    (
        &["Address already in use"],
        "something has that port already: end the other copy, or give another port",
    ),
    (
        &["getaddrinfo"],
        "it cannot reach the network: name the proxy in env (HTTPS_PROXY) if you are behind one, since servers get a \
         small set of variables only",
    ),
    (
        &["Unsupported engine"],
        "it needs another version of Node.js: give that one's npx or node as the command",
    ),
    (&["heap out of memory"], "give it more memory: NODE_OPTIONS=--max-old-space-size=4096 in env"),
];

/// What to do, by how the process ended and what it said last.
pub(super) fn of_last_words(error: &OpenError) -> Option<String> {
    let said = error.detail.stderr.as_deref().unwrap_or(&error.reason);
    let fits = |(needles, _): &&(&[&str], &str)| {
        needles.iter().all(|needle| said.to_lowercase().contains(&needle.to_lowercase()))
    };
    if let Some((_, fix)) = WORDS.iter().find(fits) {
        return Some((*fix).to_owned());
    }
    // A shell's and env's code for a program that is not found.
    let not_found = error.reason.contains("code 127");
    not_found.then(|| {
        "a program that it runs is not on its PATH: install it, or add its folder to env.PATH of the entry".to_owned()
    })
}

/// What stood on stdout in the place of messages.
pub(super) fn of_stdout(error: &OpenError) -> Option<Cause> {
    let (line, count) = error.detail.garbage.as_ref()?;
    let found = match count {
        1 => format!("it wrote a line to stdout that is no message: {line}"),
        _ => format!("it wrote {count} lines to stdout that are no messages, first: {line}"),
    };
    let fix = if line.to_ascii_lowercase().starts_with("content-length") {
        "it frames messages as language servers do: find its option for MCP over stdio, one message on each line"
    } else {
        "stdout is for messages alone: start it in its stdio mode, and have it log to stderr"
    };
    Some((found, fix.to_owned()))
}

/// Words that only a shell understands.
const SHELL_WORDS: [&str; 8] = ["cd", "export", "source", ".", "set", "alias", "eval", "exec"];
const SHELL_SIGNS: [&str; 6] = ["&&", "||", "|", ";", ">", "<"];

/// What is wrong with a command line whose program is not found.
pub(super) fn of_command(config: &ServerConfig) -> Option<String> {
    let Target::Child(target) = &config.target else { return None };
    let command = target.command.as_str();
    if Path::new(command).is_dir() {
        return Some("that is a folder: name the program in it".to_owned());
    }
    let assigned = command.split_once('=').map(|(name, _)| name).filter(|name| {
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    });
    if let Some(name) = assigned {
        return Some(format!("variables do not stand before the command: put {name} into env of the entry"));
    }
    let signs = |arg: &std::ffi::OsString| SHELL_SIGNS.iter().any(|sign| arg == *sign);
    if SHELL_WORDS.contains(&command) || target.child.args.iter().any(signs) {
        return Some(
            "no shell reads this line: give the folder in cwd and variables in env, or write \"command\": \"sh\", \
             \"args\": [\"-c\", \"...\"]"
                .to_owned(),
        );
    }
    let mut letters = command.chars();
    let drive =
        letters.next().is_some_and(|letter| letter.is_ascii_alphabetic()) && letters.next() == Some(':');
    (drive && !cfg!(windows)).then(|| {
        "that is a path of Windows, and Toolway runs on another system here: give the program's path on this one"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::of_program;

    #[test]
    fn a_file_that_cannot_be_run_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x");
        for (content, cause) in [
            (&b"#!/no/such/interpreter -x\n"[..], Some("/no/such/interpreter")),
            (b"#!/bin/sh\r\necho\r\n", Some("carriage return")),
            (b"#!/bin/sh\necho\n", None),
            (b"echo\n", Some("no #! line")),
            (b"", Some("no #! line")),
            (b"\x7fELF\x02", Some("processor")),
            (b"\xcf\xfa\xed\xfe", Some("processor")),
            (b"#!", None),
        ] {
            std::fs::write(&file, content).unwrap();
            let found = of_program(&file).map(|(found, _)| found);
            let fits = match cause {
                Some(cause) => found.as_deref().is_some_and(|found| found.contains(cause)),
                None => cfg!(windows) || found.is_none(),
            };
            assert!(fits, "{content:?}: {found:?}");
        }
        assert_eq!(of_program(&dir.path().join("none")), None);
    }
}
