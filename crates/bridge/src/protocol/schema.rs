//! Owns the JSON Schema of the protocol, generated from the types that are read and written.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::fault::Fault;
use super::{PROTOCOL_VERSION, answers, requests};

/// Where the schema is published.
const ID: &str =
    "https://raw.githubusercontent.com/toolway/toolway/main/docs/schema/host-protocol.schema.json";

/// The JSON Schema (draft 2020-12) of every line of the protocol for hosts. `$defs` has `request METHOD`, `result METHOD`
/// and `notification METHOD`.
pub fn host_protocol_schema() -> Value {
    let mut schema =
        Schema { generator: SchemaSettings::draft2020_12().into_generator(), ..Schema::default() };
    schema.methods();
    schema.notifications();
    schema.root()
}

#[derive(Default)]
struct Schema {
    generator: SchemaGenerator,
    defs: Map<String, Value>,
    from_host: Vec<Value>,
    from_bridge: Vec<Value>,
}

impl Schema {
    fn of<T: JsonSchema>(&mut self) -> Value {
        self.generator.subschema_for::<T>().into()
    }

    fn method<P: JsonSchema, R: JsonSchema>(&mut self, method: &str) {
        let (params, result) = (self.of::<P>(), self.of::<R>());
        let request = json!({
            "type": "object",
            "properties": {
                "jsonrpc": { "const": "2.0" },
                "id": { "$ref": "#/$defs/Id" },
                "method": { "const": method },
                "params": params,
            },
            "required": ["jsonrpc", "method"],
        });
        self.from_host.push(reference(&format!("request {method}")));
        self.defs.insert(format!("request {method}"), request);
        self.defs.insert(format!("result {method}"), result);
    }

    fn notification<P: JsonSchema>(&mut self, method: &str) {
        let notification = json!({
            "type": "object",
            "properties": {
                "jsonrpc": { "const": "2.0" },
                "method": { "const": method },
                "params": self.of::<P>(),
            },
            "required": ["jsonrpc", "method", "params"],
            "additionalProperties": false,
        });
        self.from_bridge.push(reference(&format!("notification {method}")));
        self.defs.insert(format!("notification {method}"), notification);
    }

    fn methods(&mut self) {
        use answers as a;
        use requests as r;
        self.method::<r::Initialize, a::Initialized>("initialize");
        self.method::<r::Nothing, a::Done>("shutdown");
        self.method::<r::OpenSession, a::Done>("session/open");
        self.method::<r::CloseSession, a::Ended>("session/close");
        self.method::<r::DeclareTools, a::ToolsDeclared>("tools/declare");
        self.method::<r::ActivateTools, a::ToolsDeclared>("tools/activate");
        self.method::<r::DeclareSkills, a::SkillsDeclared>("skills/declare");
        self.method::<r::DeclareSettings, a::SettingsShown>("settings/declare");
        self.method::<r::OfSession, a::SettingsShown>("settings/read");
        self.method::<r::WriteSettings, a::SettingsShown>("settings/write");
        self.method::<r::OpenRun, a::RunOpened>("run/open");
        self.method::<r::OfRun, a::Done>("run/attach");
        self.method::<r::EndOfRun, a::Ended>("run/detach");
        self.method::<r::EndOfRun, a::Ended>("run/cancel");
        self.method::<r::EndOfRun, a::Ended>("run/close");
        self.method::<r::OfRun, a::Done>("run/usage");
        self.method::<r::OfRun, a::FactsShown>("run/facts");
        self.method::<r::CallResult, a::Settled>("call/result");
        self.method::<r::FailCall, a::Settled>("call/fail");
        self.method::<r::CallProgress, a::ProgressTaken>("call/progress");
        self.method::<r::OfCall, a::Admitted>("call/admit");
        self.method::<r::OfSurface, a::ManifestShown>("manifest/read");
        self.method::<r::OfSurface, a::ReportShown>("report/read");
        self.method::<r::OfSession, a::SelfTestShown>("selftest/run");
        self.method::<r::NextPrompt, a::PromptShown>("prompt/next");
        self.method::<r::PromptSent, a::Done>("prompt/sent");
        self.method::<r::ResetPrompts, a::Done>("prompt/reset");
        self.method::<r::PromptSection, a::SectionShown>("prompt/section");
        self.method::<r::BeginDisplay, a::Done>("display/begin");
        self.method::<r::DisplayTool, a::ToolTaken>("display/tool");
        self.method::<r::EndDisplay, a::Done>("display/end");
        self.method::<r::TakeReplay, a::RecordShown>("replay/take");
        self.method::<r::StartTurn, a::TurnStarted>("turn/start");
        self.method::<r::AbortTurn, a::TurnAborted>("turn/abort");
        self.method::<r::TellSession, a::Done>("session/tell");
        self.method::<r::Nothing, a::ModelsShown>("models/list");
        self.method::<r::SyncWrappers, a::WrappersShown>("wrappers/sync");
        self.method::<r::ActivateSkill, a::SkillGiven>("skill/activate");
    }

