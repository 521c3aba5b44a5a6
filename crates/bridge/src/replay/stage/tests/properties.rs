//! What holds of every output, whatever an agent says.

use proptest::prelude::*;

use super::*;

fn anything() -> impl Strategy<Value = Value> {
    let text = "(\\PC|\\n|\u{1b}\\[31m|\u{7}|[a-z /]{0,40}){0,60}";
    let leaf = prop_oneof![
        text.prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null)
    ];
    leaf.prop_recursive(3, 24, 6, move |inner| {
        let key = prop::sample::select(vec![
            "path",
            "command",
            "content",
            "status",
            "success",
            "error",
            "value",
            "oldText",
            "newText",
            "toolName",
            "files",
            "matches",
            "todos",
            "stdout",
            "exitCode",
            "timeout",
            "diff",
            "description",
            "plan",
            "workspaceResults",
            "text",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key.prop_map(str::to_owned), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The texts of a value, with the names of members.
fn texts(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|inner| texts(inner, out)),
        Value::Object(map) => map.values().for_each(|inner| texts(inner, out)),
        _ => {}
    }
}

proptest! {
    #[test]
    fn no_output_exceeds_its_limit_or_holds_control_characters(
        kind in prop::sample::select(vec!["read", "shell", "grep", "glob", "ls", "edit", "write", "delete", "readLints", "updateTodos",
            "createPlan", "task", "generateImage", "mcp", "semSearch", "recordScreen", "webFetch", "\u{1b}[31mred\n"]),
        args in anything(), result in anything(), repeat in 1usize..400, route in 0u8..3,
    ) {
        let mut context = context();
        context.display = route != 0;
        if route == 1 { context.context_tools.clear(); }
        let mut stage = Replay::new(context, Scrubber::new(), Arc::new(Disk));
        let grown = match &result {
            Value::String(text) => Value::from(text.repeat(repeat)),
            other => other.clone(),
        };
        let mut over = call("a", kind, args, None);
        over.result = Some(RawJson::of(&grown));
        for output in stage.on(&AgentToolEvent::Completed(over), Instant::now()) {
            let mut all = Vec::new();
            match output {
                ReplayOutput::Trace(trace) => {
                    prop_assert!(trace.text.chars().count() <= TRANSCRIPT.chars + 1);
                    prop_assert!(trace.text.lines().count() <= TRANSCRIPT.lines);
                    prop_assert!(trace.kind != TraceKind::Inactive || trace.text.lines().count() <= 1);
                    all.push(trace.text);
                }
                ReplayOutput::Card { id, card } => {
                    prop_assert!(id.as_str().len() <= 64);
                    prop_assert!(card.summary.chars().count() <= 240 && !card.summary.contains('\n'));
                    prop_assert!(card.title.chars().count() <= 100 && !card.title.contains('\n'));
                    prop_assert!(!card.is_error || card.summary.is_empty());
                    let text = card.text();
                    prop_assert!(text.chars().count() <= TRANSCRIPT.chars && text.lines().count() <= TRANSCRIPT.lines);
                    if card.tool == "read" {
                        prop_assert!(text.chars().count() <= 4_000 && text.lines().count() <= 22);
                    }
                    texts(&card.tool_call("i"), &mut all);
                    texts(&card.tool_result("i"), &mut all);
                }
                ReplayOutput::Debug(text) => all.push(text),
            }
            for text in all {
                prop_assert!(text.chars().all(|char| !char.is_control() || char == '\n' || char == '\t'), "{text:?}");
                prop_assert!(text.chars().count() <= TRANSCRIPT.chars);
            }
        }
    }

    #[test]
    fn no_card_comes_of_a_call_of_the_bridge(steps in prop::collection::vec((0usize..4, 0usize..3), 1..30), hide_at in 0usize..30, end in 0u8..4) {
        let (mut stage, now) = (stage(), Instant::now());
        let own = format!("{}{}-t1", Profile::PI.run_prefix, "0".repeat(32));
        let ids = [own.as_str(), "hidden", "other"];
        stage.hide("hidden");
        let mut shown = 0;
        for (index, (step, id)) in steps.iter().enumerate() {
            if index == hide_at { stage.hide("hidden"); }
            let activity = call(ids[*id], "mcp", json!({"toolName": format!("pi__{id}")}), (*step == 2).then(|| json!({"content": id})));
            let event = match step {
                0 => AgentToolEvent::Started(activity),
                1 => AgentToolEvent::Partial(activity),
                2 => AgentToolEvent::Completed(activity),
                _ => AgentToolEvent::Output { id: Some(ids[*id].to_owned()), stream: OutputStream::Stdout, text: "x".to_owned() },
            };
            shown += stage.on(&event, now).len() + stage.poll(now + Duration::from_secs(1)).len();
        }
        let end = [RunEnd::Failed, RunEnd::Aborted, RunEnd::Drained, RunEnd::Succeeded { text: false }][usize::from(end)];
        shown += stage.finish(end).len();
        let others = steps.iter().any(|(step, id)| *id == 2 && *step < 3);
        prop_assert!(others || shown == 0);
    }
}
