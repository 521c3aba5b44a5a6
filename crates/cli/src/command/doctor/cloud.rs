//! Owns what would become of an entry where an agent runs in a cloud: placement, the way of its secrets, what is
//! refused. Pure.

use toolway_config::{Definition, Placement, RemoteKind, StdioTarget, Target};

use super::report::{Check, CloudReport, Layer};

/// Parts of names that secrets usually have.
const SECRET_NAMES: [&str; 7] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "CREDENTIAL"];
/// Programs that the base image has.
const IN_IMAGE: [&str; 6] = ["npx", "node", "npm", "python", "python3", "sh"];

/// What a cloud run would do with the entry.
pub(super) fn cloud(name: &str, definition: &Definition) -> CloudReport {
    let (placement, secrets, checks) = match &definition.target {
        Target::Stdio(stdio) => process(definition, stdio),
        Target::Remote(remote) => {
            let mut checks = Vec::new();
            if remote.kind == RemoteKind::Sse {
                checks.push(Check::warning(
                    Layer::Transport,
                    "legacy SSE holds one connection open for each session",
                    "prefer the server's Streamable HTTP address, if it has one",
                ));
            }
            if local(remote.url.raw()) {
                checks.push(Check::fault(
                    Layer::Transport,
                    "the address is on this machine or a private network, which the cloud refuses to call",
                    "run it on a worker of your own, or give it a public address",
                ));
            }
            if remote.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case("authorization")) {
                checks.push(Check::warning(
                    Layer::Authorised,
                    "a fixed Authorization header lives as long as the configuration",
                    "prefer \"auth\" (OAuth): its tokens are short-lived and can be revoked",
                ));
            }
            let secrets = "headers stay with the control plane, which calls the server; no worker sees them";
            ("backend", secrets.to_owned(), checks)
        }
    };
    let refused = checks.iter().any(|check| check.verdict == super::report::Verdict::Fault);
    CloudReport {
        name: name.to_owned(),
        placement: if refused { "refused" } else { placement },
        secrets,
        checks,
    }
}

fn process(definition: &Definition, stdio: &StdioTarget) -> (&'static str, String, Vec<Check>) {
    let mut checks = Vec::new();
    if stdio.cwd.is_some() {
        let fix = "leave cwd out: the worker chooses it";
        checks.push(Check::fault(Layer::File, "a cloud run cannot include cwd", fix));
    }
    if stdio.env_file.is_some() {
        let fix = "name the variables in env: the file is not in the worker";
        checks.push(Check::fault(Layer::Variables, "envFile is a file of this machine", fix));
    }
    let command = stdio.command.raw();
    let program = command.split_whitespace().next().unwrap_or(command);
    if !IN_IMAGE.contains(&program) {
        checks.push(Check::warning(
            Layer::Command,
            "this program is not in the base image",
            "install it in the image's build, or use npx or node",
        ));
    }
    let named = |name: &str| SECRET_NAMES.iter().any(|part| name.to_ascii_uppercase().contains(part));
    let secret: Vec<&str> =
        stdio.env.iter().map(|(name, _)| name.as_str()).filter(|name| named(name)).collect();
    if !secret.is_empty() {
        checks.push(Check::warning(
            Layer::Variables,
            format!("{} would be readable by every process in the worker", secret.join(", ")),
            "prefer the server's HTTP address, whose headers never enter the worker",
        ));
    }
    if definition.options.placement == Some(Placement::Client) {
        checks.push(Check::ok(Layer::Spawn, "runs beside the agent, as the entry says"));
    }
    ("vm", "its env goes into the worker and can be read there".to_owned(), checks)
}

/// Whether the address cannot be one that a cloud may call, as far as the text tells.
fn local(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once(':').filter(|(_, port)| port.chars().all(|c| c.is_ascii_digit()));
    let host = host.map_or(authority, |(host, _)| host).trim_matches(['[', ']']);
    if host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost") {
        return true;
    }
    match host.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(address)) => {
            address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
        }
        Ok(std::net::IpAddr::V6(address)) => {
            address.is_loopback() || address.is_unspecified() || address.is_unique_local()
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::local;

    #[test]
    fn addresses_of_this_machine_are_known() {
        for url in [
            "http://localhost:3/mcp",
            "https://127.0.0.1/x",
            "http://[::1]:9/",
            "http://10.1.2.3",
            "http://A.LOCALHOST",
        ] {
            assert!(local(url), "{url}");
        }
        for url in ["https://mcp.example.com/mcp", "https://8.8.8.8:443/x", "${env:URL}"] {
            assert!(!local(url), "{url}");
        }
    }
}
