//! Owns the tool `edit`: parts of a file, all of them or none.

mod apply;

use std::sync::Arc;

use serde_json::{Value, json};

use apply::{Change, apply};

use super::arguments::fault;
use super::diff::diff;
use super::text::{Content, MARK, content, counted};
use super::write::{not_written, on_disk, unchanged};
use super::{Arguments, Capability, Tool, ToolContext, ToolOutput, disk};
use crate::engine::BoxFuture;
use crate::policy::Action;

const ARGUMENTS: [&str; 5] = ["path", "oldText", "newText", "replaceAll", "edits"];
const CHANGE: [&str; 3] = ["oldText", "newText", "replaceAll"];

/// `edit`.
#[derive(Debug)]
pub(super) struct Edit;

impl Tool for Edit {
    fn name(&self) -> &'static str {
        "edit"
    }

    fn capability(&self) -> Capability {
        Capability::Edit
    }

    fn description(&self) -> String {
        "Replaces text in a file that was read before. oldText must stand in the file exactly, white space included and \
         without line numbers, and only once, unless replaceAll is set. Several changes go in `edits`: they are made in \
         order, all or none. Line ends and the byte order mark of the file stay."
            .to_owned()
    }

    fn schema(&self) -> Value {
        let change = json!({
            "oldText": {"type": "string", "description": "The text as it stands in the file"},
            "newText": {"type": "string", "description": "What is to stand there"},
            "replaceAll": {"type": "boolean", "description": "Everywhere in the file"},
        });
        let mut properties = change.clone();
        if let Some(properties) = properties.as_object_mut() {
            properties.insert(
                "path".to_owned(),
                json!({"type": "string", "description": "The file, relative to the working folder or absolute"}),
            );
            properties.insert(
                "edits".to_owned(),
                json!({
                    "type": "array",
                    "description": "Several changes, in place of oldText and newText",
                    "items": {"type": "object", "properties": change, "required": ["oldText", "newText"]},
                }),
            );
        }
        json!({"type": "object", "properties": properties, "required": ["path"]})
    }

    fn actions(&self, context: &ToolContext, args: &Arguments) -> Result<Vec<Action>, ToolOutput> {
        changes(args)?;
        Ok(vec![context.place(&args.required("path")?)?.write()])
    }

    fn run<'a>(&'a self, context: &'a ToolContext, args: Arguments) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { run(context, &args).await.unwrap_or_else(|error| error) })
    }
}

fn changes(args: &Arguments) -> Result<Vec<Change>, ToolOutput> {
    args.only(&ARGUMENTS)?;
    let one = |args: &Arguments| -> Result<Change, ToolOutput> {
        Ok(Change {
            old: args.required_or_empty("oldText")?,
            new: args.required_or_empty("newText")?,
            all: args.flag("replaceAll")?,
        })
    };
    let alone = args.text("oldText")?.is_some() || args.text("newText")?.is_some();
    match args.objects("edits")? {
        Some(edits) if !edits.is_empty() && alone => {
            Err(fault("edits", "goes without oldText and newText beside it"))
        }
        Some(edits) if !edits.is_empty() => edits
            .iter()
            .enumerate()
            .map(|(index, edit)| {
                let read = edit.only(&CHANGE).and_then(|()| one(edit));
                read.map_err(|error| {
                    ToolOutput::error(error.text.replacen('`', &format!("`edits[{index}]."), 1))
                })
            })
            .collect(),
        _ => Ok(vec![one(args)?]),
    }
}

async fn run(context: &ToolContext, args: &Arguments) -> Result<ToolOutput, ToolOutput> {
    let changes = changes(args)?;
    let place = context.granted(&args.required("path")?, true)?;
    let session = Arc::clone(&context.session);
    let work = move || {
        let named = session.roots.short(&place.real);
        let bytes = disk::content(&place.real, &named).map_err(ToolOutput::error)?;
        unchanged(&session, &place, &bytes, &named)?;
        let (text, mark) = match content(bytes.clone()) {
            Content::Text { text, mark } => (text, mark),
            Content::Foreign { encoding, .. } => {
                return Err(ToolOutput::error(format!(
                    "{named} cannot be edited: its encoding is {encoding}. Use shell with a program that knows it."
                )));
            }
            Content::Binary(what) | Content::Image(what) => {
                return Err(ToolOutput::error(format!("{named} cannot be edited: it is {what}.")));
            }
        };
        let (new, places) = apply(&text, &changes)
            .map_err(|reason| ToolOutput::error(format!("Nothing was changed in {named}: {reason}")))?;
        let whole = if mark { format!("{MARK}{new}") } else { new.clone() };
        // Somebody else may have written while this was worked out.
        let now = disk::content(&place.real, &named).map_err(ToolOutput::error)?;
        unchanged(&session, &place, &now, &named)?;
        disk::replace(&place.real, whole.as_bytes()).map_err(|error| not_written(&named, &error))?;
        session.files.remember(&place.real, whole.as_bytes());
        let (changed, added, removed) = diff(&text, &new, &named);
        let details = json!({
            "path": place.real.display().to_string(),
            "replacements": places.len(),
            "diff": changed,
            "linesAdded": added,
            "linesRemoved": removed,
        });
        let lines: Vec<String> = places.iter().take(10).map(usize::to_string).collect();
        let more = if places.len() > 10 { ", ..." } else { "" };
        let said = format!(
            "Changed {named} in {} (line {}{more}): {} added, {removed} removed.",
            counted(places.len(), "place"),
            lines.join(", "),
            counted(added, "line")
        );
        Ok(ToolOutput::text(said).with_details(&details))
    };
    on_disk(context, work).await
}

#[cfg(test)]
mod tests;
