//! `toolway call`: one call of one tool.

use std::io::Write as _;

use serde_json::Value;

use super::shell::{Choice, Refusal, Session, Shell, Word, build, find_tool, offered, read_words, told};
use crate::args::CallArgs;
use crate::exit::Exit;
use crate::show::{Terminal, safe, show_result};

/// Calls the tool and shows what it says.
pub(super) fn run(args: &CallArgs) -> Exit {
    told(call(args))
}

fn call(args: &CallArgs) -> Result<Exit, Refusal> {
    let shell = Shell::new(&args.talk)?;
    let choice = shell.choose(&args.ad_hoc, &args.sources, &args.words)?;
    let Some((tool, words)) = choice.words.split_first() else {
        return Err(Refusal::usage("TOOL is missing")
            .with_hint(format!("toolway tools {} shows them", choice.spelled)));
    };
    let words = read_words(words)?;
    let result = Shell::block_on(async {
        let mut session = shell.open(&choice.config).await?;
        let answer = one(&mut session, &choice, tool, &words).await;
        session.close().await;
        answer
    })?;
    if shell.json {
        shell.print_json(&result)?;
        return Ok(exit(&result));
    }
    let shelf = shell.shelf(args.save_to.as_deref(), &[&choice.config.name, tool]);
    show(&result, &shell.terminal, &shelf)
}

async fn one(
    session: &mut Session,
    choice: &Choice<'_>,
    tool: &str,
    words: &[Word],
) -> Result<Value, Refusal> {
    let lists = session.lists().await?;
    let tools = offered(&lists.tools, &session.config.filter);
    let definition = find_tool(choice, tool, &tools)?;
    let built = build(words, definition.input_schema())?;
    for note in &built.notes {
        crate::border::say(format_args!("note: {}", safe(note)));
    }
    let arguments = Value::Object(built.arguments).to_string();
    let own = definition.own().to_owned();
    let mut voice = session.voice(tool);
    session.call(&own, &arguments, &mut voice).await
}

fn exit(result: &Value) -> Exit {
    if result.get("isError") == Some(&Value::Bool(true)) { Exit::Ended } else { Exit::Done }
}

/// A result goes to stdout. What a tool says of its failure goes to stderr: whoever reads stdout gets no text that is
/// no result.
fn show(result: &Value, terminal: &Terminal, shelf: &crate::show::Shelf) -> Result<Exit, Refusal> {
    let exit = exit(result);
    let failed = exit != Exit::Done;
    let seen = Terminal { out: if failed { terminal.err } else { terminal.out }, ..*terminal };
    let seen = if failed { Terminal { graphics: None, ..seen } } else { seen };
    let shown = show_result(result, &seen, shelf);
    if failed {
        let text = if shown.out.is_empty() { "the tool failed, and says nothing\n" } else { &shown.out };
        crate::border::tell(text);
    } else {
        std::io::stdout().lock().write_all(shown.out.as_bytes())?;
    }
    for note in &shown.notes {
        crate::border::say(format_args!("note: {}", safe(note)));
    }
    Ok(exit)
}
