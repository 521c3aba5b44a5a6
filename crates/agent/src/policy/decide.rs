//! Owns what rules say about one action. It asks nobody.

use std::path::{Path, PathBuf};

use toolway_config::{Environment, Problem};
use url::Url;

use super::action::{Action, PermissionMode};
use super::paths::{Ground, PathPattern, Place};
use super::rule::{PermissionRules, Rule};
use super::shell::{Denial, Script, allows, denies};
use super::suggest;
use super::token::{ShellPattern, Token, escaped};

/// What rules say about an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may happen.
    Allow,
    /// It may not.
    Deny {
        /// The rule, as written.
        rule: String,
        /// Where it stands.
        place: String,
    },
    /// Nothing says so: somebody is asked.
    Ask {
        /// Why, for people.
        reason: String,
        /// Rules that would allow it. Empty: none can.
        rules: Vec<String>,
    },
}

/// Files that decide what may run: a pattern with a wildcard allows no writing of them.
const GUARDED: [&str; 8] = [
    ".cursor/*.json",
    ".cursor/hooks/**",
    ".toolway/**",
    "toolway.json",
    ".mcp.json",
    ".git/hooks/**",
    ".git/config",
    ".vscode/*.json",
];

/// Rules made ready for one agent.
#[derive(Debug, Clone)]
pub(super) struct Rulebook {
    mode: PermissionMode,
    ground: Ground,
    allow: Vec<Ready>,
    deny: Vec<Ready>,
    doubts: Vec<Problem>,
    guarded: Vec<PathPattern>,
}

/// A rule made ready.
#[derive(Debug, Clone)]
struct Ready {
    rule: Rule,
    /// Of a rule for paths.
    path: Option<PathPattern>,
}

impl Rulebook {
    pub(super) fn new(
        mode: PermissionMode,
        rules: PermissionRules,
        cwd: &Path,
        roots: &[PathBuf],
        environment: &Environment,
    ) -> Self {
        let ground = Ground::new(cwd, roots, &environment.home, environment.platform);
        let own = environment.config_dir.join("**").to_string_lossy().into_owned();
        let patterns = GUARDED.into_iter().chain(["~/.cursor/*.json", "~/.cursor/hooks/**", &own]);
        let guarded = patterns.map(|pattern| ground.pattern(pattern)).collect();
        let PermissionRules { allow, deny, doubts, warnings: _ } = rules;
        let mut book = Self { mode, ground, allow: Vec::new(), deny: Vec::new(), doubts, guarded };
        for rule in deny {
            let ready = book.ready(rule);
            book.deny.push(ready);
        }
        book.permit(allow);
        book
    }

    /// Adds permissions.
    pub(super) fn permit(&mut self, rules: impl IntoIterator<Item = Rule>) {
        for rule in rules {
            let known = self.allow.iter().any(|ready| ready.rule.text == rule.text);
            if !known {
                let ready = self.ready(rule);
                self.allow.push(ready);
            }
        }
    }

    fn ready(&self, rule: Rule) -> Ready {
        let path = match &rule.token {
            Token::Read(pattern) | Token::Write(pattern) => Some(self.ground.pattern(pattern)),
            Token::Shell(_) | Token::Mcp { .. } | Token::Fetch(_) => None,
        };
        Ready { rule, path }
    }

    /// Whether any rule denies reading.
    pub(super) fn denies_reading(&self) -> bool {
        self.deny.iter().any(|ready| matches!(ready.rule.token, Token::Read(_)))
    }

    /// What the rules say.
    pub(super) fn decide(&self, action: &Action) -> Decision {
        let decision = match action {
            Action::Shell { command, cwd } => self.shell(command, cwd.as_deref()),
            Action::Read(path) => self.read(&self.ground.place(path, None)),
            Action::Write(path) => self.write(&self.ground.place(path, None)),
            Action::Mcp { server, tool, explicit } => self.mcp(server, tool, *explicit),
            Action::Fetch(url) => self.fetch(url),
        };
        match (decision, self.doubts.first()) {
            (Decision::Allow, Some(doubt)) => Decision::Ask {
                reason: format!("a rule cannot be understood and may deny it: {doubt}"),
                rules: Vec::new(),
            },
            (decision, _) => decision,
        }
    }