    fn notifications(&mut self) {
        self.notification::<answers::CallsStarted>("calls/started");
        self.notification::<answers::CallCancelled>("call/cancelled");
        self.notification::<answers::SkillActivated>("skill/activated");
        self.notification::<answers::DisplayShown>("display/show");
        self.notification::<answers::TurnTold>("turn/event");
        self.notification::<answers::Notice>("notice");
        self.notification::<answers::EntryAppended>("entry/append");
        self.notification::<answers::SetActive>("tools/setActive");
        self.notification::<answers::DiagnosticShown>("diagnostic");
        self.notification::<answers::Closing>("bridge/closing");
    }

    fn root(mut self) -> Value {
        let mut defs = Map::new();
        defs.insert("Id".to_owned(), json!({ "type": ["string", "number", "null"] }));
        defs.insert(
            "error".to_owned(),
            json!({
                "type": "object",
                "properties": {
                    "jsonrpc": { "const": "2.0" },
                    "id": { "$ref": "#/$defs/Id" },
                    "error": {
                        "type": "object",
                        "properties": {
                            "code": { "enum": Fault::CODES },
                            "message": { "type": "string" },
                            "data": { "type": "object" },
                        },
                        "required": ["code", "message"],
                    },
                },
                "required": ["jsonrpc", "id", "error"],
            }),
        );
        defs.insert(
            "result".to_owned(),
            json!({
                "type": "object",
                "description": "`result` is as `result METHOD` says, by the method of the request with this id.",
                "properties": {
                    "jsonrpc": { "const": "2.0" },
                    "id": { "$ref": "#/$defs/Id" },
                    "result": { "type": "object" },
                },
                "required": ["jsonrpc", "id", "result"],
            }),
        );
        defs.append(&mut self.defs);
        let types = self.generator.take_definitions(true);
        defs.extend(types);
        let mut from_bridge = vec![json!({ "$ref": "#/$defs/result" }), json!({ "$ref": "#/$defs/error" })];
        from_bridge.append(&mut self.from_bridge);
        defs.insert("from host".to_owned(), json!({ "oneOf": self.from_host }));
        defs.insert("from bridge".to_owned(), json!({ "oneOf": from_bridge }));
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": ID,
            "title": format!("toolway bridge, version {PROTOCOL_VERSION}: one line"),
            "anyOf": [reference("from host"), reference("from bridge")],
            "$defs": defs,
        })
    }
}

/// A reference to a definition: a JSON Pointer (RFC 6901) in the fragment of a URI.
fn reference(name: &str) -> Value {
    let escaped = name.replace('~', "~0").replace('/', "~1").replace(' ', "%20");
    json!({ "$ref": format!("#/$defs/{escaped}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checked_in_schema_is_in_step() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/host-protocol.schema.json");
        expect_test::expect_file![path].assert_eq(&format!("{:#}\n", host_protocol_schema()));
    }

    #[test]
    fn every_reference_leads_to_a_definition() {
        fn walk(value: &Value, schema: &Value) {
            match value {
                Value::Object(members) => {
                    if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                        // As a validator does it: `/` within a name would be one more step, and a URI has no spaces.
                        assert!(!reference.contains(' '), "{reference}");
                        let pointer = reference.strip_prefix('#').unwrap().replace("%20", " ");
                        assert!(schema.pointer(&pointer).is_some(), "{reference}");
                    }
                    members.values().for_each(|value| walk(value, schema));
                }
                Value::Array(items) => items.iter().for_each(|value| walk(value, schema)),
                _ => {}
            }
        }
        let schema = host_protocol_schema();
        walk(&schema, &schema);
    }

    #[test]
    fn the_document_names_every_method_and_every_member() {
        fn members(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(object) => {
                    let properties = object.get("properties").and_then(Value::as_object);
                    found.extend(properties.into_iter().flat_map(Map::keys).cloned());
                    object.values().for_each(|value| members(value, found));
                }
                Value::Array(items) => items.iter().for_each(|value| members(value, found)),
                _ => {}
            }
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/host-protocol.md");
        let document = std::fs::read_to_string(path).unwrap();
        let schema = host_protocol_schema();
        let defs = schema["$defs"].as_object().unwrap();
        let methods = defs.keys().filter_map(|name| {
            name.strip_prefix("request ").or_else(|| name.strip_prefix("notification ")).map(str::to_owned)
        });
        let mut names = Vec::new();
        members(&schema, &mut names);
        let missing: Vec<String> = methods
            .filter(|method| !document.contains(method.as_str()))
            .chain(names.into_iter().filter(|name| {
                !document.contains(&format!("`{name}`")) && !document.contains(&format!("\"{name}\""))
            }))
            .collect();
        assert_eq!(missing, Vec::<String>::new());
    }
}
