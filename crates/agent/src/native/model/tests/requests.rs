//! What each service is asked, and how.

use serde_json::json;

use super::*;

fn call(id: &str, name: &str, arguments: &str) -> AnswerPart {
    AnswerPart::Call(ModelCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        seal: None,
    })
}

fn result(id: &str, content: Vec<UserPart>, is_error: bool) -> ToolAnswer {
    ToolAnswer { call_id: id.to_owned(), name: "look".to_owned(), content, is_error }
}

async fn body(id: &str, params: &Value, system: &str, messages: &[Message], tools: &[ToolSpec]) -> Value {
    let server = scripted(&[json!({ "text": "well" })]);
    let model = models(&server, patience()).open(&choice(id, params)).unwrap();
    ask_with(&model, system, messages, tools).await.answer();
    server.requests()[0].body.clone()
}

fn pictures() -> Vec<Message> {
    let image = UserPart::Image { mime_type: "image/png".to_owned(), data: "aGVsbG8=".to_owned() };
    vec![
        Message::User(vec![UserPart::Text("see".to_owned()), image.clone()]),
        Message::Assistant(vec![
            call("c1", "look", "{}"),
            call("c2", "look", "{\"n\":99999999999999999999}"),
        ]),
        Message::Tools(vec![
            result("c2", vec![UserPart::Text("went wrong".to_owned())], true),
            result("c1", vec![UserPart::Text("a picture".to_owned()), image], false),
        ]),
    ]
}

