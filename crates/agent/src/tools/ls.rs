//! Owns the tool `ls`: what is in a folder.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Arguments, Capability, Tool, ToolContext, ToolOutput};
use crate::engine::BoxFuture;
use crate::policy::Action;

/// Entries that are shown.
const MOST: usize = 1000;

/// `ls`.
#[derive(Debug)]
pub(super) struct Ls;

impl Tool for Ls {
    fn name(&self) -> &'static str {
        "ls"
    }

    fn capability(&self) -> Capability {
        Capability::Ls
    }

    fn description(&self) -> String {
        "Shows what is in a folder, hidden and ignored entries too: folders with a slash, files with their size in bytes, \
         links with what they lead to. At most 1000 entries. To search in depth use glob."
            .to_owned()
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {"path": {"type": "string", "description": "The folder; without it the working folder"}},
        })
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn actions(&self, context: &ToolContext, args: &Arguments) -> Result<Vec<Action>, ToolOutput> {
        args.only(&["path"])?;
        Ok(vec![context.place(&args.text("path")?.unwrap_or_else(|| ".".to_owned()))?.read()])
    }

    fn run<'a>(&'a self, context: &'a ToolContext, args: Arguments) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { run(context, &args).await.unwrap_or_else(|error| error) })
    }
}

async fn run(context: &ToolContext, args: &Arguments) -> Result<ToolOutput, ToolOutput> {
    args.only(&["path"])?;
    let place = context.granted(&args.text("path")?.unwrap_or_else(|| ".".to_owned()), false)?;
    let session = Arc::clone(&context.session);
    let work = move || {
        let named = session.roots.short(&place.real);
        let entries = fs::read_dir(&place.real)
            .map_err(|error| ToolOutput::error(format!("{named} cannot be listed: {error}.")))?;
        let mut lines: Vec<String> = entries.filter_map(|entry| Some(line(&entry.ok()?))).collect();
        lines.sort_unstable();
        let total = lines.len();
        lines.truncate(MOST);
        let mut text = if total == 0 { format!("[{named} is empty]") } else { lines.join("\n") };
        if total > MOST {
            text = format!("{text}\n[{MOST} of {total} entries are shown]");
        }
        let details = json!({"path": place.real.display().to_string(), "entries": total});
        Ok(ToolOutput::text(text).with_details(&details))
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(ToolOutput::error(format!("Listing broke off: {error}."))))
}

fn line(entry: &fs::DirEntry) -> String {
    let name = entry.file_name().to_string_lossy().into_owned();
    match entry.metadata() {
        Ok(about) if about.is_dir() => format!("{name}/"),
        Ok(about) if about.is_symlink() => {
            let target = fs::read_link(entry.path()).map(|target| target.display().to_string());
            format!("{name} -> {}", target.unwrap_or_else(|_| "?".to_owned()))
        }
        Ok(about) if about.is_file() => format!("{name} ({})", about.len()),
        Ok(_) => format!("{name} (special)"),
        Err(_) => name,
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::tools::{ToolSession, ToolSetup};

    #[tokio::test]
    async fn entries_are_shown_in_order_with_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let setup = ToolSetup::new(folder.path().to_owned(), "".into());
        let context =
            ToolContext::new(Arc::new(ToolSession::new(setup, None)), "c", CancellationToken::new());
        let ls = |args: Value| Ls.run(&context, Arguments::of(args).unwrap());
        assert_eq!(ls(json!({})).await.text, "[. is empty]");
        fs::create_dir(folder.path().join("dir")).unwrap();
        fs::write(folder.path().join(".hidden"), "abc").unwrap();
        fs::write(folder.path().join("b"), "").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("b", folder.path().join("link")).unwrap();
        assert_eq!(ls(json!({"path": "."})).await.text, ".hidden (3)\nb (0)\ndir/\nlink -> b");
        for number in 0..MOST {
            fs::write(folder.path().join("dir").join(format!("{number:04}")), "").unwrap();
        }
        assert!(!ls(json!({"directory": "dir"})).await.text.contains("are shown"));
        fs::write(folder.path().join("dir/more"), "").unwrap();
        assert!(ls(json!({"path": "dir"})).await.text.ends_with("[1000 of 1001 entries are shown]"));
        let output = ls(json!({"path": "b"})).await;
        assert!(output.is_error && output.text.starts_with("b cannot be listed"), "{}", output.text);
        assert!(ls(json!({"path": "/"})).await.is_error);
    }
}
