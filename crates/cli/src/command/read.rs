//! `toolway read`: one resource, or the list of them.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolway_proxy::gateway::RawLists;

use super::shell::{Choice, Refusal, Shell, definitions, told};
use crate::args::ReadArgs;
use crate::exit::Exit;
use crate::show::{Shown, one_line, safe, show_block};
use crate::table::{Align, columns};

/// Reads it.
pub(super) fn run(args: &ReadArgs) -> Exit {
    told(read(args))
}

fn read(args: &ReadArgs) -> Result<Exit, Refusal> {
    let shell = Shell::new(&args.talk)?;
    let Choice { config, words, .. } = shell.choose(&args.ad_hoc, &args.sources, &args.words)?;
    let Some(uri) = words.first() else {
        let lists = Shell::block_on(async {
            let mut session = shell.open(&config).await?;
            let lists = session.lists().await;
            session.close().await;
            lists
        })?;
        return list(&shell, &lists);
    };
    if words.len() > 1 {
        return Err(Refusal::usage("one URI at a time"));
    }
    let result = Shell::block_on(async {
        let mut session = shell.open(&config).await?;
        let mut voice = session.voice(uri);
        let result = session.read(uri, &mut voice).await;
        drop(voice);
        session.close().await;
        result
    })?;
    if shell.json {
        shell.print_json(&result)?;
        return Ok(Exit::Done);
    }
    let contents = result.get("contents").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if let ([content], false) = (contents, shell.terminal.out)
        && let Some(blob) = content.get("blob").and_then(Value::as_str)
    {
        // A pipe or a file takes the bytes themselves.
        let bytes = STANDARD.decode(blob.trim()).map_err(|error| Refusal {
            reason: format!("server {:?} sent a blob that is no base64: {error}", config.name),
            hint: None,
            exit: Exit::Ended,
        })?;
        std::io::stdout().lock().write_all(&bytes)?;
        return Ok(Exit::Done);
    }
    let shelf = shell.shelf(args.save_to.as_deref(), &[&config.name, "resource"]);
    let mut shown = Shown::default();
    for content in contents {
        let lone_text = contents.len() == 1 && content.get("text").is_some();
        let block = if lone_text {
            json!({ "type": "text", "text": content.get("text") })
        } else {
            json!({ "type": "resource", "resource": content })
        };
        show_block(&mut shown, &block, &shell.terminal, &shelf);
    }
    std::io::stdout().lock().write_all(shown.out.as_bytes())?;
    for note in &shown.notes {
        crate::border::say(format_args!("note: {}", safe(note)));
    }
    Ok(if shown.out.is_empty() && !shown.notes.is_empty() { Exit::Ended } else { Exit::Done })
}

fn list(shell: &Shell, lists: &RawLists) -> Result<Exit, Refusal> {
    let (resources, templates) = (definitions(&lists.resources), definitions(&lists.templates));
    if shell.json {
        let raw = |list: &[super::shell::Definition]| -> Vec<Value> {
            list.iter().map(|own| own.value.clone()).collect()
        };
        let page = json!({
            "schema": 1, "resources": raw(&resources), "resourceTemplates": raw(&templates), "notes": lists.notes
        });
        shell.print_json(&page)?;
        return Ok(Exit::Done);
    }
    let rows: Vec<Vec<String>> = resources
        .iter()
        .map(|own| (own, "uri"))
        .chain(templates.iter().map(|own| (own, "uriTemplate")))
        .map(|(own, key)| {
            let uri = one_line(own.text(key).unwrap_or_default(), usize::MAX);
            let text = [own.name(), own.summary()].into_iter().filter(|text| !text.is_empty());
            vec![uri, one_line(&text.collect::<Vec<_>>().join(": "), 100)]
        })
        .collect();
    if rows.is_empty() {
        crate::border::say(format_args!("note: there are no resources"));
    }
    shell.print(&columns(&[Align::Left; 2], &rows))?;
    for note in &lists.notes {
        crate::border::say(format_args!("note: {}", safe(note)));
    }
    Ok(Exit::Done)
}
