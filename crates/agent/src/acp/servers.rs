//! Owns how an agent is given its servers: as addresses where it takes HTTP, else each behind a small process of our own.
//! Addresses and tokens are never on a command line.

use std::path::Path;

use agent_client_protocol::v1::schema::{EnvVariable, HttpHeader, McpServer, McpServerHttp, McpServerStdio};

use crate::inline::DirectServer;

/// The members of `session/new`. `None` where the agent takes no HTTP and there is no binary to stand between.
pub(super) fn entries(
    servers: &[DirectServer],
    takes_http: bool,
    shim: Option<&Path>,
) -> Option<Vec<McpServer>> {
    servers
        .iter()
        .map(|server| {
            if takes_http {
                let headers = server.headers.iter();
                let headers =
                    headers.map(|(name, value)| HttpHeader::new(name.clone(), value.expose())).collect();
                let entry = McpServerHttp::new(server.name.clone(), server.url.expose()).headers(headers);
                return Some(McpServer::Http(entry));
            }
            Some(McpServer::Stdio(shimmed(server, shim?)))
        })
        .collect()
}

/// The relay of our own binary. What it passes was guarded before, or is not to be guarded.
fn shimmed(server: &DirectServer, shim: &Path) -> McpServerStdio {
    let mut args: Vec<String> = ["streamable-http", "--tool-limit", "*=pass"].map(str::to_owned).into();
    let mut env = vec![EnvVariable::new("TOOLWAY_URL", server.url.expose())];
    for (index, (name, value)) in server.headers.iter().enumerate() {
        let variable = format!("TOOLWAY_SHIM_HEADER_{index}");
        args.extend(["--header".to_owned(), format!("{name}=${{{variable}}}")]);
        env.push(EnvVariable::new(variable, value.expose()));
    }
    McpServerStdio::new(server.name.clone(), shim).args(args).env(env)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolway_secret::Secret;

    use super::*;

    fn server() -> DirectServer {
        let headers = vec![("Authorization".to_owned(), Secret::new("Bearer abc"))];
        DirectServer { name: "toolway".to_owned(), url: Secret::new("http://127.0.0.1:1/mcp/x"), headers }
    }

    #[test]
    fn an_agent_that_takes_http_gets_the_address() {
        let entries = entries(&[server()], true, None).unwrap();
        let expected = json!([{
            "type": "http", "name": "toolway", "url": "http://127.0.0.1:1/mcp/x",
            "headers": [{"name": "Authorization", "value": "Bearer abc"}],
        }]);
        assert_eq!(serde_json::to_value(entries).unwrap(), expected);
    }

    #[test]
    fn another_gets_a_process_and_no_value_is_on_its_command_line() {
        assert_eq!(entries(&[server()], false, None), None);
        let entries = entries(&[server()], false, Some(Path::new("/bin/toolway"))).unwrap();
        let expected = json!([{
            "name": "toolway", "command": "/bin/toolway",
            "args": ["streamable-http", "--tool-limit", "*=pass", "--header", "Authorization=${TOOLWAY_SHIM_HEADER_0}"],
            "env": [
                {"name": "TOOLWAY_URL", "value": "http://127.0.0.1:1/mcp/x"},
                {"name": "TOOLWAY_SHIM_HEADER_0", "value": "Bearer abc"},
            ],
        }]);
        assert_eq!(serde_json::to_value(entries).unwrap(), expected);
    }
}
