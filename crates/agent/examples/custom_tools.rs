//! A function of this program as a tool: `custom_tools MODEL PROMPT`.
#![expect(clippy::print_stdout, reason = "an example shows what comes")]

use std::error::Error;

use serde_json::{Map, Value, json};
use toolway_agent::{Agent, AgentOptions, CustomOutput, CustomTool, LocalOptions, Machine};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [_, model, prompt] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("custom_tools MODEL PROMPT".into());
    };
    let price = CustomTool::new("price", "What an article costs, in cents.", |call| async move {
        match call.arguments.tree()["article"].as_str() {
            Some("lamp") => Ok(CustomOutput::Json(json!({ "cents": 4900 }))),
            // The model sees this as an error of the tool.
            other => Err(format!("there is no article {other:?}")),
        }
    })
    .with_schema(schema());
    let mut options = AgentOptions::local(Machine::here()?);
    options.model = Some(model.into());
    options.place = LocalOptions { custom_tools: vec![price], ..LocalOptions::default() }.into();
    let state = Agent::prompt(prompt, options).await?;
    println!("{}", state.into_result()?);
    Ok(())
}

fn schema() -> Map<String, Value> {
    Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), json!({ "article": { "type": "string" } })),
        ("required".to_owned(), json!(["article"])),
    ])
}
