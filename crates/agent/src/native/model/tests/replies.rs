//! How the answers of each service are read.

use serde_json::json;

use super::*;

#[tokio::test]
async fn a_text_comes_in_its_pieces_and_as_a_whole() {
    let words = "Grüße, мир, 世界! 🦀 and a good day to everybody";
    for id in ALL {
        let usage = json!({ "input": 7, "output": 3, "cacheRead": 2 });
        let server = scripted(&[json!({ "text": words, "usage": usage })]);
        let said = ask(&model(&server, id), &hello()).await;
        assert_eq!((said.text.as_str(), said.answer().text().as_str()), (words, words), "{id}");
        assert_eq!(said.answer().stop, ModelStop::End, "{id}");
        let usage = said.answer().usage.unwrap();
        assert_eq!((usage.input, usage.output), (7, 3), "{id}: {usage:?}");
        let cached = if id.starts_with("ollama") { 0 } else { 2 };
        assert_eq!((usage.cache_read, usage.total()), (cached, 10 + cached), "{id}");
        assert_eq!(server.requests()[0].last(), "hello", "{id}");
    }
}

#[tokio::test]
async fn calls_in_pieces_keep_the_text_of_their_arguments() {
    let arguments = "{ \"z\": 123456789012345678901234567890,\n \"a\": 1.10, \"t\": \"\\u00e4\\\" }\" }";
    for id in OWN {
        let reply = json!({ "text": "I look.", "calls": [
            { "name": "look", "arguments": arguments, "pieces": 9, "id": "call_x" },
            { "name": "look", "arguments": { "b": 2 }, "pieces": 2 },
            { "name": "stop", "arguments": "" },
        ]});
        let server = scripted(&[reply]);
        let said = ask_with(&model(&server, id), "", &hello(), &[tool("look", &json!({}))]).await;
        let answer = said.answer();
        assert_eq!((answer.stop.clone(), answer.text().as_str()), (ModelStop::Calls, "I look."), "{id}");
        let calls: Vec<(&str, &str)> =
            answer.calls().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
        assert_eq!(calls, [("look", arguments), ("look", "{\"b\":2}"), ("stop", "{}")], "{id}");
        let ids: std::collections::BTreeSet<&str> = answer.calls().map(|call| call.id.as_str()).collect();
        assert_eq!((ids.len(), ids.contains("call_x")), (3, true), "{id}");
        assert!(said.deltas.len() >= 6 && said.deltas.iter().any(|delta| delta == arguments), "{id}");
    }
}

#[tokio::test]
async fn calls_of_the_other_protocols_come_whole() {
    for id in ["gemini::gemini-x", "ollama::m"] {
        let reply = json!({ "calls": [{ "name": "a", "arguments": { "x": 1 } }, { "name": "a", "arguments": { "x": 2 } }] });
        let server = scripted(&[reply, json!({ "text": "done" })]);
        let model = model(&server, id);
        let said = ask_with(&model, "", &hello(), &[tool("a", &json!({}))]).await;
        let answer = said.answer().clone();
        assert_eq!(answer.stop, ModelStop::Calls, "{id}");
        let calls: Vec<&ModelCall> = answer.calls().collect();
        let arguments: Vec<&str> = calls.iter().map(|call| call.arguments.as_str()).collect();
        assert_eq!(arguments, ["{\"x\":1}", "{\"x\":2}"], "{id}");
        assert_ne!(calls[0].id, calls[1].id, "{id}");
        let results = calls.iter().zip(["one", "two"]).map(|(call, text)| ToolAnswer {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: vec![UserPart::Text(text.to_owned())],
            is_error: false,
        });
        let messages =
            [hello()[0].clone(), Message::Assistant(answer.parts.clone()), Message::Tools(results.collect())];
        ask(&model, &messages).await.answer();
        let text = &server.requests()[1].text;
        assert!(text.contains("one") && text.contains("two"), "{id}: {text}");
    }
}

