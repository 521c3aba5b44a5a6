//! Signing in to an agent by a way that it offers.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::rig::Rig;

fn offers(more: &Value) -> Value {
    let mut script = json!({"initialize": {"authMethods": [
        {"id": "login", "name": "Log in", "description": "in a browser"}, {"id": "key", "name": "A key"},
    ]}});
    if let (Some(script), Some(more)) = (script.as_object_mut(), more.as_object()) {
        script.extend(more.clone());
    }
    script
}

#[tokio::test]
async fn the_chosen_way_is_taken_before_the_first_session() -> Result<()> {
    let mut rig = Rig::new(&offers(&json!({})))?;
    rig.command.authenticate = Some("key".to_owned());
    rig.prompt("go").await?.0?;
    let methods: Vec<Value> =
        rig.journal()?.iter().map(|event| event["method"].clone()).filter(Value::is_string).collect();
    assert_eq!(methods[..3], ["initialize", "authenticate", "session/new"]);
    assert_eq!(rig.calls("authenticate")?, [json!({"methodId": "key"})]);
    Ok(())
}

#[tokio::test]
async fn a_way_that_is_not_offered_names_those_that_are() -> Result<()> {
    let mut rig = Rig::new(&offers(&json!({})))?;
    rig.command.authenticate = Some("passkey".to_owned());
    let error = rig.prompt("go").await?.0.unwrap_err();
    let text = error.to_string();
    ensure!(
        error.code() == "validation_error" && text.contains("\"login\" (Log in: in a browser)"),
        "{text}"
    );
    ensure!(text.contains("\"key\" (A key)") && rig.is_gone()?, "{text}");
    Ok(())
}

#[tokio::test]
async fn a_refused_sign_in_is_told_as_one() -> Result<()> {
    let refuses = json!({"methods": {"authenticate": [{"error": {"code": -32000, "message": "the key s3cr3t-value is old"}}]}});
    let mut rig = Rig::new(&offers(&refuses))?;
    rig.command.authenticate = Some("key".to_owned());
    let error = rig.prompt("go").await?.0.unwrap_err();
    let text = error.to_string();
    ensure!(
        error.code() == "unauthenticated" && text.contains("is old") && !text.contains("s3cr3t"),
        "{text}"
    );
    ensure!(rig.is_gone()?);
    Ok(())
}
