//! Owns the list of tasks that a user sees. Pure.

use serde_json::Value;

/// The most tasks of a list.
const MOST: usize = 200;

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Todo {
    content: String,
    status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Pending,
    InProgress,
    Completed,
}

/// The list as the agent gives it.
pub(super) fn read(list: &Value) -> Result<Vec<Todo>, String> {
    let items = list.as_array().ok_or("`todos` must be a list")?;
    if items.len() > MOST {
        return Err(format!("`todos` may have {MOST} tasks at most"));
    }
    let todo = |item: &Value| {
        let content =
            item.get("content").and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        let status = match item.get("status").and_then(Value::as_str) {
            None | Some("pending") => Status::Pending,
            Some("in_progress") => Status::InProgress,
            Some("completed") => Status::Completed,
            Some(other) => return Err(format!("{other:?} is no status: pending, in_progress or completed")),
        };
        let content = content.ok_or("each task needs a `content`")?.to_owned();
        Ok(Todo { content, status })
    };
    items.iter().map(todo).collect()
}

/// The list as it is shown to the user and the agent.
pub(super) fn shown(todos: &[Todo]) -> String {
    if todos.is_empty() {
        return "The list is empty.".to_owned();
    }
    let line = |todo: &Todo| {
        let sign = match todo.status {
            Status::Pending => "[ ]",
            Status::InProgress => "[>]",
            Status::Completed => "[x]",
        };
        format!("{sign} {}", todo.content)
    };
    todos.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_read_whole_or_not_at_all() {
        let list = json!([{"content": "a"}, {"content": "b", "status": "in_progress"}, {"content": "c", "status": "completed"}]);
        assert_eq!(shown(&read(&list).unwrap()), "[ ] a\n[>] b\n[x] c");
        assert_eq!(shown(&[]), "The list is empty.");
        for bad in [json!({}), json!([{"status": "pending"}]), json!([{"content": "a", "status": "odd"}])] {
            assert!(read(&bad).is_err(), "{bad}");
        }
    }
}
