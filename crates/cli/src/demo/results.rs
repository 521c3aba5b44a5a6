//! Owns what the demonstration's tools are called and what they answer: the same at every call.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::picture;

const LOG_LINES: u32 = 2800;
/// The line of the log that has the error.
const BROKEN: u32 = 1407;
const ROWS: u32 = 3000;
const FRAMES: u32 = 390;

/// The tools, as `tools/list` shows them.
pub(super) fn tools() -> Value {
    let none = json!({ "type": "object", "properties": {} });
    let row = json!({
        "type": "object",
        "properties": {
            "id": { "type": "integer" },
            "customer": { "type": "string" },
            "city": { "type": "string" },
            "cents": { "type": "integer" },
        },
        "required": ["id", "customer", "city", "cents"],
    });
    json!([
        { "name": "build_log", "description": "A build log of 200 kB.", "inputSchema": none },
        {
            "name": "table",
            "description": "A table of 3,000 rows.",
            "inputSchema": none,
            "outputSchema": {
                "type": "object",
                "properties": { "rows": { "type": "array", "items": row } },
                "required": ["rows"],
            },
        },
        { "name": "picture", "description": "A picture.", "inputSchema": none },
        { "name": "failing", "description": "Fails with an error of 30 kB.", "inputSchema": none },
        { "name": "slow", "description": "Takes a while and tells of its progress.", "inputSchema": none },
    ])
}

/// The result of a tool that answers at once.
pub(super) fn call(tool: &str) -> Option<Value> {
    Some(match tool {
        "build_log" => text(&build_log(), false),
        "table" => {
            let table = json!({ "rows": (1..=ROWS).map(row).collect::<Vec<Value>>() });
            let mut result = text(&table.to_string(), false);
            result["structuredContent"] = table;
            result
        }
        "picture" => {
            let data = STANDARD.encode(picture::png());
            json!({ "content": [{ "type": "image", "data": data, "mimeType": "image/png" }], "isError": false })
        }
        "failing" => text(&trace(), true),
        _ => return None,
    })
}

/// A result with one block of text.
pub(super) fn text(text: &str, is_error: bool) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "isError": is_error })
}

fn build_log() -> String {
    let line = |line: u32| {
        let seconds = f64::from(line) * 0.037;
        let module = line * 7 % 9973;
        if line == BROKEN {
            format!(
                "{line:>5} {seconds:>8.3}s ERROR module_{module:04}: mismatched types: expected `u64`, found `&str`\n"
            )
        } else {
            let units = line % 17 + 1;
            format!(
                "{line:>5} {seconds:>8.3}s compiled module_{module:04} ({units} units, optimised, no warnings)\n"
            )
        }
    };
    (1..=LOG_LINES).map(line).collect()
}

fn row(id: u32) -> Value {
    let city = ["Bergen", "Kraków", "Lyon", "Osaka", "Quito"];
    json!({
        "id": id,
        "customer": format!("customer {:05}", id * 31 % 99_991),
        "city": city.get((id % 5) as usize),
        "cents": id * 7919 % 1_000_003,
    })
}

fn trace() -> String {
    let mut trace = "deployment failed: the health check of `api` did not answer within 30 s\n".to_owned();
    trace.extend((1..=FRAMES).map(|frame| {
        let (layer, line) = (frame % 211, frame * 13 % 900 + 1);
        format!(
            "  at service::layer_{layer:03}::call (src/service/layer_{layer:03}.rs:{line}) awaiting a lease\n"
        )
    }));
    trace.push_str("caused by: the lease was taken by another deployment\n");
    trace
}