    fn ask_or(&self, reason: impl Into<String>, rules: Vec<String>) -> Decision {
        match self.mode {
            PermissionMode::Unrestricted => Decision::Allow,
            PermissionMode::Ask => Decision::Ask { reason: reason.into(), rules },
        }
    }

    fn read(&self, place: &Place) -> Decision {
        if let Some(denied) = self.denied_path(place, |token| matches!(token, Token::Read(_))) {
            return denied;
        }
        let allowed = self.ground.is_inside(place)
            || self.allowed_path(place, |token| matches!(token, Token::Read(_)), false);
        if allowed {
            return Decision::Allow;
        }
        self.ask_or(
            "it is outside the folders of this agent, and no rule allows it",
            path_rule("Read", place),
        )
    }

    fn write(&self, place: &Place) -> Decision {
        if let Some(denied) = self.denied_path(place, |token| matches!(token, Token::Write(_))) {
            return denied;
        }
        let is_guarded = self.guarded.iter().any(|pattern| self.ground.denies(pattern, place));
        if self.allowed_path(place, |token| matches!(token, Token::Write(_)), is_guarded) {
            return Decision::Allow;
        }
        let reason = if is_guarded {
            "it decides what may run here, and no rule names it without wildcards"
        } else {
            "no rule allows it"
        };
        self.ask_or(reason, path_rule("Write", place))
    }

    fn denied_path(&self, place: &Place, kind: impl Fn(&Token) -> bool) -> Option<Decision> {
        let mut of_kind = self.deny.iter().filter(|ready| kind(&ready.rule.token)).peekable();
        if of_kind.peek().is_some() && place.real.is_none() {
            let reason =
                "where its links lead cannot be known, and there are rules that deny paths".to_owned();
            return Some(Decision::Ask { reason, rules: Vec::new() });
        }
        let denies =
            |ready: &&Ready| ready.path.as_ref().is_some_and(|pattern| self.ground.denies(pattern, place));
        of_kind.find(denies).map(denied)
    }

    fn allowed_path(&self, place: &Place, kind: impl Fn(&Token) -> bool, exact: bool) -> bool {
        self.allow.iter().filter(|ready| kind(&ready.rule.token)).any(|ready| {
            ready
                .path
                .as_ref()
                .is_some_and(|pattern| (pattern.exact || !exact) && self.ground.allows(pattern, place))
        })
    }

    fn mcp(&self, server: &str, tool: &str, explicit: bool) -> Decision {
        let fits = |ready: &&Ready| match &ready.rule.token {
            Token::Mcp { server: servers, tool: tools } => servers.is_match(server) && tools.is_match(tool),
            _ => false,
        };
        if let Some(ready) = self.deny.iter().find(fits) {
            return denied(ready);
        }
        if explicit || self.allow.iter().any(|ready| fits(&ready)) {
            return Decision::Allow;
        }
        let rule = format!("Mcp({}:{})", escaped(server), escaped(tool));
        self.ask_or("the server comes from a file, and no rule allows the tool", vec![rule])
    }

