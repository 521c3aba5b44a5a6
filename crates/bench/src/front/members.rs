//! The servers of a gateway's configuration, and how its file spells them. Knows no gateway.

use crate::json;

/// One server behind a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// Another program than the harness's own upstream.
    pub(crate) program: Option<String>,
    pub(crate) flags: Vec<String>,
    /// Started by its first call: a word of Toolway's configuration, which others pass over.
    pub(crate) lazy: bool,
}

impl Member {
    /// The harness's upstream with these flags.
    pub(crate) fn upstream(name: impl Into<String>, flags: &[&str]) -> Self {
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        Self { name: name.into(), program: None, flags, lazy: false }
    }

    /// A server whose program does not exist.
    pub(crate) fn absent(name: impl Into<String>) -> Self {
        Self { program: Some("/nonexistent/mcp-server".into()), ..Self::upstream(name, &[]) }
    }

    /// `s0`, `s1`, ...: so many plain upstreams.
    pub(crate) fn plain(n: usize) -> Vec<Self> {
        (0..n).map(|i| Self::upstream(format!("s{i}"), &[])).collect()
    }

    fn argv(&self, upstream: &[String]) -> Vec<String> {
        match &self.program {
            Some(program) => vec![program.clone()],
            None => upstream.iter().chain(&self.flags).cloned().collect(),
        }
    }
}

fn list(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| json::quote(word)).collect();
    format!("[{}]", quoted.join(","))
}

/// As the value of `mcpServers`; `upstream` starts the harness's own.
pub(super) fn as_json(members: &[Member], upstream: &[String]) -> String {
    let entries: Vec<String> = members
        .iter()
        .map(|member| {
            let argv = member.argv(upstream);
            let lazy = if member.lazy { r#","lazy":true"# } else { "" };
            let (name, program) = (json::quote(&member.name), json::quote(&argv[0]));
            format!(r#"{name}:{{"command":{program},"args":{}{lazy}}}"#, list(&argv[1..]))
        })
        .collect();
    format!("{{{}}}", entries.join(","))
}

/// As tables of a TOML file, the way tower's mcp-proxy reads them.
pub(super) fn as_toml(members: &[Member], upstream: &[String]) -> String {
    let entries: Vec<String> = members
        .iter()
        .map(|member| {
            let argv = member.argv(upstream);
            let (name, program) = (json::quote(&member.name), json::quote(&argv[0]));
            format!(
                "[[backends]]\nname={name}\ntransport=\"stdio\"\ncommand={program}\nargs={}\n",
                list(&argv[1..])
            )
        })
        .collect();
    entries.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_name_every_member_with_its_own_flags() {
        let upstream = ["/bench", "server"].map(String::from);
        let lazy = Member { lazy: true, ..Member::upstream("b", &["--tools", "3"]) };
        let members = [Member::absent("a"), lazy];
        assert_eq!(
            as_json(&members, &upstream),
            r#"{"a":{"command":"/nonexistent/mcp-server","args":[]},"b":{"command":"/bench","args":["server","--tools","3"],"lazy":true}}"#
        );
        let toml = as_toml(&members, &upstream);
        assert!(toml.ends_with("command=\"/bench\"\nargs=[\"server\",\"--tools\",\"3\"]\n"), "{toml}");
        assert_eq!(Member::plain(2)[1], Member::upstream("s1", &[]));
    }
}
