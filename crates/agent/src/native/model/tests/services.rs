//! Which service an id names, and where its key and address come from.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::service::Target;
use super::*;

fn access(variables: &[(&str, &str)]) -> ServiceAccess {
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ServiceAccess { variables, ..ServiceAccess::default() }
}

fn keys() -> ServiceAccess {
    access(&[
        ("OPENAI_API_KEY", "ko"),
        ("ANTHROPIC_API_KEY", "ka"),
        ("GOOGLE_API_KEY", "kg"),
        ("XAI_API_KEY", "kx"),
    ])
}

#[test]
fn an_id_names_its_service_or_tells_it() {
    let ids = [
        ("gpt-4o", "openai", "gpt-4o", "https://api.openai.com/v1/"),
        ("gpt-5-mini", "openai-responses", "gpt-5-mini", "https://api.openai.com/v1/"),
        ("openai::gpt-5", "openai", "gpt-5", "https://api.openai.com/v1/"),
        ("OpenAI_Responses::o3", "openai-responses", "o3", "https://api.openai.com/v1/"),
        ("claude-opus-4-5", "anthropic", "claude-opus-4-5", "https://api.anthropic.com/v1/"),
        (
            "google::gemini-2.5-pro",
            "gemini",
            "gemini-2.5-pro",
            "https://generativelanguage.googleapis.com/v1beta/",
        ),
        ("ollama::llama3:8b", "ollama", "llama3:8b", "http://localhost:11434/"),
        ("grok-4", "xai", "grok-4", "https://api.x.ai/v1/"),
    ];
    for (id, service, name, base) in ids {
        let target = Target::of(id, &keys()).unwrap();
        assert_eq!(
            (target.service.name, target.model.as_str(), target.base.as_str()),
            (service, name, base),
            "{id}"
        );
        assert!(target.official, "{id}");
    }
}

#[test]
fn addresses_come_from_the_program_and_then_from_the_environment() {
    let env = access(&[
        ("OPENAI_BASE_URL", "http://one.test/api/v3"),
        ("ANTHROPIC_BASE_URL", "https://two.test"),
        ("OLLAMA_HOST", "three.test:99"),
    ]);
    for (id, service, base) in [
        ("gpt-5", "openai", "http://one.test/api/v3/"),
        ("qwen3-coder", "openai", "http://one.test/api/v3/"),
        ("claude-x", "anthropic", "https://two.test/v1/"),
        ("ollama::m", "ollama", "http://three.test:99/"),
    ] {
        let target = Target::of(id, &env).unwrap();
        assert_eq!(
            (target.service.name, target.base.as_str(), target.official),
            (service, base, false),
            "{id}"
        );
        assert!(target.key.is_none(), "{id}");
    }
    let given = ServiceAccess { base_url: Some("http://four.test/v1/".to_owned()), ..env };
    for (id, service) in [("claude-x", "openai"), ("a/b", "openai"), ("anthropic::claude-x", "anthropic")] {
        let target = Target::of(id, &given).unwrap();
        assert_eq!((target.service.name, target.base.as_str()), (service, "http://four.test/v1/"), "{id}");
    }
}

#[tokio::test]
async fn an_address_may_be_a_parameter_of_the_model() {
    let server = scripted(&[json!({ "text": "well" })]);
    let models = RemoteModels::new(keys(), patience());
    let model = models.open(&choice("anthropic::x", &json!({ "baseUrl": server.root() }))).unwrap();
    assert_eq!(ask(&model, &hello()).await.text, "well");
    assert_eq!(server.requests()[0].path, "/v1/messages");
}

fn refusal(id: &str, access: &ServiceAccess) -> AgentError {
    RemoteModels::new(access.clone(), patience()).open(&choice(id, &Value::Null)).unwrap_err()
}

