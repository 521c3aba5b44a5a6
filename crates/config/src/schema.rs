//! Owns the JSON Schema of Toolway's own files, generated from types that say what may stand there. Editors use it; what
//! holds is the reader in `definition`, and a test keeps the two together.

use std::collections::BTreeMap;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value as Json;

/// Where the schema is published.
const ID: &str = "https://raw.githubusercontent.com/toolway/toolway/main/docs/schema/toolway.schema.json";

/// The JSON Schema (draft 2020-12) of Toolway's own files.
pub fn json_schema() -> Json {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = Json::from(generator.into_root_schema_for::<RawFile>());
    if let Json::Object(members) = &mut schema {
        members.insert("$id".to_owned(), ID.into());
        members.insert("title".to_owned(), "Toolway's servers".into());
    }
    schema
}

/// A file of Toolway's own: `mcp.json` in Toolway's configuration directory, `.toolway/mcp.json` or `toolway.json` in a
/// project.
#[derive(JsonSchema)]
#[schemars(rename = "File")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct RawFile {
    /// This schema's address, for editors.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    /// The servers by name.
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z0-9._-]{1,64}$"}))]
    mcp_servers: Option<BTreeMap<String, RawServer>>,
    /// Values that a person is asked for, named by `${input:ID}`.
    inputs: Option<Vec<RawInput>>,
    /// What may run on this machine. Only the administrator's file has it.
    policy: Option<RawPolicy>,
}

/// A server: a command or a URL. With neither, `enabled` or `disabled` alone switches a server of that name.
#[derive(JsonSchema)]
#[schemars(rename = "Server")]
#[serde(rename_all = "camelCase")]
#[schemars(extend(
    "additionalProperties" = false,
    "oneOf" = [
        {"required": ["command"], "not": {"required": ["url"]}},
        {"required": ["url"], "not": {"required": ["command"]}},
        {"anyOf": [{"required": ["enabled"]}, {"required": ["disabled"]}], "maxProperties": 2,
            "not": {"anyOf": [{"required": ["command"]}, {"required": ["url"]}]}}
    ]
))]
#[expect(dead_code, reason = "only its schema is used")]
struct RawServer {
    /// How the server is reached [default: stdio for a command; for a URL http, then sse where http is refused].
    #[serde(rename = "type")]
    kind: Option<RawType>,
    /// The program that is started. Without `args` it is split into words as a shell does it.
    command: Option<String>,
    /// The program's arguments.
    args: Option<Vec<String>>,
    /// Variables for the program.
    env: Option<BTreeMap<String, String>>,
    /// A file of variables, one `NAME=VALUE` a line; `env` stands above it.
    env_file: Option<String>,
    /// Which of our variables the program gets beside a safe base set: all of them, or these.
    inherit_env: Option<RawInheritEnv>,
    /// The working directory.
    cwd: Option<String>,
    /// The server's address.
    #[schemars(extend("pattern" = "^(https?://|\\$\\{)"))]
    url: Option<String>,
    /// Headers of every request.
    headers: Option<BTreeMap<String, String>>,
    /// A client that is registered with the authorization server.
    auth: Option<RawAuth>,
    /// Certificates.
    tls: Option<RawTls>,
    /// How the names of headers are written over HTTP/1.1 [default: lower].
    header_case: Option<RawHeaderCase>,
    /// Whether it is on [default: true].
    enabled: Option<bool>,
    /// The opposite of `enabled`, as other clients have it.
    disabled: Option<bool>,
    /// Which tools are shown, and how.
    tools: Option<RawTools>,
    /// Milliseconds from the start to the answer to `initialize` [default: 60000].
    #[schemars(range(min = 1))]
    startup_timeout_ms: Option<u64>,
    /// The same in seconds.
    #[schemars(range(min = 1, max = 300))]
    startup_timeout_sec: Option<u64>,
    /// Milliseconds for one page of a list [default: 60000].
    #[schemars(range(min = 1))]
    list_timeout_ms: Option<u64>,
    /// Milliseconds of a call without progress [default: 60000].
    #[schemars(range(min = 1))]
    call_idle_timeout_ms: Option<u64>,
    /// Milliseconds of a call in all [default: 3600000].
    #[schemars(range(min = 1))]
    call_max_ms: Option<u64>,
    /// Whether the gateway is not ready without it [default: false].
    required: Option<bool>,
    /// Whether it is started by its first call [default: false].
    lazy: Option<bool>,
    /// Whether several clients use one copy [default: auto].
    share: Option<RawShare>,
    /// Another limit for the size of results, in characters.
    #[schemars(range(min = 1))]
    max_response_chars: Option<u64>,
    /// Roots that are told to a server that asks: paths or file URLs.
    roots: Option<Vec<String>>,
    /// Which protocol generation is spoken [default: auto].
    protocol: Option<RawProtocol>,
    /// Where the server runs when the agent runs in a cloud.
    placement: Option<RawPlacement>,
    /// Which clients it was imported from, and what they said that Toolway has no word for. Written by `toolway import`.
    #[serde(rename = "x-toolway-origin")]
    origin: Option<RawOrigin>,
}