#[tokio::test]
async fn results_with_pictures_and_errors_reach_chat_completions() {
    let body = body("openai::m", &Value::Null, "Be kind.", &pictures(), &[]).await;
    let messages = body["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "user"]);
    assert_eq!(messages[1]["content"][1]["image_url"]["url"], "data:image/png;base64,aGVsbG8=");
    assert_eq!(messages[2]["tool_calls"][1]["function"]["arguments"], r#"{"n":"99999999999999999999"}"#);
    assert_eq!(messages[3], json!({ "role": "tool", "tool_call_id": "c2", "content": "Error: went wrong" }));
    assert_eq!(messages[4]["content"], "a picture\n[a picture, which follows]");
    assert_eq!(messages[5]["content"][1]["image_url"]["url"], "data:image/png;base64,aGVsbG8=");
}

#[tokio::test]
async fn results_with_pictures_and_errors_reach_anthropic_as_they_are() {
    let body = body("anthropic::claude-x", &Value::Null, "Be kind.", &pictures(), &[]).await;
    assert_eq!(body["system"][0]["text"], "Be kind.");
    let last = body["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["role"], "user");
    assert_eq!(last["content"][0]["tool_use_id"], "c2");
    assert_eq!(last["content"][0]["is_error"], true);
    assert_eq!(last["content"][1]["content"][1]["source"]["data"], "aGVsbG8=");
    assert_eq!(last["content"][1]["cache_control"]["type"], "ephemeral");
    assert!(body["max_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn results_with_pictures_and_errors_reach_responses() {
    let body = body("openai-responses::gpt-5", &Value::Null, "Be kind.", &pictures(), &[]).await;
    assert_eq!((&body["instructions"], &body["store"]), (&json!("Be kind."), &json!(false)));
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    let input = body["input"].as_array().unwrap();
    let outputs: Vec<&Value> = input.iter().filter(|item| item["type"] == "function_call_output").collect();
    assert_eq!(outputs[0]["output"], "Error: went wrong");
    assert_eq!(input.last().unwrap()["content"][1]["image_url"], "data:image/png;base64,aGVsbG8=");
}

#[tokio::test]
async fn a_model_that_cannot_see_gets_a_note_in_place_of_a_picture() {
    for id in ALL {
        let body = body(id, &json!({ "images": false }), "", &pictures(), &[]).await.to_string();
        assert!(
            !body.contains("aGVsbG8=") && body.contains("a picture, which this model cannot see"),
            "{id}: {body}"
        );
    }
}

#[tokio::test]
async fn every_call_has_a_result_and_every_result_a_call() {
    let messages = [
        Message::user("a"),
        Message::Assistant(vec![call("c1", "look", "{}"), call("c2", "look", "{}")]),
        Message::Tools(vec![result("c2", vec![UserPart::Text("fine".to_owned())], false)]),
        Message::user("b"),
        Message::Assistant(vec![call("c3", "look", "no json")]),
        Message::user("c"),
        Message::Tools(vec![result("gone", vec![UserPart::Text("stray".to_owned())], false)]),
    ];
    let chat = body("openai::m", &Value::Null, "", &messages, &[]).await;
    let told: Vec<(String, String)> = chat["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            let who = message["tool_call_id"].as_str().or(message["role"].as_str()).unwrap();
            (who.to_owned(), message["content"].as_str().unwrap_or_default().to_owned())
        })
        .collect();
    let who: Vec<&str> = told.iter().map(|(who, _)| who.as_str()).collect();
    assert_eq!(who, ["user", "assistant", "c2", "c1", "user", "assistant", "c3", "user", "user"]);
    assert!(
        told[3].1.contains("interrupted") && told[6].1.contains("interrupted") && told[8].1.contains("stray")
    );
    let anthropic = body("anthropic::claude-x", &Value::Null, "", &messages, &[]).await;
    assert_eq!(anthropic["messages"][4]["content"][0]["input"], json!({ "invalid_arguments": "no json" }));
}

#[tokio::test]
async fn tools_are_offered_with_schemas_that_services_take() {
    let schema =
        json!({ "anyOf": [{ "properties": { "a": { "const": 1 } } }], "x-own": { "$comment": "kept" } });
    for id in ALL {
        let server = scripted(&[json!({ "text": "well" })]);
        ask_with(&model(&server, id), "", &hello(), &[tool("one__two", &schema), tool("b", &json!(true))])
            .await
            .answer();
        let request = &server.requests()[0];
        assert_eq!(request.tools(), ["one__two", "b"], "{id}");
        let tool = &request.body["tools"][0];
        let places = [
            "/function/parameters",
            "/parameters",
            "/input_schema",
            "/functionDeclarations/0/parametersJsonSchema",
        ];
        let told = places.iter().find_map(|place| tool.pointer(place)).unwrap();
        assert_eq!(
            (&told["type"], &told["x-own"]["$comment"]),
            (&json!("object"), &json!("kept")),
            "{id}: {told}"
        );
        assert_eq!(told["properties"], json!({ "a": { "const": 1 } }), "{id}");
    }
}

#[tokio::test]
async fn parameters_reach_the_service() {
    let params = json!({
        "temperature": 0.5, "top_p": 0.25, "maxTokens": 77, "stop": ["END"], "seed": 4, "reasoningEffort": "low",
        "extra": { "metadata": { "user": "u" } },
    });
    let chat = body("openai::m", &params, "", &hello(), &[]).await;
    assert_eq!(
        (&chat["temperature"], &chat["top_p"], &chat["max_tokens"]),
        (&json!(0.5), &json!(0.25), &json!(77))
    );
    assert_eq!((&chat["stop"], &chat["seed"]), (&json!(["END"]), &json!(4)));
    assert_eq!((&chat["reasoning_effort"], &chat["metadata"]), (&json!("low"), &json!({ "user": "u" })));
    let responses = body("openai-responses::gpt-5", &params, "", &hello(), &[]).await;
    assert_eq!(
        (&responses["max_output_tokens"], &responses["reasoning"]["effort"]),
        (&json!(77), &json!("low"))
    );
    let anthropic = body("anthropic::claude-x", &params, "", &hello(), &[]).await;
    assert_eq!((&anthropic["max_tokens"], &anthropic["stop_sequences"]), (&json!(77), &json!(["END"])));
}

#[tokio::test]
async fn a_name_that_ends_like_an_effort_is_a_name() {
    for id in ["openai::qwen-max", "openai::llama-high", "openai-responses::x-low"] {
        let body = body(id, &Value::Null, "", &hello(), &[]).await;
        assert_eq!(Some(body["model"].as_str().unwrap()), id.split("::").nth(1));
        assert!(
            body.get("reasoning_effort").is_none() && body.pointer("/reasoning/effort").is_none(),
            "{body}"
        );
    }
}

#[tokio::test]
async fn the_key_is_in_its_header_and_nowhere_else() {
    let headers = [
        ("openai::m", "authorization"),
        ("openai-responses::gpt-5", "authorization"),
        ("anthropic::claude-x", "x-api-key"),
        ("gemini::gemini-x", "x-goog-api-key"),
    ];
    for (id, header) in headers {
        let server = scripted(&[json!({ "text": "well" })]);
        let models = models(&server, patience());
        let model = models.open(&choice(id, &Value::Null)).unwrap();
        ask(&model, &hello()).await.answer();
        let request = server.requests()[0].clone();
        assert!(request.header(header).unwrap().ends_with(KEY), "{id}");
        let shown = format!("{models:?} {model:?} {} {}", request.path, request.text);
        assert!(!shown.contains(KEY), "{id}: {shown}");
    }
}

#[tokio::test]
async fn an_address_of_one_s_own_needs_no_key() {
    for id in ALL {
        let server = scripted(&[json!({ "text": "well" })]);
        let access = ServiceAccess { base_url: Some(server.root()), ..ServiceAccess::default() };
        let model = RemoteModels::new(access, patience()).open(&choice(id, &Value::Null)).unwrap();
        ask(&model, &hello()).await.answer();
        let request = server.requests()[0].clone();
        assert!(request.header("authorization").is_none() && request.header("x-api-key").is_none(), "{id}");
    }
}