#[test]
fn what_is_missing_is_said_by_its_name() {
    let none = ServiceAccess::default();
    for (id, code, words) in [
        ("claude-opus-4-5", "unauthenticated", ["claude-opus-4-5", "ANTHROPIC_API_KEY"]),
        ("gpt-5", "unauthenticated", ["gpt-5", "OPENAI_API_KEY"]),
        ("gemini-2.5-flash", "unauthenticated", ["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
        ("composer-2", "validation_error", ["composer-2", "anthropic"]),
        ("openai/gpt-5", "validation_error", ["`openai::gpt-5`", "openai/gpt-5"]),
        ("opnai::gpt-5", "validation_error", ["opnai::gpt-5", "openai-responses"]),
        ("openai::", "validation_error", ["openai::", "no model"]),
        (" ", "validation_error", ["no model", "anthropic::"]),
    ] {
        let error = refusal(id, &none);
        assert_eq!(error.code(), code, "{id}");
        assert!(words.iter().all(|word| error.to_string().contains(word)), "{id}: {error}");
    }
}

#[test]
fn an_empty_key_is_refused_though_the_environment_has_one() {
    for (key, id) in [("", "openai::m"), (" \n", "claude-x"), ("two words", "openai::m"), ("kö", "gemini-x")]
    {
        let access = ServiceAccess { api_key: Some(Secret::new(key)), ..keys() };
        let error = refusal(id, &access);
        assert_eq!(error.code(), "unauthenticated", "{key:?}");
        assert!(key.trim().is_empty() || !error.to_string().contains(key), "{error}");
    }
    let spaced = access(&[("OPENAI_API_KEY", " key\n")]);
    assert_eq!(Target::of("gpt-4o", &spaced).unwrap().key.unwrap().expose(), "key");
}

#[test]
fn an_address_that_is_none_is_refused_without_its_secrets() {
    for url in ["ftp://x.test", "http://u:hunter2@x.test/v1", "not a url", "https://"] {
        let access = ServiceAccess { base_url: Some(url.to_owned()), ..keys() };
        let error = refusal("openai::m", &access);
        assert_eq!(error.code(), "validation_error", "{url}");
        assert!(
            !error.to_string().contains("hunter2") && !format!("{access:?}").contains("hunter2"),
            "{error}"
        );
    }
}

#[test]
fn parameters_that_are_wrong_are_told_all_at_once() {
    let params = json!({
        "temprature": 1, "temperature": "hot", "maxTokens": 0, "stop": [1], "reasoningEffort": "much", "extra": 1,
        "prices": { "input": 1 },
    });
    let error = RemoteModels::new(keys(), patience()).open(&choice("gpt-4o", &params)).unwrap_err();
    let AgentError::Configuration(faults) = &error else {
        panic!("{error:?}");
    };
    assert_eq!(faults.len(), 7, "{error}");
    assert!(error.to_string().contains("model.params.temprature: there is no such parameter"), "{error}");
}

#[test]
fn what_is_known_of_a_model_is_known_by_its_whole_name() {
    let facts = |id: &str, params: &Value| {
        RemoteModels::new(keys(), patience()).open(&choice(id, params)).unwrap().facts()
    };
    let sonnet = facts("claude-sonnet-4-5-20250929", &Value::Null);
    assert_eq!((sonnet.images, sonnet.context), (true, Some(200_000)));
    let usage = Usage { input: 1_000_000, output: 100_000, cache_read: 2_000_000, ..Default::default() };
    assert!((sonnet.prices.unwrap().cost(&usage) - 5.1).abs() < 1e-9);
    for id in ["gpt-5-turbo-preview", "gpt-4.1-x", "claude-sonnet-4-5-fast"] {
        assert_eq!(facts(id, &Value::Null).prices, None, "{id}");
    }
    let told = facts(
        "gpt-4.1-x",
        &json!({ "prices": { "input": 2, "output": 4 }, "contextWindow": 9, "images": false }),
    );
    assert_eq!((told.images, told.context), (false, Some(9)));
    assert!((told.prices.unwrap().cost(&usage) - 6.4).abs() < 1e-9);
    let elsewhere = ServiceAccess { base_url: Some("http://x.test/v1".to_owned()), ..keys() };
    let facts = RemoteModels::new(elsewhere, patience())
        .open(&choice("openai::gpt-4o", &Value::Null))
        .unwrap()
        .facts();
    assert_eq!((facts.prices, facts.context), (None, Some(128_000)));
}

#[test]
fn the_page_on_models_names_every_service_and_parameter() {
    let page = include_str!("../../../../../../docs/models.md");
    for service in service::known() {
        let names = service.keys.iter().chain([&service.name]);
        for name in names {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
    for name in params::NAMES.split(", ") {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}
