//! Owns the tools `write` and `delete`: whole files.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};

use super::arguments::fault;
use super::diff::diff;
use super::files::Standing;
use super::paths::Place;
use super::text::{Content, content, counted};
use super::{Arguments, Capability, Tool, ToolContext, ToolOutput, ToolSession, disk};
use crate::engine::BoxFuture;
use crate::policy::Action;

/// Bytes that are written.
const MOST: usize = 20 << 20;

/// `write`.
#[derive(Debug)]
pub(super) struct Write;

impl Tool for Write {
    fn name(&self) -> &'static str {
        "write"
    }

    fn capability(&self) -> Capability {
        Capability::Write
    }

    fn description(&self) -> String {
        "Makes a file, with the folders that it takes, or replaces a whole one. A file that exists must have been read \
         before and not have changed since. To change a part use edit."
            .to_owned()
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the working folder or absolute"},
                "content": {"type": "string", "description": "The whole content"},
            },
            "required": ["path", "content"],
        })
    }

    fn actions(&self, context: &ToolContext, args: &Arguments) -> Result<Vec<Action>, ToolOutput> {
        args.only(&["path", "content"])?;
        args.required_or_empty("content")?;
        Ok(vec![context.place(&args.required("path")?)?.write()])
    }

    fn run<'a>(&'a self, context: &'a ToolContext, args: Arguments) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { write(context, &args).await.unwrap_or_else(|error| error) })
    }
}

async fn write(context: &ToolContext, args: &Arguments) -> Result<ToolOutput, ToolOutput> {
    args.only(&["path", "content"])?;
    let place = context.granted(&args.required("path")?, true)?;
    let content = args.required_or_empty("content")?;
    if content.len() > MOST {
        return Err(fault("content", format!("must be at most {MOST} bytes, not {}", content.len())));
    }
    let session = Arc::clone(&context.session);
    let work = move || {
        let named = session.roots.short(&place.real);
        let old = match fs::metadata(&place.real) {
            Ok(about) => {
                disk::regular(&about, &named).map_err(ToolOutput::error)?;
                let old = disk::content(&place.real, &named).map_err(ToolOutput::error)?;
                // An empty file holds nothing that could be lost.
                if !old.is_empty() {
                    unchanged(&session, &place, &old, &named)?;
                }
                Some(old)
            }
            Err(_) => None,
        };
        if let Some(folder) = place.real.parent().filter(|folder| !folder.is_dir()) {
            fs::create_dir_all(folder).map_err(|error| not_written(&named, &error))?;
        }
        disk::replace(&place.real, content.as_bytes()).map_err(|error| not_written(&named, &error))?;
        session.files.remember(&place.real, content.as_bytes());
        Ok(written(&place, &named, old, &content))
    };
    on_disk(context, work).await
}

fn written(place: &Place, named: &str, old: Option<Vec<u8>>, new: &str) -> ToolOutput {
    let created = old.is_none();
    let old = match old.map(content) {
        Some(Content::Text { text, .. } | Content::Foreign { text, .. }) => text,
        _ => String::new(),
    };
    let (changes, added, removed) = diff(&old, new, named);
    let what = if created { "Created" } else { "Replaced" };
    let details = json!({
        "path": place.real.display().to_string(),
        "created": created,
        "diff": changes,
        "linesAdded": added,
        "linesRemoved": removed,
    });
    let lines = counted(new.lines().count(), "line");
    ToolOutput::text(format!("{what} {named} ({lines}, {}).", counted(new.len(), "byte")))
        .with_details(&details)
}

/// Refuses to write over what the model has not seen.
pub(super) fn unchanged(
    session: &ToolSession,
    place: &Place,
    content: &[u8],
    named: &str,
) -> Result<(), ToolOutput> {
    match session.files.standing(&place.real, content) {
        Standing::Same => Ok(()),
        Standing::Unread => Err(ToolOutput::error(format!("{named} has not been read yet: read it first."))),
        Standing::Changed => Err(ToolOutput::error(format!(
            "{named} has changed since it was read, and nothing was written: read it again."
        ))),
    }
}

pub(super) fn not_written(named: &str, error: &std::io::Error) -> ToolOutput {
    ToolOutput::error(format!("{named} could not be written, and is as it was: {error}."))
}

/// Does work on files off the runtime's threads, one call at a time: two calls on one file see each other's work.
pub(super) async fn on_disk(
    context: &ToolContext,
    work: impl FnOnce() -> Result<ToolOutput, ToolOutput> + Send + 'static,
) -> Result<ToolOutput, ToolOutput> {
    let alone = context.session.writing.lock().await;
    if context.cancel.is_cancelled() {
        return Err(ToolOutput::cancelled());
    }
    let done = tokio::task::spawn_blocking(work).await;
    drop(alone);
    done.unwrap_or_else(|error| Err(ToolOutput::error(format!("Writing broke off: {error}."))))
}

/// `delete`.
#[derive(Debug)]
pub(super) struct Delete;

impl Tool for Delete {
    fn name(&self) -> &'static str {
        "delete"
    }

    fn capability(&self) -> Capability {
        Capability::Delete
    }

    fn description(&self) -> String {
        "Removes a file, a link (not what it leads to) or an empty folder.".to_owned()
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {"path": {"type": "string", "description": "What is to be removed"}},
            "required": ["path"],
        })
    }

    fn actions(&self, context: &ToolContext, args: &Arguments) -> Result<Vec<Action>, ToolOutput> {
        args.only(&["path"])?;
        let path = args.required("path")?;
        let place = context.session.roots.entry(&path).map_err(|message| fault("path", message))?;
        Ok(vec![place.write()])
    }

    fn run<'a>(&'a self, context: &'a ToolContext, args: Arguments) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { delete(context, &args).await.unwrap_or_else(|error| error) })
    }
}

async fn delete(context: &ToolContext, args: &Arguments) -> Result<ToolOutput, ToolOutput> {
    args.only(&["path"])?;
    let place = context.granted_entry(&args.required("path")?)?;
    if context.session.roots.folders().contains(&place.real) {
        return Err(fault("path", "the agent's own folders are not removed"));
    }
    let session = Arc::clone(&context.session);
    let work = move || {
        let named = session.roots.short(&place.real);
        let about = fs::symlink_metadata(&place.real)
            .map_err(|_| ToolOutput::error(format!("There is nothing at {named}.")))?;
        let removed = if about.is_dir() { fs::remove_dir(&place.real) } else { fs::remove_file(&place.real) };
        removed.map_err(|error| {
            let hint = if error.kind() == std::io::ErrorKind::DirectoryNotEmpty {
                " Only an empty folder is removed; for a full one use shell."
            } else {
                ""
            };
            ToolOutput::error(format!("{named} could not be removed: {error}.{hint}"))
        })?;
        session.files.forget(&place.real);
        let details = json!({"path": place.real.display().to_string()});
        Ok(ToolOutput::text(format!("Removed {named}.")).with_details(&details))
    };
    on_disk(context, work).await
}

#[cfg(test)]
mod tests;
