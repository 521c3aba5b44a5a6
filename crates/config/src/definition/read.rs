//! Owns the way from an entry's tree to a definition: every fault at once, each with its place. Reads no file.

use std::collections::{BTreeMap, HashMap};

use crate::dialect::{Dialect, Field};
use crate::origin::{ORIGIN, dialect_named};
use crate::problem::{Position, Problem};
use crate::template::{self, Piece};
use crate::tree::{Key, Node};

use super::check::{env_name_fault, header_name_fault, header_value_fault, url_fault};
use super::reader::{Reader, nearest};
use super::{
    Auth, Definition, GrantType, HeaderCase, InheritEnv, RemoteKind, RemoteTarget, StdioTarget, Target, Text,
    Tls, options,
};

/// The most characters of `tls.caBundle`.
const LONGEST_BUNDLE: usize = 131_072;
/// What only a child process has, and what only an address has.
const STDIO_ONLY: [&str; 4] = ["args", "env", "envFile", "inheritEnv"];
const REMOTE_ONLY: [&str; 4] = ["headers", "auth", "tls", "headerCase"];
/// Where the address may stand; the last two are other clients' spellings.
const URLS: [&str; 3] = ["url", "serverUrl", "httpUrl"];
const BOTH: [&str; 5] = ["type", "command", "cwd", "url", "placement"];

/// What one entry turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A server.
    Definition(Box<Definition>),
    /// Only `enabled` or `disabled`: it switches a server of that name on or off.
    Switch(bool),
    /// It has faults, which are among the problems.
    Invalid,
}

/// One entry as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadEntry {
    /// What it is.
    pub content: Content,
    /// Each field, dotted, and where it stands; nowhere if it was given by a program.
    pub fields: BTreeMap<String, Option<Position>>,
    /// All that is wrong, without the file's name.
    pub problems: Vec<Problem>,
}

impl Definition {
    /// Reads the entry of a server, whose name stands at `at`. Clients with other shapes hand over a tree in this one:
    /// `command`, `args`, `env`, `cwd`, `envFile` or `url`, `headers`, `auth`, with `type`, and Toolway's own options.
    pub fn read(name: &str, at: Position, node: &Node, dialect: Dialect) -> ReadEntry {
        let dialect = if dialect == Dialect::Toolway { own_dialect(node) } else { dialect };
        let mut reader = Reader::new(name, dialect);
        let members = node.members().unwrap_or_default();
        if node.members().is_none() {
            reader.error(node.at, "", format!("must be an object, and is {}", node.kind()));
        }
        let is_switch = |(key, _): &(Key, Node)| matches!(key.name.as_str(), "enabled" | "disabled");
        if !members.is_empty() && members.iter().all(is_switch) {
            let switch = options::enabled(&mut reader, node);
            if switch.is_some() || !reader.problems.is_empty() {
                return finish(reader, switch.map(Content::Switch));
            }
        }
        let target = node.members().is_some().then(|| target(&mut reader, at, node)).flatten();
        let options = options::read(&mut reader, node);
        let known: Vec<&str> = known_members(dialect);
        // Where neither command nor url is given, the hint there has told what this one was meant to be.
        let told = |key: &Key| reader_told(node, &key.name);
        let (told, rest): (Vec<_>, Vec<_>) = members.iter().cloned().partition(|(key, _)| told(key));
        reader.unknown(&rest, "", &known);
        let is_known = |key: &Key| known.contains(&key.name.as_str());
        let unknown = rest.iter().chain(&told).filter(|(key, _)| !is_known(key));
        let unknown = unknown.map(|(key, value)| (key.name.clone(), value.to_json())).collect();
        let content =
            target.map(|target| Content::Definition(Box::new(Self { dialect, target, options, unknown })));
        finish(reader, content)
    }
}

/// Whether that member was probably meant to be the missing command or url.
fn reader_told(node: &Node, name: &str) -> bool {
    given(node, "command").is_none()
        && url_of(node).is_none()
        && !BOTH.contains(&name)
        && nearest(name, &["command", "url"]).is_some()
}

fn finish(reader: Reader<'_>, content: Option<Content>) -> ReadEntry {
    let Reader { mut problems, fields, .. } = reader;
    let faulty = problems.iter().any(Problem::is_error);
    problems.sort_by_key(|problem| problem.at.map(|at| at.offset));
    let content = content.filter(|_| !faulty).unwrap_or(Content::Invalid);
    ReadEntry { content, fields, problems }
}

