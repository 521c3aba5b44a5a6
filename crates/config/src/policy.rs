//! Owns what the administrator allows: servers by name, command or URL. It binds every source, inline ones too. What
//! cannot be understood closes everything: a policy never opens by mistake. Pure.

use std::path::{Path, PathBuf};

use toolway_secret::Secret;
use url::Url;

use crate::digest::STEERING;
use crate::expanded::{Expanded, ExpandedStdio, ExpandedTarget};
use crate::glob::fits;
use crate::lines;
use crate::problem::Problem;
use crate::tree::Node;

#[cfg(test)]
mod tests;

/// What the administrator allows. The default allows all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// The file it stands in.
    pub file: Option<PathBuf>,
    /// `None`: all. First the allowed ones...
    pub allow: Option<Vec<Rule>>,
    /// ...then without these.
    pub deny: Vec<Rule>,
    /// Why nothing at all may start: the file could not be understood, or says so.
    pub closed: Option<String>,
}

/// One rule: all that it names must fit. A text in a list of rules is a rule with that name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    /// A glob for the name.
    pub name: Option<String>,
    /// A glob for the command line: program and arguments, one space between them; without a space in it, for the
    /// program alone.
    pub command: Option<String>,
    /// A glob for the URL; scheme, host and path are matched apart, so that a path cannot pose as a host.
    pub url: Option<String>,
    /// The line it stands in.
    pub line: u32,
}

/// What else an administrator's file may hold.
const BESIDE: [&str; 4] = ["policy", "mcpServers", "$schema", "inputs"];

impl Policy {
    /// Whether an administrator's file says no more and no less than can be understood, outside its servers. An error
    /// closes everything.
    pub(crate) fn is_whole(root: &Node, doubled: &[Problem]) -> Result<(), Problem> {
        let of_servers = |problem: &&Problem| {
            problem.field.as_deref().is_some_and(|field| field.starts_with("/mcpServers/"))
        };
        if let Some(problem) = doubled.iter().find(|problem| !of_servers(problem)) {
            return Err(Problem { field: None, ..problem.clone() });
        }
        let members = root.members().unwrap_or_default();
        let odd = members.iter().find(|(key, _)| !BESIDE.contains(&key.name.as_str()));
        let Some((key, _)) = odd else { return Ok(()) };
        let problem = Problem::error(format!("{:?} is not known in an administrator's file", key.name));
        let close = |name: &&&str| strsim::damerau_levenshtein(&key.name, name) <= 2;
        let hint = match BESIDE.iter().find(close) {
            Some(name) => format!("did you mean {name}?"),
            None => "it has policy and mcpServers".to_owned(),
        };
        Err(problem.at(key.at).hint(hint))
    }

    /// Reads the member `policy` of the administrator's file. An error closes everything.
    pub(crate) fn read(node: &Node, file: &Path) -> Result<Self, Problem> {
        let fault =
            |message: &str, node: &Node| Problem::error(message).file(file).at(node.at).field("policy");
        let members = node.members().ok_or_else(|| fault("must be an object", node))?;
        let mut policy = Self { file: Some(file.to_path_buf()), ..Self::default() };
        for (key, value) in members {
            match key.name.as_str() {
                "allow" | "allowedServers" => policy.allow = Some(rules(value, file)?),
                "deny" | "deniedServers" => policy.deny = rules(value, file)?,
                "disableAll" => match value.as_bool() {
                    Some(true) => policy.closed = Some("disableAll".to_owned()),
                    Some(false) => {}
                    None => return Err(fault("disableAll must be true or false", value)),
                },
                _ => {
                    let problem = fault(&format!("{:?} is not known", key.name), value);
                    return Err(problem.hint("a policy has allow, deny and disableAll"));
                }
            }
        }
        Ok(policy)
    }

    /// The policy when its file cannot be understood.
    pub(crate) fn closed(file: &Path, problem: &Problem) -> Self {
        let reason = format!("the policy cannot be read: {}", problem.text());
        Self { file: Some(file.to_path_buf()), closed: Some(reason), ..Self::default() }
    }

    /// Why a server must not start; `expanded` is what it would start with.
    pub fn forbids(&self, name: &str, expanded: &Expanded) -> Option<String> {
        let file = self.file.as_deref().unwrap_or(Path::new("")).display();
        if let Some(reason) = &self.closed {
            return Some(format!("{file}: {reason}"));
        }
        if let Some(rule) = self.deny.iter().find(|rule| rule.denies(name, expanded)) {
            return Some(format!("{file}:{}: denied by {rule}", rule.line));
        }
        let allowed =
            self.allow.as_ref().is_none_or(|rules| rules.iter().any(|rule| rule.allows(name, expanded)));
        (!allowed).then(|| format!("{file}: not among the allowed servers"))
    }
}

