//! `toolway prompt`: one prompt with its arguments put in, or the list of them.

use std::fmt::Write as _;
use std::io::Write as _;

use serde_json::{Value, json};

use super::shell::{
    Choice, Definition, Refusal, Session, Shell, Word, build, definitions, find_prompt, read_words, told,
};
use crate::args::PromptArgs;
use crate::exit::Exit;
use crate::show::{Shown, one_line, safe, show_block};
use crate::table::{Align, columns};

/// Gets it.
pub(super) fn run(args: &PromptArgs) -> Exit {
    told(prompt(args))
}

fn prompt(args: &PromptArgs) -> Result<Exit, Refusal> {
    let shell = Shell::new(&args.talk)?;
    let choice = shell.choose(&args.ad_hoc, &args.sources, &args.words)?;
    let Some((name, words)) = choice.words.split_first() else {
        let lists = Shell::block_on(async {
            let mut session = shell.open(&choice.config).await?;
            let lists = session.lists().await;
            session.close().await;
            lists
        })?;
        return list(&shell, &definitions(&lists.prompts), &lists.notes);
    };
    let words = read_words(words)?;
    let result = Shell::block_on(async {
        let mut session = shell.open(&choice.config).await?;
        let result = one(&mut session, &choice, name, &words).await;
        session.close().await;
        result
    })?;
    if shell.json {
        shell.print_json(&result)?;
        return Ok(Exit::Done);
    }
    let messages = result.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let shelf = shell.shelf(args.save_to.as_deref(), &[&choice.config.name, name]);
    let mut shown = Shown::default();
    for message in messages {
        if messages.len() > 1 {
            // One message is its text; several need their speakers.
            let role = message.get("role").and_then(Value::as_str).unwrap_or("message");
            writeln!(shown.out, "{}:", one_line(role, 40)).unwrap_or_default();
        }
        let content = message.get("content").unwrap_or(&Value::Null);
        let blocks = content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice);
        for block in blocks {
            show_block(&mut shown, block, &shell.terminal, &shelf);
        }
    }
    std::io::stdout().lock().write_all(shown.out.as_bytes())?;
    for note in &shown.notes {
        crate::border::say(format_args!("note: {}", safe(note)));
    }
    Ok(Exit::Done)
}

async fn one(
    session: &mut Session,
    choice: &Choice<'_>,
    name: &str,
    words: &[Word],
) -> Result<Value, Refusal> {
    let lists = session.lists().await?;
    let prompts = definitions(&lists.prompts);
    let definition = find_prompt(choice, name, &prompts)?;
    let built = build(words, &definition.prompt_schema())?;
    for note in &built.notes {
        crate::border::say(format_args!("note: {}", safe(note)));
    }
    let mut voice = session.voice(name);
    session.prompt(name, &Value::Object(built.arguments).to_string(), &mut voice).await
}

fn list(shell: &Shell, prompts: &[Definition], notes: &[String]) -> Result<Exit, Refusal> {
    if shell.json {
        let raw: Vec<&Value> = prompts.iter().map(|own| &own.value).collect();
        shell.print_json(&json!({ "schema": 1, "prompts": raw, "notes": notes }))?;
        return Ok(Exit::Done);
    }
    let rows: Vec<Vec<String>> = prompts
        .iter()
        .map(|own| {
            let schema = own.prompt_schema();
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let arguments = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| {
                if required.iter().any(|own| own == name) { format!("{name}=") } else { format!("[{name}=]") }
            });
            let arguments = one_line(&arguments.collect::<Vec<_>>().join(" "), 60);
            vec![one_line(own.name(), 64), arguments, one_line(own.summary(), 100)]
        })
        .collect();
    if rows.is_empty() {
        crate::border::say(format_args!("note: there are no prompts"));
    }
    shell.print(&columns(&[Align::Left; 3], &rows))?;
    for note in notes {
        crate::border::say(format_args!("note: {}", safe(note)));
    }
    Ok(Exit::Done)
}
