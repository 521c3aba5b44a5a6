//! From a front's spec to its running processes: the upstream first, then the command with everything filled in.

use std::fs::File;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Context as _;

use super::{HttpLink, HttpUpstream, Link, Running, Spec, StartOptions, StdioLink};
use crate::front::{Member, kind, members};
use crate::json;

/// The servers of a gateway as JSON.
const SERVERS: &str = "{servers}";

static SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// What stands for the braces in a front's command, files and environment.
#[derive(Debug)]
pub(super) struct Filling {
    pairs: Vec<(&'static str, String)>,
    upstream: Vec<String>,
}

impl Filling {
    fn text(&self, text: &str) -> String {
        self.pairs.iter().fold(text.to_owned(), |all, (from, to)| all.replace(from, to))
    }

    fn command(&self, command: &[String]) -> Vec<String> {
        let mut argv = vec![];
        for arg in command {
            if arg == "{up}" {
                argv.extend(self.upstream.iter().cloned());
            } else {
                argv.push(self.text(arg));
            }
        }
        argv
    }
}

fn upstream_argv(me: &str, flags: &[String], in_shell: bool) -> Vec<String> {
    let mut argv: Vec<String> = [me, "server", "--transport", "stdio"].map(String::from).into();
    argv.extend(flags.iter().cloned());
    if !in_shell {
        return argv;
    }
    let quoted: Vec<String> = argv.iter().map(|a| format!("'{a}'")).collect();
    vec!["/bin/sh".into(), "-c".into(), format!("{}; exit $?", quoted.join(" "))]
}

fn as_one_string(argv: &[String]) -> String {
    let quoted: Vec<String> =
        argv.iter().map(|a| if a.contains(' ') { format!("\"{a}\"") } else { a.clone() }).collect();
    quoted.join(" ")
}

fn as_json(argv: &[String]) -> String {
    let quoted: Vec<String> = argv.iter().map(|a| json::quote(a)).collect();
    format!("[{}]", quoted.join(","))
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn new_folder(options: &StartOptions) -> anyhow::Result<PathBuf> {
    let n = SEQUENCE.fetch_add(1, Ordering::Relaxed);
    let new = || options.tmp.join(format!("toolway-bench-{}-{n}", std::process::id()));
    let tmp = options.folder.clone().unwrap_or_else(new);
    std::fs::create_dir_all(&tmp).with_context(|| tmp.display().to_string())?;
    Ok(tmp)
}

impl Running {
    /// Starts the upstream (if it is HTTP) and the front, with a word to the upstream between; sends nothing yet.
    pub(crate) fn spawn(
        spec: &Spec,
        options: &StartOptions,
        before: impl FnOnce(&mut HttpUpstream),
    ) -> anyhow::Result<(Self, Instant)> {
        let me = std::env::current_exe()?.to_string_lossy().into_owned();
        let tmp = new_folder(options)?;
        let pidfile = tmp.join("upstream.pid");
        let mut flags: Vec<String> = vec!["--pidfile".into(), pidfile.to_string_lossy().into_owned()];
        flags.extend(options.upstream_flags.iter().cloned());
        if options.upstream == "http-sse" {
            flags.push("--reply-sse".into());
        }
        let kind = kind(&options.upstream);
        let mut upstream = match kind {
            "stdio" => None,
            kind => Some(HttpUpstream::start(kind, 0, &flags)?),
        };
        if let Some(upstream) = &mut upstream {
            before(upstream);
        }
        let end = if kind == "sse" { "sse" } else { "mcp" };
        let url = upstream.as_ref().map(|u| format!("http://127.0.0.1:{}/{end}", u.port));
        let argv = upstream_argv(&me, &flags, options.in_shell);
        let port = free_port()?;
        let filling = Filling {
            pairs: vec![
                // Before the others, which may be inside.
                (SERVERS, members::as_json(&options.members, &argv)),
                ("{backends}", members::as_toml(&options.members, &argv)),
                ("{self}", me),
                ("{url}", url.unwrap_or_default()),
                ("{port}", port.to_string()),
                ("{tmp}", tmp.to_string_lossy().into_owned()),
                ("{upstr}", as_one_string(&argv)),
                ("{up_cmd_json}", json::quote(&argv[0])),
                ("{up_args_json}", as_json(&argv[1..])),
            ],
            upstream: argv,
        };
        for (name, text) in &spec.files {
            std::fs::write(tmp.join(name), filling.text(text))?;
        }
        let command = spec.command(&options.upstream);
        let command =
            command.with_context(|| format!("{} has no command for {}", spec.name, options.upstream))?;
        let argv = filling.command(command);
        let begin = Instant::now();
        let mut run = Self {
            link: Link::Http(HttpLink::new(String::new(), spec.path.clone())),
            child: None,
            pid: 0,
            upstream,
            tmp,
            is_own: options.folder.is_none(),
            pidfile,
            filling,
            extra: vec![],
            init: vec![],
            start_ms: 0.0,
            prefixes: spec.prefixes(&options.members),
            next: 0,
        };
        if argv.is_empty() {
            let port = run.upstream.as_ref().context("no command")?.port;
            run.link = Link::Http(HttpLink::new(format!("127.0.0.1:{port}"), spec.path.clone()));
        } else {
            run.launch(spec, &argv, port)?;
        }
        Ok((run, begin))
    }

    /// Writes the front's files again, with these servers: by a rename, or into the files that are there.
    pub(crate) fn rewrite(&mut self, spec: &Spec, servers: &[Member], by_rename: bool) -> anyhow::Result<()> {
        let json = members::as_json(servers, &self.filling.upstream);
        for (_, text) in self.filling.pairs.iter_mut().filter(|(from, _)| *from == SERVERS) {
            text.clone_from(&json);
        }
        for (name, text) in &spec.files {
            let (path, new) = (self.tmp.join(name), self.tmp.join(format!("{name}.new")));
            let at = if by_rename { &new } else { &path };
            std::fs::write(at, self.filling.text(text)).with_context(|| at.display().to_string())?;
            if by_rename {
                std::fs::rename(new, path)?;
            }
        }
        Ok(())
    }

    fn launch(&mut self, spec: &Spec, argv: &[String], port: u16) -> anyhow::Result<()> {
        let filling = &self.filling;
        // The front runs in a folder of its own, so a relative path is made absolute; a bare name is looked up.
        let program =
            if argv[0].contains('/') { std::path::absolute(&argv[0])? } else { PathBuf::from(&argv[0]) };
        let mut command = Command::new(program);
        command.args(&argv[1..]).current_dir(&self.tmp).env("HOME", &self.tmp).env("NO_COLOR", "1");
        command.stderr(File::create(self.tmp.join("stderr.log"))?);
        command.envs(spec.env.iter().map(|(k, v)| (k, filling.text(v))));
        if spec.is_http {
            command.stdin(Stdio::null()).stdout(File::create(self.tmp.join("stdout.log"))?);
        } else {
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
        }
        let mut child = command.spawn().with_context(|| argv[0].clone())?;
        self.pid = i32::try_from(child.id())?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        self.child = Some(child);
        self.link = if spec.is_http {
            Link::Http(HttpLink::new(format!("127.0.0.1:{port}"), filling.text(&spec.path)))
        } else {
            let (stdin, stdout) = pipes.context("no pipes")?;
            Link::Stdio(StdioLink::new(stdin, stdout)?)
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstream_is_spelled_as_each_front_wants_it() {
        let argv = upstream_argv("/a b/x", &["--drain".into()], false);
        assert_eq!(as_one_string(&argv), "\"/a b/x\" server --transport stdio --drain");
        assert_eq!(as_json(&argv[1..]), r#"["server","--transport","stdio","--drain"]"#);
        let filling = Filling { pairs: vec![("{url}", "http://u".into())], upstream: argv.clone() };
        let command = ["{up}", "--url={url}"].map(String::from);
        assert_eq!(filling.command(&command), [argv, vec!["--url=http://u".into()]].concat());
        assert_eq!(upstream_argv("x", &[], true)[2], "'x' 'server' '--transport' 'stdio'; exit $?");
    }
}
