//! Owns the JSON of a rewritten message for every shape. Pure.

use toolway_wire::{UPSTREAM_ERROR, error_response, find, push_string};

use super::{Detail, Facts, Plan, Whereabouts, notice};
use crate::policy::Shape;
use crate::preview::grouped;

const MARKER: &str = "_cursor_mcp_response_proxy";
const SAVED: &str = "toolway/saved";
/// Files that the meta names one by one.
const FILES: usize = 16;

/// The message that the plan gives.
pub(super) fn render(facts: &Facts<'_>, plan: Plan) -> Vec<u8> {
    if facts.shape == Shape::UnknownResult {
        return unknown_result(facts, plan);
    }
    let shown = facts.material.show(plan.preview);
    let text = notice::text(facts, plan, &shown);
    let mut out = Vec::with_capacity(text.len() + 2048);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    if facts.shape != Shape::LogMessage {
        out.extend_from_slice(b",\"id\":");
        out.extend_from_slice(id(facts));
    }
    match facts.shape {
        Shape::Error => error(facts, plan, &text, shown.chars, &mut out),
        Shape::LogMessage => log_message(facts, plan, &text, shown.chars, &mut out),
        _ => result(facts, plan, &text, shown.chars, &mut out),
    }
    out.push(b'}');
    out
}

fn id<'a>(facts: &'a Facts<'_>) -> &'a [u8] {
    facts.envelope.id().map_or(b"null", |id| id.raw())
}

fn result(facts: &Facts<'_>, plan: Plan, text: &str, preview_chars: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"result\":{");
    if plan.detail < Detail::NoPath {
        for member in &facts.parts.members {
            out.extend_from_slice(member);
            out.push(b',');
        }
    }
    match facts.shape {
        Shape::Resource => contents(facts, plan, text, out),
        Shape::Prompt => messages(facts, plan, text, out),
        _ => content(facts, plan, text, out),
    }
    out.extend_from_slice(b",\"_meta\":");
    meta(facts, plan, preview_chars, out);
    out.push(b'}');
}

fn content(facts: &Facts<'_>, plan: Plan, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"content\":[{\"type\":\"text\",\"text\":");
    push_string(text, out);
    out.push(b'}');
    push_items(facts, plan, out);
    out.push(b']');
    if let Some(is_error) = facts.envelope.is_error() {
        out.extend_from_slice(format!(",\"isError\":{is_error}").as_bytes());
    }
}

fn push_items(facts: &Facts<'_>, plan: Plan, out: &mut Vec<u8>) {
    for json in facts.items.iter().take(plan.items).filter_map(|item| item.json.as_ref()) {
        out.push(b',');
        out.extend_from_slice(json);
    }
}

fn contents(facts: &Facts<'_>, plan: Plan, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"contents\":[{\"uri\":");
    let fallback = match &facts.saved {
        Ok(at) => format!("toolway://saved/{}", at.id),
        Err(_) => "toolway://saved/none".to_owned(),
    };
    let share = if plan.detail <= Detail::Least { 4 } else { 20 };
    let room = usize::try_from(facts.limit / share).unwrap_or(usize::MAX);
    let uri = facts.first_uri.as_ref().filter(|uri| uri.chars().count() <= room).unwrap_or(&fallback);
    push_string(uri, out);
    out.extend_from_slice(b",\"mimeType\":\"text/plain\",\"text\":");
    push_string(text, out);
    if let Ok(at) = &facts.saved
        && plan.detail <= Detail::Short
    {
        out.extend_from_slice(b",\"_meta\":{\"toolway/file\":");
        push_string(&at.uri, out);
        out.push(b'}');
    }
    out.push(b'}');
    push_items(facts, plan, out);
    out.push(b']');
}

