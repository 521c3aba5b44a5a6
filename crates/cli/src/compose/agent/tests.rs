//! Tests of the arguments by which agents are made.

use super::*;

fn made(
    change: impl FnOnce(&mut RuntimeArgs),
    variables: &[(&str, &str)],
) -> Result<AgentOptions, UsageError> {
    let mut args = RuntimeArgs::default();
    change(&mut args);
    agent_options(args, OfferArgs::default(), Person::default(), &Environment::of(variables))
}

fn local(options: &AgentOptions) -> &LocalOptions {
    options.local_options().unwrap()
}

#[test]
fn without_arguments_it_is_the_native_runtime_with_files_of_project_and_user() {
    let options = made(|_| (), &[]).unwrap();
    assert_eq!(local(&options).setting_sources, DEFAULT_SOURCES);
    assert!(matches!(local(&options).engine, EngineChoice::Native));
    assert_eq!(local(&options).trust, Trust::Ask);
    assert!(options.model.is_none());
}

#[test]
fn an_agent_of_the_protocol_is_named_by_a_preset_or_a_command() {
    let acp = |options: &AgentOptions| match &local(options).engine {
        EngineChoice::Acp(acp) => acp.clone(),
        EngineChoice::Native => panic!("native"),
    };
    let named = acp(&made(|args| args.acp = Some("opencode".into()), &[]).unwrap());
    assert_eq!(named.preset.as_deref(), Some("opencode"));
    let with = |args: &mut RuntimeArgs| {
        args.acp_command = Some("my 'agent x' --acp".into());
        args.acp_env = vec!["KEY".into()];
    };
    let command = acp(&made(with, &[("KEY", "s3cret"), ("TOOLWAY_ACP", "codex")]).unwrap());
    assert_eq!(command.command.as_deref(), Some("my"));
    assert_eq!(command.args, ["agent x", "--acp"]);
    assert_eq!(command.env.get("KEY").map(Secret::expose), Some("s3cret"));
    assert_eq!(command.authenticate, None);
    let signing_in = |args: &mut RuntimeArgs| {
        args.acp = Some("gemini".into());
        args.acp_auth = Some("oauth-personal".into());
    };
    assert_eq!(acp(&made(signing_in, &[]).unwrap()).authenticate.as_deref(), Some("oauth-personal"));
    let alone = made(|args| args.acp_auth = Some("x".into()), &[]).unwrap_err();
    assert_eq!(alone.to_string(), "--acp-auth: is for an agent of the protocol, and none is named");
    let unset = made(with, &[]).unwrap_err();
    assert_eq!(unset.to_string(), "--acp-env: the variable KEY is not set");
    assert!(made(|args| args.runtime = Some("acp".into()), &[]).is_err());
    let both = |args: &mut RuntimeArgs| {
        args.runtime = Some("native".into());
        args.acp = Some("codex".into());
    };
    assert!(made(both, &[]).is_err());
    assert!(matches!(
        local(&made(|args| args.runtime = Some("native".into()), &[("TOOLWAY_ACP", "codex")]).unwrap())
            .engine,
        EngineChoice::Native
    ));
}

#[test]
fn models_have_parameters_and_runs_have_limits() {
    let options = made(
        |args| {
            args.model = Some("m".into());
            args.model_param = vec!["temperature=0.5".into(), "baseUrl=http://x/v1".into()];
            args.limit_turns = Some("3".into());
            args.limit_tokens = Some("10_000".into());
            args.limit_time = Some("2m".into());
        },
        &[("TOOLWAY_LIMIT_COST", "1.5")],
    )
    .unwrap();
    let params = options.model.unwrap().params;
    assert_eq!(params, [("temperature".into(), 0.5.into()), ("baseUrl".into(), "http://x/v1".into())]);
    let time = Some(std::time::Duration::from_mins(2));
    assert_eq!(options.limits, Limits { turns: Some(3), tokens: Some(10_000), time, cost: Some(1.5) });
    assert!(made(|args| args.limit_turns = Some("few".into()), &[]).is_err());
    assert!(made(|args| args.model_param = vec!["a=1".into()], &[]).is_err());
}

#[test]
fn sources_may_be_none_and_the_store_may_be_anywhere() {
    let none = made(|args| args.setting_sources = Some("none".into()), &[]).unwrap();
    assert_eq!(local(&none).setting_sources, []);
    assert!(made(|args| args.setting_sources = Some("proyect".into()), &[]).is_err());
    let at = |place: &str| local(&made(|args| args.store = Some(place.into()), &[]).unwrap()).store.clone();
    assert!(matches!(at("memory"), StoreChoice::Memory));
    assert!(matches!(at("jsonl:/x"), StoreChoice::Jsonl(dir) if dir == Path::new("/x")));
    assert!(matches!(at("/y"), StoreChoice::Sqlite(dir) if dir == Path::new("/y")));
}

#[test]
fn a_file_of_servers_is_filled_from_the_environment() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mcp.json");
    std::fs::write(
        &file,
        r#"{"mcpServers": {"a": {"url": "http://x/${P}", "headers": {"T": "Bearer ${env:TOKEN}"}}, // ok
            "b": {"command": "run", "args": ["$${P}"]}}}"#,
    )
    .unwrap();
    let with = |args: &mut RuntimeArgs| args.mcp_config = vec![file.clone()];
    let options = made(with, &[("P", "p"), ("TOKEN", "t")]).unwrap();
    let json = serde_json::Value::Object(options.mcp_servers.to_json());
    assert_eq!(json["a"]["url"], "http://x/p");
    assert_eq!(json["a"]["headers"]["T"], "Bearer t");
    assert_eq!(json["b"]["args"][0], "${P}");
    let missing = made(with, &[("P", "p")]).unwrap_err().to_string();
    assert!(missing.contains("TOKEN") && missing.contains("\"a\""), "{missing}");
}
