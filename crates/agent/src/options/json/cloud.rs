//! Owns reading what belongs to an agent in the cloud. It sends nothing.

use serde_json::Value as Json;
use toolway_config::Node;
use toolway_secret::Secret;

use super::reader::{Object, Reader};
use crate::options::{CloudEnv, CloudOptions, CloudRepo, CloudSend};

pub(super) fn read(reader: &mut Reader, node: &Node, at: &str) -> CloudOptions {
    let Some(mut object) = reader.object(node, at) else { return CloudOptions::default() };
    let options = CloudOptions {
        env: object.member("env").and_then(|(reader, node, at)| {
            let mut env = reader.object(node, &at)?;
            let read = CloudEnv { kind: env.text("type").unwrap_or_default(), name: env.text("name") };
            env.end(&|_| None);
            Some(read)
        }),
        repos: object.list("repos", read_repo),
        work_on_current_branch: object.flag("workOnCurrentBranch").unwrap_or(false),
        auto_create_pr: object.flag("autoCreatePR").unwrap_or(false),
        skip_reviewer_request: object.flag("skipReviewerRequest").unwrap_or(false),
        env_vars: read_variables(&mut object),
        metadata: object
            .member("metadata")
            .and_then(|(reader, node, at)| {
                if let Json::Object(metadata) = node.to_json() {
                    return Some(metadata);
                }
                reader.fault(&at, format!("must be an object, and is {}", node.kind()));
                None
            })
            .unwrap_or_default(),
    };
    object.end(&|name| {
        let no_app = "there is no such app here";
        (name == "openAsCursorGithubApp").then(|| no_app.to_owned())
    });
    options
}

pub(super) fn read_send(reader: &mut Reader, node: &Node, at: &str) -> CloudSend {
    let Some(mut object) = reader.object(node, at) else { return CloudSend::default() };
    let send = CloudSend { env_vars: read_variables(&mut object) };
    object.end(&|_| None);
    send
}

fn read_variables(object: &mut Object<'_>) -> Vec<(String, Secret)> {
    let Some((reader, node, at)) = object.member("envVars") else { return Vec::new() };
    let Some(mut variables) = reader.object(node, &at) else { return Vec::new() };
    let names = variables.names();
    names.into_iter().filter_map(|name| Some((name.clone(), Secret::new(variables.text(&name)?)))).collect()
}

fn read_repo(reader: &mut Reader, node: &Node, at: &str) -> Option<CloudRepo> {
    let mut object = reader.object(node, at)?;
    let url = object.text("url");
    if url.is_none() {
        object.fault("url", "is missing");
    }
    let repo = CloudRepo {
        url: url.unwrap_or_default(),
        starting_ref: object.text("startingRef"),
        pr_url: object.text("prUrl"),
    };
    object.end(&|_| None);
    Some(repo)
}
