//! Owns the requests for terminals.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use agent_client_protocol::v1::schema::CreateTerminalRequest;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;
use toolway_transport::command::{FileSystem, Search, resolve};
use toolway_transport::environment::environment;
use toolway_transport::{ChildConfig, Exit, Platform};

use super::{Refusal, RpcError, Shared, read};
use crate::acp::frame::{INTERNAL, INVALID_PARAMS, NOT_FOUND};
use crate::acp::terminal::{Terminal, line, program};
use crate::policy::Action;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    terminal_id: String,
}

impl Shared {
    pub(super) async fn create_terminal(
        &self,
        params: &RawJson,
        prompt: &CancellationToken,
    ) -> Result<Value, Refusal> {
        let wish: CreateTerminalRequest = read(params)?;
        let cwd = match wish.cwd {
            Some(cwd) => {
                self.workspace.resolve(&cwd).map_err(|outside| self.outside("run a command", &outside))?
            }
            None => self.workspace.cwd().to_owned(),
        };
        let command = line(&wish.command, &wish.args);
        self.judge("shell", Action::Shell { command, cwd: Some(cwd.clone()) }, prompt).await?;
        let (wanted, args) = program(&wish.command, &wish.args);
        let given: Vec<(OsString, OsString)> =
            wish.env.into_iter().map(|variable| (variable.name.into(), variable.value.into())).collect();
        let surroundings = &self.surroundings;
        let built =
            environment(surroundings.machine.variables().iter().cloned(), &given, false, Platform::CURRENT);
        let search = Search {
            path: built.get("PATH", Platform::CURRENT),
            path_ext: built.get("PATHEXT", Platform::CURRENT),
            cwd: cwd.as_os_str(),
            home: None,
            platform: Platform::CURRENT,
        };
        let program = resolve(OsStr::new(&wanted), &search, &FileSystem)
            .map_err(|error| RpcError::new(INVALID_PARAMS, error.to_string()))?;
        let config = ChildConfig {
            program,
            args: args.into_iter().map(OsString::from).collect(),
            env: built.variables,
            cwd: Some(cwd),
            supervise: surroundings.supervise.clone(),
        };
        let created = self.terminals.create(config, wish.output_byte_limit).await;
        let id = created.map_err(|why| RpcError::new(INTERNAL, why))?;
        Ok(json!({"terminalId": id}))
    }

    fn terminal(&self, params: &RawJson) -> Result<Arc<Terminal>, Refusal> {
        let Named { terminal_id } = read(params)?;
        let missing = || RpcError::new(NOT_FOUND, format!("there is no terminal {terminal_id:?}")).into();
        self.terminals.get(&terminal_id).ok_or_else(missing)
    }

    pub(super) fn terminal_output(&self, params: &RawJson) -> Result<Value, Refusal> {
        let terminal = self.terminal(params)?;
        let (output, truncated) = terminal.output();
        let mut answer = json!({"output": output, "truncated": truncated});
        if let (Some(exit), Some(answer)) = (terminal.exit(), answer.as_object_mut()) {
            answer.insert("exitStatus".to_owned(), status(exit));
        }
        Ok(answer)
    }

    pub(super) async fn wait_for_exit(&self, params: &RawJson) -> Result<Value, Refusal> {
        let terminal = self.terminal(params)?;
        Ok(status(terminal.ended().await))
    }

    pub(super) async fn kill_terminal(&self, params: &RawJson) -> Result<Value, Refusal> {
        self.terminal(params)?.kill().await;
        Ok(json!({}))
    }

    pub(super) async fn release_terminal(&self, params: &RawJson) -> Result<Value, Refusal> {
        let Named { terminal_id } = read(params)?;
        if self.terminals.release(&terminal_id).await {
            return Ok(json!({}));
        }
        Err(RpcError::new(NOT_FOUND, format!("there is no terminal {terminal_id:?}")).into())
    }
}

fn status(exit: Exit) -> Value {
    match exit {
        Exit::Code(code) => json!({"exitCode": code.cast_unsigned(), "signal": null}),
        Exit::Signal(_) | Exit::Unknown => json!({"exitCode": null, "signal": exit.to_string()}),
    }
}