#[tokio::test]
async fn what_a_service_sealed_it_sees_again_and_no_other_does() {
    for id in ["openai-responses::gpt-5", "anthropic::claude-x", "gemini::gemini-x"] {
        let first = json!({ "thinking": "Hm, let me see", "calls": [{ "name": "look", "arguments": {} }] });
        let server = scripted(&[first, json!({ "text": "done" })]);
        let said = ask_with(&model(&server, id), "", &hello(), &[tool("look", &json!({}))]).await;
        assert_eq!(said.thinking, "Hm, let me see", "{id}");
        let call = said.answer().calls().next().unwrap().clone();
        let result = ToolAnswer {
            call_id: call.id,
            name: call.name,
            content: vec![UserPart::Text("seen".to_owned())],
            is_error: false,
        };
        let messages = [
            hello()[0].clone(),
            Message::Assistant(said.answer().parts.clone()),
            Message::Tools(vec![result]),
        ];
        let kept = serde_json::to_string(&messages).unwrap();
        let messages: Vec<Message> = serde_json::from_str(&kept).unwrap();
        for other in ALL {
            ask(&model(&server, other), &messages).await.answer();
            let sealed = server.requests().last().unwrap().text.contains("sealed-1");
            assert_eq!(sealed, other == id, "{id} to {other}: {}", server.requests().last().unwrap().text);
        }
    }
}

#[tokio::test]
async fn refusals_and_filters_are_the_reason_of_the_end() {
    for id in OWN {
        let server = scripted(&[
            json!({ "refusal": "I will not do that" }),
            json!({ "text": "So", "stop": "filter" }),
        ]);
        let model = model(&server, id);
        let said = ask(&model, &hello()).await;
        assert_eq!(said.answer().stop, ModelStop::Refused("I will not do that".to_owned()), "{id}");
        let said = ask(&model, &hello()).await;
        assert!(matches!(said.answer().stop, ModelStop::Refused(_)), "{id}: {said:?}");
    }
    let server = scripted(&[json!({ "refusal": "x" })]);
    let said = ask(&model(&server, "gemini::gemini-x"), &hello()).await;
    assert_eq!(said.answer().stop, ModelStop::Refused("SAFETY".to_owned()));
}

#[tokio::test]
async fn at_the_most_tokens_half_a_call_is_no_call() {
    for id in OWN {
        let calls = json!([{ "name": "a", "arguments": { "x": 1 } }, { "name": "b", "arguments": "{\"path\": \"/et" }]);
        let server = scripted(&[json!({ "text": "So", "calls": calls, "stop": "length" })]);
        let said = ask_with(&model(&server, id), "", &hello(), &[tool("a", &json!({}))]).await;
        let names: Vec<&str> = said.answer().calls().map(|call| call.name.as_str()).collect();
        assert_eq!((said.answer().stop.clone(), names), (ModelStop::MaxTokens, vec!["a"]), "{id}");
    }
}

#[tokio::test]
async fn a_call_that_is_being_written_is_told_without_being_copied_at_every_piece() {
    let long = json!({ "text": "x".repeat(20_000) }).to_string();
    for id in OWN {
        let server = scripted(&[json!({ "calls": [{ "name": "w", "arguments": long, "pieces": 4000 }] })]);
        let said = ask(&model(&server, id), &hello()).await;
        assert_eq!(said.answer().calls().next().unwrap().arguments, long, "{id}");
        let told: usize = said.deltas.iter().map(String::len).sum();
        assert!((20_000..800_000).contains(&told), "{id}: {told}");
    }
}

#[tokio::test]
async fn the_first_answer_over_plain_http_waits_for_no_certificates() {
    let server = scripted(&[json!({ "text": "well" })]);
    let models = models(&server, patience());
    let said = ask(&models.open(&choice("openai::m", &Value::Null)).unwrap(), &hello()).await;
    assert_eq!(said.text, "well");
    assert!(!models.has_read_certificates());
}
