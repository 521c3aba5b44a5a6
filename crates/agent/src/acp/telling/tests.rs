//! How pieces come together, and what cannot be read.

use serde_json::json;

use super::*;

fn telling() -> Telling {
    Telling::new("s", Names::default(), OpenCalls::new("run-1"), None)
}

fn update(telling: &mut Telling, update: &Value) -> (Vec<Told>, Said) {
    let params = RawJson::of(&json!({"sessionId": "s", "update": update}));
    telling.update(&params, Instant::now(), &|_| None)
}

fn say(text: &str, message: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "messageId": message, "content": {"type": "text", "text": text}})
}

fn messages(told: &[Told]) -> Vec<String> {
    let text = |told: &Told| match told {
        Told::Event(EventKind::Assistant { content }) => match content.as_slice() {
            [AssistantBlock::Text(text)] => Some(text.clone()),
            _ => None,
        },
        _ => None,
    };
    told.iter().filter_map(text).collect()
}

#[tokio::test]
async fn another_message_is_another_event_and_the_last_one_is_the_result() {
    let mut telling = telling();
    let mut told = Vec::new();
    for (text, message) in [("a", "1"), ("b", "1"), ("c", "2")] {
        told.extend(update(&mut telling, &say(text, message)).0);
    }
    told.extend(telling.finish("over", Instant::now()));
    assert_eq!(messages(&told), ["ab", "c"]);
    assert_eq!(telling.result().as_deref(), Some("c"));
}

#[tokio::test]
async fn a_message_without_end_is_told_in_parts() {
    let mut telling = telling();
    let mut told = Vec::new();
    for _ in 0..5 {
        told.extend(update(&mut telling, &say(&"x".repeat(MESSAGE / 2), "1")).0);
    }
    assert_eq!(messages(&told).len(), 2);
    for _ in 0..10 {
        update(&mut telling, &say(&"x".repeat(MESSAGE), "1"));
    }
    assert_eq!(telling.result().map(|text| text.len()), Some(RESULT));
}

#[tokio::test]
async fn what_cannot_be_read_says_nothing() {
    let mut telling = telling();
    for odd in [
        json!({}),
        json!({"sessionUpdate": 1}),
        json!({"sessionUpdate": "agent_message_chunk"}),
        json!({"sessionUpdate": "tool_call"}),
        json!({"sessionUpdate": "plan", "entries": 3}),
        json!({"sessionUpdate": "usage_update", "cost": "much"}),
        json!("text"),
    ] {
        let (told, said) = update(&mut telling, &odd);
        let is_plan = odd.get("entries").is_some();
        assert!((told.is_empty() || is_plan) && said == Said::Nothing, "{odd}: {told:?}");
    }
    let strange = RawJson::of(&json!({"sessionId": "other", "update": say("x", "1")}));
    assert_eq!(telling.update(&strange, Instant::now(), &|_| None), (Vec::new(), Said::Nothing));
    assert_eq!(telling.strange, 1);
}

#[tokio::test]
async fn what_a_prompt_costs_is_what_the_session_costs_more() {
    let mut telling = Telling::new("s", Names::default(), OpenCalls::new("run-1"), Some(1.0));
    assert_eq!(telling.spent(), None);
    update(
        &mut telling,
        &json!({"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": {"amount": 1.25, "currency": "USD"}}),
    );
    update(
        &mut telling,
        &json!({"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": {"amount": 9.0, "currency": "EUR"}}),
    );
    assert_eq!((telling.spent(), telling.session_cost()), (Some(0.25), Some(1.25)));
}

#[test]
fn tokens_from_a_cache_are_not_counted_twice() {
    let read = |value: Value| usage(&json!({"usage": value}));
    let parts = |usage: Usage| (usage.input, usage.output, usage.cache_read);
    let counted = json!({"inputTokens": 100, "outputTokens": 20, "cachedReadTokens": 60, "totalTokens": 120});
    assert_eq!(read(counted).map(parts), Some((40, 20, 60)));
    let apart = json!({"inputTokens": 70, "outputTokens": 20, "cachedReadTokens": 30, "totalTokens": 120});
    assert_eq!(read(apart).map(parts), Some((70, 20, 30)));
    assert_eq!(usage(&json!({"stopReason": "end_turn"})), None);
}
