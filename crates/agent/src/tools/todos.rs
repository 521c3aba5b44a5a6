//! Owns the list of what is to do, and the tools `updateTodos` and `readTodos`. It knows no files.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolway_bridge::RawJson;

use super::arguments::fault;
use super::{Arguments, Capability, Tool, ToolContext, ToolOutput};
use crate::engine::BoxFuture;
use crate::policy::Action;

/// Entries that a list may have.
const MOST: usize = 200;
const STATUSES: [&str; 4] = ["pending", "in_progress", "completed", "cancelled"];

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Todo {
    id: String,
    content: String,
    status: String,
}

/// The list of an agent.
#[derive(Debug, Default)]
pub(crate) struct Todos {
    list: Mutex<Vec<Todo>>,
}

impl Todos {
    /// As it is kept with a conversation.
    pub(crate) fn snapshot(&self) -> RawJson {
        RawJson::of(&json!(*self.lock()))
    }

    /// From what was kept. What cannot be read is no list.
    pub(crate) fn restore(&self, kept: &RawJson) {
        *self.lock() = serde_json::from_value(kept.tree()).unwrap_or_default();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Todo>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn output(&self) -> ToolOutput {
        let list = self.lock();
        let lines: Vec<String> = list
            .iter()
            .map(|todo| {
                let mark = match todo.status.as_str() {
                    "completed" => "x",
                    "in_progress" => ">",
                    "cancelled" => "-",
                    _ => " ",
                };
                format!("[{mark}] {} ({})", todo.content, todo.id)
            })
            .collect();
        let text = if lines.is_empty() { "Nothing is to do.".to_owned() } else { lines.join("\n") };
        ToolOutput::text(text).with_details(&json!({"todos": *list}))
    }
}

/// `updateTodos`.
#[derive(Debug)]
pub(super) struct UpdateTodos;

impl Tool for UpdateTodos {
    fn name(&self) -> &'static str {
        "updateTodos"
    }

    fn capability(&self) -> Capability {
        Capability::UpdateTodos
    }

    fn description(&self) -> String {
        "Keeps the list of what is to do, for work of several steps. Give the whole list, or with merge=true only the \
         entries that change (found by id). Have one entry in_progress at a time, and mark each completed as soon as it \
         is."
            .to_owned()
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "todos": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": {"type": "string", "description": "A short name, unique in the list"},
                            "content": {"type": "string", "description": "What is to do"},
                            "status": {"type": "string", "enum": STATUSES},
                        },
                        "required": ["id"],
                    },
                },
                "merge": {"type": "boolean", "description": "Change these entries and keep the others"},
            },
            "required": ["todos"],
        })
    }

    fn actions(&self, _context: &ToolContext, args: &Arguments) -> Result<Vec<Action>, ToolOutput> {
        args.only(&["todos", "merge"])?;
        Ok(Vec::new())
    }

    fn run<'a>(&'a self, context: &'a ToolContext, args: Arguments) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let todos = &context.session.todos;
            update(todos, &args).map_or_else(|error| error, |()| todos.output())
        })
    }
}

fn update(todos: &Todos, args: &Arguments) -> Result<(), ToolOutput> {
    let entries = args.objects("todos")?.ok_or_else(|| fault("todos", "is missing"))?;
    let merge = args.flag("merge")?;
    let mut list = if merge { todos.lock().clone() } else { Vec::new() };
    for (index, entry) in entries.iter().enumerate() {
        let named = |name: &str, message: &str| fault(&format!("todos[{index}].{name}"), message);
        let content = entry.text("content")?.filter(|content| !content.trim().is_empty());
        let id =
            entry.text("id")?.filter(|id| !id.trim().is_empty()).unwrap_or_else(|| (index + 1).to_string());
        let status = entry.word("status", &STATUSES)?;
        match list.iter_mut().find(|todo| todo.id == id) {
            Some(_) if !merge => return Err(named("id", "is in the list twice")),
            Some(todo) => {
                todo.status = status.map_or_else(|| todo.status.clone(), str::to_owned);
                todo.content = content.unwrap_or_else(|| todo.content.clone());
            }
            None => {
                let content = content.ok_or_else(|| named("content", "is missing"))?;
                list.push(Todo { id, content, status: status.unwrap_or("pending").to_owned() });
            }
        }
    }
    if list.len() > MOST {
        return Err(fault("todos", format!("a list may have {MOST} entries, not {}", list.len())));
    }
    *todos.lock() = list;
    Ok(())
}

/// `readTodos`.
#[derive(Debug)]
pub(super) struct ReadTodos;

impl Tool for ReadTodos {
    fn name(&self) -> &'static str {
        "readTodos"
    }

    fn capability(&self) -> Capability {
        Capability::ReadTodos
    }

    fn description(&self) -> String {
        "Shows the list of what is to do.".to_owned()
    }

    fn schema(&self) -> Value {
        json!({"type": "object", "properties": {}})
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn actions(&self, _context: &ToolContext, args: &Arguments) -> Result<Vec<Action>, ToolOutput> {
        args.only(&[])?;
        Ok(Vec::new())
    }

    fn run<'a>(&'a self, context: &'a ToolContext, _args: Arguments) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { context.session.todos.output() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(todos: &Todos, value: Value) -> Result<(), ToolOutput> {
        update(todos, &Arguments::of(value).unwrap())
    }

    #[test]
    fn a_list_is_set_merged_shown_and_kept() {
        let todos = Todos::default();
        assert_eq!(todos.output().text, "Nothing is to do.");
        change(
            &todos,
            json!({"todos": [{"id": "a", "content": "dig"}, {"id": "b", "content": "fill", "status": "in_progress"}]}),
        )
        .unwrap();
        change(&todos, json!({"todos": [{"id": "b", "status": "completed"}], "merge": "true"})).unwrap();
        assert_eq!(todos.output().text, "[ ] dig (a)\n[x] fill (b)");
        let other = Todos::default();
        other.restore(&todos.snapshot());
        assert_eq!(other.output(), todos.output());
        other.restore(&RawJson::of(&json!({"x": 1})));
        assert_eq!(other.output().text, "Nothing is to do.");
    }

    #[test]
    fn a_bad_list_changes_nothing_and_is_said() {
        let todos = Todos::default();
        change(&todos, json!({"todos": [{"id": "a", "content": "dig"}]})).unwrap();
        let table = [
            (json!({}), "Argument `todos`: is missing."),
            (json!({"todos": [{"id": "n"}]}), "Argument `todos[0].content`: is missing."),
            (
                json!({"todos": [{"id": "n", "content": "x"}, {"id": "n", "content": "y"}]}),
                "Argument `todos[1].id`: is in the list twice.",
            ),
        ];
        for (value, text) in table {
            assert_eq!(change(&todos, value).unwrap_err().text, text);
        }
        let error =
            change(&todos, json!({"todos": [{"id": "a", "status": "odd"}], "merge": true})).unwrap_err();
        assert!(error.text.contains("pending, in_progress, completed, cancelled"), "{}", error.text);
        assert_eq!(todos.output().text, "[ ] dig (a)");
    }
}
