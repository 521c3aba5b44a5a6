//! What is asked of an agent for a model, a mode or a setting, from what it offers.

use super::*;

fn choices(value: &Value) -> Choices {
    Choices::read(&RawJson::of(value))
}

fn model(id: &str) -> ModelChoice {
    ModelChoice { id: id.to_owned(), params: Vec::new() }
}

fn settings() -> Choices {
    choices(&json!({"configOptions": [
        {"id": "m", "name": "Model", "category": "model", "type": "select", "currentValue": "a/one",
         "options": [{"value": "a/one", "name": "One"}, {"value": "b/two", "name": "Two"}]},
        {"id": "effort", "name": "Effort", "category": "thought_level", "type": "select", "currentValue": "low",
         "options": [{"group": "g", "name": "G", "options": [{"value": "low", "name": "l"}, {"value": "high", "name": "h"}]}]},
        {"id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": "build",
         "options": [{"value": "build", "name": "Build"}, {"value": "plan", "name": "Plan"}]},
        {"id": "web", "name": "Web", "type": "boolean", "currentValue": false},
    ]}))
}

#[test]
fn a_model_is_set_as_a_setting_of_the_agent() {
    let choices = settings();
    assert_eq!(choices.wish_model(&model("a/one")).unwrap(), None);
    for name in OWN_CHOICE {
        assert_eq!(choices.wish_model(&model(name)).unwrap(), None);
    }
    for name in ["b/two", "two"] {
        let wish = choices.wish_model(&model(name)).unwrap().unwrap();
        assert_eq!(wish.method, "session/set_config_option");
        assert_eq!(Value::Object(wish.params), json!({"configId": "m", "value": "b/two"}));
    }
    let error = choices.wish_model(&model("three")).unwrap_err();
    assert_eq!(error.code(), "validation_error");
    assert!(error.to_string().contains("a/one, b/two"), "{error}");
}

#[test]
fn the_older_list_of_models_is_understood() {
    let choices = choices(&json!({"models": {
        "currentModelId": "one", "availableModels": [{"modelId": "one", "name": "1"}, {"modelId": "two", "name": "2"}],
    }}));
    let wish = choices.wish_model(&model("two")).unwrap().unwrap();
    assert_eq!((wish.method, Value::Object(wish.params)), ("session/set_model", json!({"modelId": "two"})));
    assert!(choices.wish_model(&model("x")).unwrap_err().to_string().contains("one, two"));
}

#[test]
fn an_agent_without_a_choice_of_models_is_told_from_one_without_the_model() {
    let error = Choices::default().wish_model(&model("gpt")).unwrap_err();
    assert!(error.to_string().contains("lets no model be chosen"), "{error}");
}

#[test]
fn parameters_are_settings_and_none_is_ignored() {
    let choices = settings();
    let mut wanted = model("");
    wanted.params = vec![("reasoningEffort".to_owned(), json!("high")), ("web".to_owned(), json!(true))];
    let wishes = choices.wish_params(&wanted).unwrap();
    let params: Vec<Value> = wishes.into_iter().map(|wish| Value::Object(wish.params)).collect();
    assert_eq!(
        params,
        [
            json!({"configId": "effort", "value": "high"}),
            json!({"configId": "web", "type": "boolean", "value": true})
        ]
    );
    wanted.params = vec![("temperature".to_owned(), json!(0.5))];
    assert!(choices.wish_params(&wanted).unwrap_err().to_string().contains("model.params.temperature"));
    wanted.params = vec![("effort".to_owned(), json!("most"))];
    assert!(choices.wish_params(&wanted).unwrap_err().to_string().contains("low, high"));
}

#[test]
fn a_plan_needs_a_mode_for_it_and_the_way_back_is_known() {
    let mut choices = settings();
    assert_eq!(choices.wish_mode(Mode::Agent, None).unwrap(), None);
    let wish = choices.wish_mode(Mode::Plan, None).unwrap().unwrap();
    assert_eq!(Value::Object(wish.params.clone()), json!({"configId": "mode", "value": "plan"}));
    choices.granted(&wish);
    assert_eq!((choices.mode(), choices.wish_mode(Mode::Plan, None).unwrap()), (Some("plan"), None));
    let back = choices.wish_mode(Mode::Agent, Some("build")).unwrap().unwrap();
    assert_eq!(back.params["value"], "build");
    let error = Choices::default().wish_mode(Mode::Plan, None).unwrap_err();
    assert!(error.to_string().contains("mode for plans"), "{error}");
}

#[test]
fn modes_of_their_own_are_set_by_their_own_method() {
    let choices = choices(&json!({"modes": {
        "currentModeId": "https://x/modes#agent",
        "availableModes": [{"id": "https://x/modes#agent", "name": "A"}, {"id": "https://x/modes#plan", "name": "P"}],
    }}));
    let wish = choices.wish_mode(Mode::Plan, None).unwrap().unwrap();
    assert_eq!((wish.method, &wish.params["modeId"]), ("session/set_mode", &json!("https://x/modes#plan")));
}