fn messages(facts: &Facts<'_>, plan: Plan, text: &str, out: &mut Vec<u8>) {
    if plan.upstream
        && let Some(description) = &facts.parts.description
    {
        out.extend_from_slice(b"\"description\":");
        out.extend_from_slice(description);
        out.push(b',');
    }
    out.extend_from_slice(b"\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":");
    push_string(text, out);
    out.extend_from_slice(b"}}]");
}

fn error(facts: &Facts<'_>, plan: Plan, text: &str, preview_chars: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"error\":{\"code\":");
    out.extend_from_slice(facts.parts.code.as_deref().unwrap_or(b"-32000"));
    out.extend_from_slice(b",\"message\":");
    push_string(text, out);
    out.extend_from_slice(b",\"data\":{");
    if let Some(data) = facts.parts.data.as_deref().filter(|_| plan.upstream) {
        if data.first() == Some(&b'{') {
            push_members(data, &["saved_path", "original_chars", SAVED], out);
        } else {
            out.extend_from_slice(b"\"upstream_data\":");
            out.extend_from_slice(data);
            out.push(b',');
        }
    }
    paths(facts, plan, out);
    out.push(b',');
    saved(facts, plan, preview_chars, out);
    out.extend_from_slice(b"}}");
}

fn log_message(facts: &Facts<'_>, plan: Plan, text: &str, preview_chars: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"method\":\"notifications/message\",\"params\":{");
    for (name, part) in [("level", &facts.parts.level), ("logger", &facts.parts.logger)] {
        if let Some(part) = part.as_ref().filter(|_| name == "level" || plan.detail < Detail::NoPath) {
            out.extend_from_slice(format!("\"{name}\":").as_bytes());
            out.extend_from_slice(part);
            out.push(b',');
        }
    }
    out.extend_from_slice(b"\"data\":");
    push_string(text, out);
    out.extend_from_slice(b",\"_meta\":");
    meta(facts, plan, preview_chars, out);
    out.push(b'}');
}

fn unknown_result(facts: &Facts<'_>, plan: Plan) -> Vec<u8> {
    let method = facts.call.map_or("", |call| call.method.as_str());
    let method: String = method.chars().filter(|ch| !ch.is_control()).take(60).collect();
    let chars = grouped(facts.envelope.size().chars);
    let fate = match &facts.saved {
        Ok(at) if plan.detail < Detail::NoPathInText => format!("it was saved whole as {}", at.path),
        Ok(at) => format!("it was saved whole, id {}", at.id),
        Err(reason) => format!("not saved: {}", super::short_reason(reason, plan.detail)),
    };
    let limit = grouped(facts.limit);
    let message = format!(
        "the result of {method} is too large for this client ({chars} characters, the limit is {limit}); {fate}"
    );
    let mut data = vec![b'{'];
    paths(facts, plan, &mut data);
    data.push(b'}');
    error_response(id(facts), UPSTREAM_ERROR, &message, std::str::from_utf8(&data).ok())
}

/// `"saved_path":...,"original_chars":...`
fn paths(facts: &Facts<'_>, plan: Plan, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"saved_path\":");
    match &facts.saved {
        Ok(at) if plan.detail < Detail::NoPath => push_string(&at.path, out),
        _ => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(format!(",\"original_chars\":{}", facts.envelope.size().chars).as_bytes());
}

/// The upstream's `_meta` byte for byte, and our two members.
fn meta(facts: &Facts<'_>, plan: Plan, preview_chars: usize, out: &mut Vec<u8>) {
    out.push(b'{');
    if let Some(meta) = facts.parts.meta.as_deref().filter(|_| plan.upstream) {
        push_members(meta, &[MARKER, SAVED], out);
    }
    out.extend_from_slice(format!("\"{MARKER}\":{{\"truncated\":true,").as_bytes());
    paths(facts, plan, out);
    out.extend_from_slice(format!(",\"preview_chars\":{preview_chars}}},").as_bytes());
    saved(facts, plan, preview_chars, out);
    out.push(b'}');
}

/// The members of an object as they are spelled, each with a comma after it, those named apart.
fn push_members(object: &[u8], except: &[&str], out: &mut Vec<u8>) {
    let mut kept: Option<usize> = None;
    for member in find::members(object, 0..object.len()) {
        if except.iter().any(|name| find::is_named(object, &member, name)) {
            kept = None;
            continue;
        }
        // What stands between two members that stay is theirs too.
        let from = kept.unwrap_or(member.name.start);
        if kept.is_some() {
            out.pop();
        }
        out.extend_from_slice(object.get(from..member.value.end).unwrap_or_default());
        out.push(b',');
        kept = Some(member.value.end);
    }
}

fn saved(facts: &Facts<'_>, plan: Plan, preview_chars: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("\"{SAVED}\":{{").as_bytes());
    let chars = facts.envelope.size().chars;
    match &facts.saved {
        Err(reason) => {
            let reason: String =
                reason.chars().take(if plan.detail == Detail::Full { 600 } else { 120 }).collect();
            out.extend_from_slice(
                format!("\"saved\":false,\"chars\":{chars},\"bytes\":{},\"reason\":", facts.bytes).as_bytes(),
            );
            push_string(&reason, out);
        }
        Ok(at) => {
            out.extend_from_slice(b"\"id\":");
            push_string(&at.id, out);
            out.extend_from_slice(format!(",\"saved\":true,\"chars\":{chars}").as_bytes());
            if plan.detail <= Detail::Short {
                out.extend_from_slice(b",\"path\":");
                push_string(&at.path, out);
                out.extend_from_slice(
                    format!(",\"bytes\":{},\"sha256\":\"{}\"", facts.bytes, at.sha256).as_bytes(),
                );
            }
            if plan.detail == Detail::Full {
                full(facts, at, preview_chars, out);
            }
        }
    }
    out.push(b'}');
}

fn full(facts: &Facts<'_>, at: &Whereabouts, preview_chars: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"uri\":");
    push_string(&at.uri, out);
    out.extend_from_slice(b",\"text_path\":");
    match &at.text_path {
        Some(path) => push_string(path, out),
        None => out.extend_from_slice(b"null"),
    }
    let numbers = format!(
        ",\"lines\":{},\"preview_chars\":{preview_chars},\"had_structured_content\":{}",
        facts.lines, facts.had_structured_content
    );
    out.extend_from_slice(numbers.as_bytes());
    if let Some(reason) = &at.reason {
        out.extend_from_slice(b",\"reason\":");
        push_string(reason, out);
    }
    if at.redacted {
        out.extend_from_slice(b",\"redacted\":true");
    }
    out.extend_from_slice(b",\"files\":[");
    for (index, file) in at.files.iter().take(FILES).enumerate() {
        out.extend_from_slice(if index > 0 { b",{\"path\":" } else { b"{\"path\":" });
        push_string(&file.path, out);
        out.extend_from_slice(format!(",\"kind\":\"{}\",\"bytes\":{}", file.kind, file.bytes).as_bytes());
        if let Some(mime) = file.mime.as_deref().filter(|mime| mime.len() <= 100) {
            out.extend_from_slice(b",\"mimeType\":");
            push_string(mime, out);
        }
        out.push(b'}');
    }
    out.push(b']');
}