    fn fetch(&self, url: &str) -> Decision {
        let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_lowercase));
        let Some(host) =
            host.map(|host| host.trim_end_matches('.').to_owned()).filter(|host| !host.is_empty())
        else {
            let any = self.deny.iter().any(|ready| matches!(ready.rule.token, Token::Fetch(_)));
            let reason = "it names no host".to_owned();
            return if any {
                Decision::Ask { reason, rules: Vec::new() }
            } else {
                self.ask_or(reason, Vec::new())
            };
        };
        let fits =
            |ready: &&Ready| matches!(&ready.rule.token, Token::Fetch(pattern) if pattern.is_match(&host));
        if let Some(ready) = self.deny.iter().find(fits) {
            return denied(ready);
        }
        if self.allow.iter().any(|ready| fits(&ready)) {
            return Decision::Allow;
        }
        self.ask_or("no rule allows the host", vec![format!("WebFetch({})", escaped(&host))])
    }

    fn shell(&self, text: &str, cwd: Option<&Path>) -> Decision {
        let script = Script::of(text);
        let cwd = cwd.map(|cwd| self.ground.cwd.join(cwd));
        let mut perhaps = None;
        for ready in &self.deny {
            let Token::Shell(pattern) = &ready.rule.token else { continue };
            match denies(pattern, &script) {
                Denial::Yes(_) => return denied(ready),
                Denial::Perhaps(why) => perhaps = perhaps.or(Some((ready, why))),
                Denial::No => {}
            }
        }
        for (word, is_write) in redirections(&script) {
            let kind = |token: &Token| {
                if is_write { matches!(token, Token::Write(_)) } else { matches!(token, Token::Read(_)) }
            };
            let first = self.deny.iter().find(|ready| kind(&ready.rule.token));
            match self.target(&word.text, word.known && !script.moves, cwd.as_deref()) {
                Some(place) => {
                    if let Some(denied) = self.denied_path(&place, kind) {
                        return denied;
                    }
                }
                None if is_device(&word.text) => {}
                None => {
                    perhaps =
                        perhaps.or(first.map(|ready| (ready, "a file of it is known when it runs alone")));
                }
            }
        }
        if let Some((ready, why)) = perhaps {
            let reason = format!("the rule {} ({}) may deny it: {why}", ready.rule.text, ready.rule.place);
            return Decision::Ask { reason, rules: Vec::new() };
        }
        self.allowed_shell(&script, cwd.as_deref())
    }

    fn allowed_shell(&self, script: &Script, cwd: Option<&Path>) -> Decision {
        let patterns: Vec<&ShellPattern> = self
            .allow
            .iter()
            .filter_map(
                |ready| if let Token::Shell(pattern) = &ready.rule.token { Some(pattern) } else { None },
            )
            .collect();
        if patterns.iter().any(|pattern| pattern.all) {
            return Decision::Allow;
        }
        if let Some(why) = script.unclear {
            return self.ask_or(format!("no rule can allow it: {why}"), Vec::new());
        }
        let mut missing = Vec::new();
        let mut rules = Some(Vec::new());
        for command in &script.commands {
            if !patterns.iter().any(|pattern| allows(pattern, command)) {
                missing.push(command.shown());
                rules = rules.zip(suggest::rule(command)).map(|(rules, rule)| [rules, vec![rule]].concat());
            }
        }
        let writes = script.writes.iter().map(|word| (word, true));
        for (word, is_write) in writes.chain(script.reads.iter().map(|word| (word, false))) {
            if is_device(&word.text) {
                continue;
            }
            let place = self.target(&word.text, word.known && !script.moves, cwd);
            let decision = place.map(|place| if is_write { self.write(&place) } else { self.read(&place) });
            match decision {
                Some(Decision::Allow) => continue,
                Some(Decision::Ask { rules: more, .. }) if !more.is_empty() => {
                    rules = rules.map(|rules| [rules, more].concat());
                }
                _ => rules = None,
            }
            missing.push(format!("{} {}", if is_write { ">" } else { "<" }, word.text));
        }
        if missing.is_empty() && !script.commands.is_empty() {
            return Decision::Allow;
        }
        let mut seen = std::collections::BTreeSet::new();
        let mut rules = rules.unwrap_or_default();
        rules.retain(|rule| seen.insert(rule.clone()));
        self.ask_or(format!("no rule allows {}", missing.join(", ")), rules)
    }

    /// The file of a redirection, if it can be known.
    fn target(&self, text: &str, known: bool, cwd: Option<&Path>) -> Option<Place> {
        let path = self.ground.expand_home(text);
        let known = known || (path.is_absolute() && !text.contains(['…', '*', '?', '[', '{']));
        (known && !is_device(text)).then(|| self.ground.place(&path, cwd))
    }
}

fn redirections(script: &Script) -> Vec<(&super::shell::Word, bool)> {
    let mut found = Vec::new();
    for script in script.all() {
        found.extend(script.writes.iter().map(|word| (word, true)));
        found.extend(script.reads.iter().map(|word| (word, false)));
    }
    found
}

fn is_device(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr" | "/dev/tty" | "NUL")
}

fn denied(ready: &Ready) -> Decision {
    Decision::Deny { rule: ready.rule.text.clone(), place: ready.rule.place.clone() }
}

/// The rule that would allow just this path; none where its name could be taken for a pattern.
fn path_rule(kind: &str, place: &Place) -> Vec<String> {
    let path = place.real.as_ref().map(|real| real.to_string_lossy().into_owned());
    let plain = path.filter(|path| !path.contains(['*', '?', '\u{fffd}', '\n']));
    plain.map(|path| format!("{kind}({path})")).into_iter().collect()
}