fn rules(node: &Node, file: &Path) -> Result<Vec<Rule>, Problem> {
    let fault = |message: &str, node: &Node| Problem::error(message).file(file).at(node.at).field("policy");
    let items = node.items().ok_or_else(|| fault("must be a list of rules", node))?;
    let mut rules = Vec::new();
    for item in items {
        let mut rule = Rule { line: item.at.line, ..Rule::default() };
        if let Some(name) = item.as_str() {
            rule.name = Some(name.to_owned());
        } else {
            let members = item.members().ok_or_else(|| fault("a rule is an object or a name", item))?;
            for (key, value) in members {
                let text = value.as_str().ok_or_else(|| fault("a pattern is a string", value))?;
                let slot = match key.name.as_str() {
                    "name" => &mut rule.name,
                    "command" => &mut rule.command,
                    "url" => &mut rule.url,
                    _ => return Err(fault("a rule has name, command or url", value)),
                };
                *slot = Some(text.to_owned());
            }
        }
        if rule.name.is_none() && rule.command.is_none() && rule.url.is_none() {
            return Err(fault("a rule needs a name, a command or a url", item));
        }
        rules.push(rule);
    }
    Ok(rules)
}

impl Rule {
    /// As a rule that forbids: in doubt it fits. A program fits by its path and by its bare name, in any case.
    fn denies(&self, name: &str, expanded: &Expanded) -> bool {
        let by_name = self.name.as_ref().is_none_or(|pattern| fits(pattern, name, true));
        let by_command = self.command.as_ref().is_none_or(|pattern| match &expanded.target {
            ExpandedTarget::Stdio(stdio) => {
                // What a wrapper, a shell or a relay starts is started, too.
                lines::any(&words_of(stdio), &mut |line| {
                    let Some((program, args)) = line.split_first() else { return false };
                    [*program, bare_program(program)]
                        .into_iter()
                        .any(|program| fits_command(pattern, program, args, true))
                })
            }
            ExpandedTarget::Remote(_) => false,
        });
        let by_url = self.url.as_ref().is_none_or(|pattern| match &expanded.target {
            ExpandedTarget::Remote(remote) => fits_url(pattern, remote.url.expose()),
            ExpandedTarget::Stdio(_) => false,
        });
        by_name && by_command && by_url
    }

    /// As a rule that allows: the program as it is written, and nothing beside it that decides what is run.
    fn allows(&self, name: &str, expanded: &Expanded) -> bool {
        let by_name = self.name.as_ref().is_none_or(|pattern| fits(pattern, name, false));
        let by_command = self.command.as_ref().is_none_or(|pattern| match &expanded.target {
            ExpandedTarget::Stdio(stdio) => {
                let steers =
                    |(name, _): &(String, _)| STEERING.iter().any(|known| known.eq_ignore_ascii_case(name));
                words_of(stdio)
                    .split_first()
                    .is_some_and(|(program, args)| fits_command(pattern, program, args, cfg!(windows)))
                    && !stdio.env.iter().any(steers)
            }
            ExpandedTarget::Remote(_) => false,
        });
        let by_url = self.url.as_ref().is_none_or(|pattern| match &expanded.target {
            ExpandedTarget::Remote(remote) => fits_url(pattern, remote.url.expose()),
            ExpandedTarget::Stdio(_) => false,
        });
        by_name && by_command && by_url
    }
}

/// `npx` for `/usr/bin/npx` and `C:\node\npx.cmd`.
fn bare_program(command: &str) -> &str {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
    match name.rsplit_once('.') {
        Some((stem, ending))
            if ["exe", "cmd", "bat", "com", "ps1"].iter().any(|e| ending.eq_ignore_ascii_case(e)) =>
        {
            stem
        }
        _ => name,
    }
}

/// Program and arguments.
fn words_of(stdio: &ExpandedStdio) -> Vec<&str> {
    std::iter::once(stdio.command.as_str()).chain(stdio.args.iter().map(Secret::expose)).collect()
}

fn fits_command(pattern: &str, program: &str, args: &[&str], any_case: bool) -> bool {
    if !pattern.contains(' ') && fits(pattern, program, any_case) {
        return true;
    }
    let mut line = program.to_owned();
    for arg in args {
        line.push(' ');
        line.push_str(arg);
    }
    fits(pattern, &line, any_case)
}

/// `https://*.example.com/mcp*`; without a scheme any fits, without a path any fits.
fn fits_url(pattern: &str, url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let (scheme, rest) =
        pattern.split_once("://").map_or((None, pattern), |(scheme, rest)| (Some(scheme), rest));
    let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
    let name = url.host_str().unwrap_or_default();
    let with_port = format!("{name}:{}", url.port_or_known_default().unwrap_or_default());
    let host_fits =
        if split_port(host).is_some() { fits(host, &with_port, true) } else { fits(host, name, true) };
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let full_path = format!("{}{query}", url.path());
    scheme.is_none_or(|scheme| fits(scheme, url.scheme(), true))
        && host_fits
        && path.is_none_or(|path| fits(&format!("/{path}"), &full_path, false))
}

/// The port of a host pattern, which may hold an IPv6 address in brackets.
fn split_port(host: &str) -> Option<&str> {
    let (before, port) = host.rsplit_once(':')?;
    (!port.contains(']') && (!before.contains(':') || before.ends_with(']'))).then_some(port)
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [("name", &self.name), ("command", &self.command), ("url", &self.url)];
        let parts =
            parts.iter().filter_map(|(what, pattern)| Some(format!("{what} {:?}", pattern.as_ref()?)));
        f.write_str(&parts.collect::<Vec<_>>().join(" and "))
    }
}