/// An entry that was imported keeps its texts as they were, and says whose placeholders they hold.
fn own_dialect(node: &Node) -> Dialect {
    let origin = node.get(ORIGIN).and_then(|origin| origin.get("dialect"));
    dialect_named(origin.and_then(Node::as_str))
}

/// The members that an entry of Toolway's own files may have, in their own spelling.
pub(crate) fn own_members() -> Vec<&'static str> {
    let names = [&BOTH[..], &STDIO_ONLY, &REMOTE_ONLY, &options::KNOWN];
    names.concat().into_iter().chain([ORIGIN]).collect()
}

fn known_members(dialect: Dialect) -> Vec<&'static str> {
    let mut known: Vec<&str> = [&BOTH[..], &STDIO_ONLY, &REMOTE_ONLY, &options::KNOWN].concat();
    if dialect != Dialect::Inline {
        known.extend(URLS.iter().skip(1).chain(&options::ALIASES).chain(&[ORIGIN]));
    }
    known
}

/// A member that says something.
pub(super) fn given<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    node.get(name).filter(|value| value.value != crate::tree::Value::Null)
}

fn url_of(node: &Node) -> Option<(&'static str, &Node)> {
    URLS.iter().find_map(|name| Some((*name, given(node, name)?)))
}

/// What `type` says, in one spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Remote(RemoteKind),
}

fn kind(reader: &mut Reader<'_>, node: &Node) -> Option<Kind> {
    let node = given(node, "type")?;
    let text = reader.string(node, "type")?;
    let plain = text.to_ascii_lowercase().replace(['-', '_', ' '], "");
    let exact = !reader.is_inline() || plain == text;
    match plain.as_str() {
        "stdio" if exact => return Some(Kind::Stdio),
        "http" if exact => return Some(Kind::Remote(RemoteKind::Http)),
        "sse" if exact => return Some(Kind::Remote(RemoteKind::Sse)),
        "local" if !reader.is_inline() => return Some(Kind::Stdio),
        "streamablehttp" | "remote" if !reader.is_inline() => return Some(Kind::Remote(RemoteKind::Http)),
        "ws" | "websocket" => reader.error(node.at, "type", "WebSocket is no transport of MCP"),
        _ => {
            let problem = Problem::error(format!("the type {text:?} is not supported"));
            reader.note(problem.hint("it is stdio, http or sse"), node.at, "type");
        }
    }
    None
}

fn target(reader: &mut Reader<'_>, at: Position, node: &Node) -> Option<Target> {
    let kind = kind(reader, node);
    let command = given(node, "command");
    let url = url_of(node).filter(|(name, _)| !reader.is_inline() || *name == "url");
    for (name, other) in URLS.iter().filter_map(|name| Some((*name, given(node, name)?))) {
        if !reader.is_inline() && url.is_some_and(|(first, _)| first != name) {
            reader.error(other.at, name, "stands beside another url: which one is meant?");
        }
    }
    match (command, url) {
        (Some(_), Some(_)) => {
            let problem = Problem::error("both command and url: it is ambiguous");
            reader.note(problem.hint("a server has one of the two"), at, "");
            None
        }
        (None, None) => {
            let mut typed = node.members().unwrap_or_default().iter();
            let near = typed.find_map(|(key, _)| Some((key, nearest(&key.name, &["command", "url"])?)));
            let problem = Problem::error("neither command nor url");
            let problem = match near {
                Some((_, near)) => problem.hint(format!("did you mean {near}?")),
                None => problem.hint("a server has one of the two"),
            };
            let place = near.map_or(at, |(key, _)| key.at);
            reader.note(problem, place, "");
            None
        }
        (Some(command), None) => {
            if let (Some(Kind::Remote(_)), Some(kind)) = (kind, node.get("type")) {
                reader.error(kind.at, "type", "the type is that of an address, and there is a command");
            }
            misplaced(reader, node, &REMOTE_ONLY, "a command");
            stdio(reader, node, command).map(Target::Stdio)
        }
        (None, Some((name, url))) => {
            if let (Some(Kind::Stdio), Some(kind)) = (kind, node.get("type")) {
                reader.error(kind.at, "type", "the type is that of a command, and there is a url");
            }
            misplaced(reader, node, &STDIO_ONLY, "a url");
            if let Some(cwd) = given(node, "cwd") {
                reader.note(Problem::warning("has no effect beside a url"), cwd.at, "cwd");
            }
            let said = match kind {
                Some(Kind::Remote(kind)) => kind,
                _ if name == "httpUrl" => RemoteKind::Http,
                _ => RemoteKind::Auto,
            };
            remote(reader, node, name, url, said).map(Target::Remote)
        }
    }
}