#[derive(JsonSchema)]
#[schemars(rename = "Type")]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum RawType {
    Stdio,
    Http,
    Sse,
}

#[derive(JsonSchema)]
#[schemars(rename = "InheritEnv")]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum RawInheritEnv {
    All(bool),
    Names(Vec<String>),
}

#[derive(JsonSchema)]
#[schemars(rename = "Auth")]
#[serde(rename_all = "SCREAMING_SNAKE_CASE", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct RawAuth {
    /// Without it the client registers itself.
    client_id: Option<String>,
    client_secret: Option<String>,
    #[serde(rename = "scopes")]
    scopes: Option<Vec<String>>,
    /// Where the authorization server sends its answer [default: a free port of this machine].
    #[serde(rename = "redirectUri")]
    redirect_uri: Option<String>,
    /// How tokens are got [default: `authorization_code`, by which a person signs in].
    #[serde(rename = "grantType")]
    grant_type: Option<RawGrantType>,
    /// Whose tokens, where one person has several accounts at a server.
    #[serde(rename = "account")]
    account: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename = "GrantType")]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum RawGrantType {
    AuthorizationCode,
    ClientCredentials,
}

#[derive(JsonSchema)]
#[schemars(rename = "Tls")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct RawTls {
    /// Certificates in PEM that are trusted.
    #[schemars(length(max = 131_072))]
    ca_bundle: Option<String>,
    /// Whether only those are trusted [default: false].
    strict: Option<bool>,
}

#[derive(JsonSchema)]
#[schemars(rename = "HeaderCase")]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum RawHeaderCase {
    Lower,
    Title,
}

/// First the allowed tools, then without the denied ones. Globs match the server's own names.
#[derive(JsonSchema)]
#[schemars(rename = "Tools")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct RawTools {
    /// [default: all]
    allow: Option<Vec<String>>,
    deny: Option<Vec<String>>,
    /// The server's name of a tool to the name that replaces it.
    rename: Option<BTreeMap<String, String>>,
    /// The server's name of a tool to another description.
    describe: Option<BTreeMap<String, String>>,
}

#[derive(JsonSchema)]
#[schemars(rename = "Share")]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum RawShare {
    Word(RawShareWord),
    /// `true`: always; `false`: never.
    Truth(bool),
}

#[derive(JsonSchema)]
#[schemars(rename = "ShareWord")]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum RawShareWord {
    Auto,
    Always,
    Never,
}

#[derive(JsonSchema)]
#[schemars(rename = "Protocol")]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum RawProtocol {
    Auto,
    Legacy,
    Modern,
}

#[derive(JsonSchema)]
#[schemars(rename = "Placement")]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum RawPlacement {
    Server,
    Client,
}

/// A value that a person is asked for.
#[derive(JsonSchema)]
#[schemars(rename = "Input")]
#[expect(dead_code, reason = "only its schema is used")]
struct RawInput {
    /// What `${input:ID}` names.
    id: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    description: Option<String>,
    password: Option<bool>,
}

#[derive(JsonSchema)]
#[schemars(rename = "Origin")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct RawOrigin {
    /// Whose placeholders the entry's texts hold [default: toolway].
    dialect: Option<String>,
    /// The clients by their ids.
    clients: Option<BTreeMap<String, RawRemembered>>,
}

#[derive(JsonSchema)]
#[schemars(rename = "Remembered")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct RawRemembered {
    /// The server's name there.
    name: Option<String>,
    /// The project it belongs to there.
    project: Option<String>,
    /// JSON pointers into the client's entry: what Toolway would write there, and what stood there.
    notes: Option<BTreeMap<String, RawNote>>,
}

#[derive(JsonSchema)]
#[schemars(rename = "Note")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct RawNote {
    ours: Option<Json>,
    theirs: Option<Json>,
}

/// What may run on this machine.
#[derive(JsonSchema)]
#[schemars(rename = "Policy")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct RawPolicy {
    /// Only these servers [default: all].
    allow: Option<Vec<RawRule>>,
    /// Not these.
    deny: Option<Vec<RawRule>>,
    /// No server at all.
    disable_all: Option<bool>,
}

#[derive(JsonSchema)]
#[schemars(rename = "Rule")]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum RawRule {
    /// A glob for the server's name.
    Name(String),
    /// All that it names must fit.
    All(RawFullRule),
}

#[derive(JsonSchema)]
#[schemars(rename = "FullRule")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct RawFullRule {
    /// A glob for the server's name.
    name: Option<String>,
    /// A glob for program and arguments, one space between them; without a space in it, for the program alone.
    command: Option<String>,
    /// A glob for the URL.
    url: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::definition::own_members;

    #[test]
    fn the_checked_in_schema_is_in_step() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/toolway.schema.json");
        expect_test::expect_file![path].assert_eq(&format!("{:#}\n", json_schema()));
    }

    #[test]
    fn the_schema_knows_what_the_reader_knows() {
        let schema = json_schema();
        let properties = schema["$defs"]["Server"]["properties"].as_object().unwrap();
        let described: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        assert_eq!(described, own_members().into_iter().collect());
    }
}