fn misplaced(reader: &mut Reader<'_>, node: &Node, names: &[&str], beside: &str) {
    for name in names {
        if let Some(value) = given(node, name) {
            let harmless =
                value.members().is_some_and(<[_]>::is_empty) || value.items().is_some_and(<[_]>::is_empty);
            if !harmless {
                reader.objection(value.at, name, format!("has no effect beside {beside}"));
            }
        }
    }
}

fn stdio(reader: &mut Reader<'_>, node: &Node, command: &Node) -> Option<StdioTarget> {
    let command = reader.text(command, "command");
    if let Some(command) = command.as_ref().filter(|command| command.raw().trim().is_empty()) {
        let at = command.at.unwrap_or(node.at);
        reader.error(at, "command", "is empty");
    }
    let args = given(node, "args").map(|args| reader.texts(args, "args"));
    let mut env: Vec<(String, Text)> = Vec::new();
    if let Some(map) = given(node, "env") {
        for (key, value) in reader.map(map, "env") {
            if let Some(fault) = env_name_fault(&key.name) {
                reader.error(key.at, "env", fault);
            }
            env.push((key.name.clone(), value));
        }
    }
    let env_file = given(node, "envFile").and_then(|file| reader.text(file, "envFile"));
    let cwd = given(node, "cwd").and_then(|cwd| reader.text(cwd, "cwd"));
    let cwd = cwd.filter(|cwd| !cwd.raw().is_empty());
    let inherit_env = given(node, "inheritEnv").map_or(InheritEnv::Base, |value| match value.as_bool() {
        Some(true) => InheritEnv::All,
        Some(false) => InheritEnv::Base,
        None => InheritEnv::Names(reader.strings(value, "inheritEnv")),
    });
    let target = StdioTarget { command: command?, args, env, env_file, inherit_env, cwd };
    placeholders(reader, node, &target);
    Some(target)
}

/// Notes placeholders that are not understood, wherever they stand.
fn placeholders(reader: &mut Reader<'_>, node: &Node, target: &StdioTarget) {
    let args = target.args.iter().flatten().enumerate();
    let args = args.map(|(index, arg)| (format!("args.{index}"), Field::Args, arg));
    let env = target.env.iter().map(|(name, value)| (format!("env.{name}"), Field::Env, value));
    let single = [
        ("command", Field::Command, Some(&target.command)),
        ("envFile", Field::Cwd, target.env_file.as_ref()),
        ("cwd", Field::Cwd, target.cwd.as_ref()),
    ];
    let single = single.into_iter().filter_map(|(name, field, text)| Some((name.to_owned(), field, text?)));
    let all: Vec<_> = single.chain(args).chain(env).collect();
    for (name, field, text) in all {
        parsed(reader, node, &name, field, text);
    }
}

/// The pieces of a text; faults are noted.
fn parsed(reader: &mut Reader<'_>, node: &Node, name: &str, field: Field, text: &Text) -> Option<Vec<Piece>> {
    match template::parse(text.raw(), reader.dialect, field) {
        Ok(pieces) => Some(pieces),
        Err(fault) => {
            reader.note(Problem::error(fault.message).hint(fault.hint), text.at.unwrap_or(node.at), name);
            None
        }
    }
}

/// The text, if no placeholder is in it.
fn literal(pieces: &[Piece]) -> Option<&str> {
    match pieces {
        [] => Some(""),
        [Piece::Literal(text)] => Some(text),
        _ => None,
    }
}

fn remote(
    reader: &mut Reader<'_>,
    node: &Node,
    url_name: &str,
    url: &Node,
    kind: RemoteKind,
) -> Option<RemoteTarget> {
    let url_at = url.at;
    let url = reader.text(url, url_name)?;
    if let Some(pieces) = parsed(reader, node, url_name, Field::Url, &url)
        && let Some((fault, hint)) = literal(&pieces).and_then(url_fault)
    {
        reader.note(Problem::error(fault).hint(hint), url_at, url_name);
    }
    let headers = given(node, "headers").map(|map| headers(reader, node, map)).unwrap_or_default();
    let auth = given(node, "auth").and_then(|auth| auth_of(reader, node, auth));
    let is_authorization = |(name, _): &&(String, Text)| name.eq_ignore_ascii_case("authorization");
    if let (Some(_), Some(auth), Some((name, _))) =
        (&auth, node.get("auth"), headers.iter().find(is_authorization))
    {
        let problem = Problem::error(format!("stands beside the header {name}, and only one can be sent"));
        reader.note(problem.hint("remove one of the two"), auth.at, "auth");
    }
    let tls = given(node, "tls").and_then(|tls| tls_of(reader, tls));
    let cases = [("lower", HeaderCase::Lower), ("title", HeaderCase::Title)];
    let header_case = given(node, "headerCase").and_then(|case| reader.choice(case, "headerCase", &cases));
    Some(RemoteTarget { kind, url, headers, auth, tls, header_case: header_case.unwrap_or_default() })
}

fn headers(reader: &mut Reader<'_>, node: &Node, map: &Node) -> Vec<(String, Text)> {
    let mut headers: Vec<(String, Text)> = Vec::new();
    let mut seen: HashMap<String, String> = HashMap::new();
    for (key, value) in reader.map(map, "headers") {
        let field = format!("headers.{}", key.name);
        if let Some(fault) = header_name_fault(&key.name) {
            reader.error(key.at, &field, fault);
        }
        if let Some(other) = seen.insert(key.name.to_ascii_lowercase(), key.name.clone()) {
            let problem = Problem::error(format!("is the same header as {other}, in another case"));
            reader.note(problem.hint("remove one of the two"), key.at, &field);
        }
        let pieces = parsed(reader, node, &field, Field::Headers, &value);
        if let Some(fault) = pieces.as_deref().and_then(literal).and_then(header_value_fault) {
            reader.error(value.at.unwrap_or(key.at), &field, fault);
        }
        headers.push((key.name.clone(), value));
    }
    headers
}

fn auth_of(reader: &mut Reader<'_>, node: &Node, auth: &Node) -> Option<Auth> {
    let members = reader.members(auth, "auth");
    auth.members()?;
    reader.unknown(
        members,
        "auth",
        &["CLIENT_ID", "CLIENT_SECRET", "scopes", "redirectUri", "grantType", "account"],
    );
    let mut text = |name: &str| {
        let field = format!("auth.{name}");
        let text = reader.text(given(auth, name)?, &field)?;
        parsed(reader, node, &field, Field::Auth, &text);
        Some(text)
    };
    let (client_id, client_secret) = (text("CLIENT_ID"), text("CLIENT_SECRET"));
    if client_secret.is_some() && client_id.is_none() {
        reader.error(auth.at, "auth", "has a CLIENT_SECRET without its CLIENT_ID");
    }
    let scopes = given(auth, "scopes").map(|scopes| reader.strings(scopes, "auth.scopes"));
    let mut plain = |name: &str| {
        let node = given(auth, name)?;
        reader.string(node, &format!("auth.{name}")).map(|value| (value, node.at))
    };
    let (redirect_uri, grant_type, account) = (plain("redirectUri"), plain("grantType"), plain("account"));
    let grant_type = match grant_type {
        None => GrantType::default(),
        Some((word, at)) => match word.as_str() {
            "authorization_code" => GrantType::AuthorizationCode,
            "client_credentials" if client_secret.is_none() => {
                reader.error(
                    at,
                    "auth.grantType",
                    "client_credentials needs a CLIENT_ID and a CLIENT_SECRET",
                );
                GrantType::ClientCredentials
            }
            "client_credentials" => GrantType::ClientCredentials,
            _ => {
                reader.error(at, "auth.grantType", "must be authorization_code or client_credentials");
                GrantType::default()
            }
        },
    };
    Some(Auth {
        client_id,
        client_secret,
        scopes: scopes.unwrap_or_default(),
        redirect_uri: redirect_uri.map(|(value, _)| value),
        grant_type,
        account: account.map(|(value, _)| value),
    })
}

fn tls_of(reader: &mut Reader<'_>, tls: &Node) -> Option<Tls> {
    let members = reader.members(tls, "tls");
    tls.members()?;
    reader.unknown(members, "tls", &["caBundle", "strict"]);
    let ca_bundle = given(tls, "caBundle").and_then(|bundle| reader.string(bundle, "tls.caBundle"));
    if ca_bundle.as_ref().is_some_and(|bundle| bundle.chars().count() > LONGEST_BUNDLE) {
        let message = format!("has more than {LONGEST_BUNDLE} characters");
        reader.error(tls.at, "tls.caBundle", message);
    }
    let strict = given(tls, "strict").and_then(|strict| reader.boolean(strict, "tls.strict"));
    Some(Tls { ca_bundle, strict: strict.unwrap_or(false) })
}
