//! Owns what a sandbox is asked for: by a program, and by `sandbox.json` of the user and of the project, whose form is
//! that of Cursor's reference. It closes nothing itself.

use std::path::{Path, PathBuf};

use toolway_config::{Format, Node, Value};

use crate::error::{AgentError, Fault};

/// What may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxMode {
    /// The agent's folders.
    #[default]
    Workspace,
    /// Nothing of the agent's folders.
    ReadOnly,
    /// Everything: there is no sandbox.
    Off,
}

/// What a sandbox is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxConfig {
    /// What may be written.
    pub mode: SandboxMode,
    /// Further folders that may be written.
    pub writable: Vec<PathBuf>,
    /// The folder for temporary files may not be written.
    pub no_temp: bool,
    /// There is a network.
    pub network: bool,
    /// Where the network is denied, all of it has to be: a means that leaves a part of it open is not enough.
    pub strict: bool,
}

/// What the files said beside the settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxNotes(pub Vec<String>);

const KEYS: [&str; 7] = [
    "type",
    "additionalReadwritePaths",
    "additionalReadonlyPaths",
    "disableTmpWrite",
    "enableSharedBuildCache",
    "networkPolicy",
    "$schema",
];

impl SandboxConfig {
    /// Of the user's and then the project's `.cursor` folder, where each is one of the chosen sources; the project's say
    /// stands above the user's, except that it cannot take the sandbox away. Blocks.
    ///
    /// # Errors
    /// A file that cannot be read as what it should be: it may have asked for more than would be done.
    pub fn read(user: Option<&Path>, project: Option<&Path>) -> Result<(Self, SandboxNotes), AgentError> {
        let (mut config, mut notes) = (Self::default(), SandboxNotes::default());
        for (folder, is_project) in [(user, false), (project, true)] {
            let Some(file) = folder.map(|folder| folder.join("sandbox.json")).filter(|file| file.exists())
            else {
                continue;
            };
            let fault = |message: String| AgentError::fault(file.display().to_string(), message);
            let bytes = toolway_config::read_bytes(&file).map_err(|problem| fault(problem.to_string()))?;
            let root = toolway_config::read(&bytes, Format::Jsonc).map_err(|problems| {
                AgentError::Configuration(problems.iter().map(|problem| of_problem(&file, problem)).collect())
            })?;
            let base = folder.and_then(Path::parent).unwrap_or(Path::new("/"));
            config.apply(&root, base, is_project, &file, &mut notes)?;
        }
        Ok((config, notes))
    }

    fn apply(
        &mut self,
        root: &Node,
        base: &Path,
        is_project: bool,
        file: &Path,
        notes: &mut SandboxNotes,
    ) -> Result<(), AgentError> {
        let fault = |field: &str, message: &str| {
            AgentError::fault(field, format!("{message}, in {}", file.display()))
        };
        let Value::Object(members) = &root.value else {
            return Err(fault("sandbox.json", "must be an object"));
        };
        let mut note = |message: String| notes.0.push(format!("{}: {message}", file.display()));
        for (key, value) in members {
            let name = key.name.as_str();
            match name {
                "type" => match value.as_str() {
                    Some("workspace_readwrite") => self.mode = SandboxMode::Workspace,
                    Some("workspace_readonly") => self.mode = SandboxMode::ReadOnly,
                    Some("insecure_none") if is_project => {
                        note("type insecure_none is not taken from a project: the sandbox stays".to_owned());
                    }
                    Some("insecure_none") => self.mode = SandboxMode::Off,
                    _ => {
                        let words = "must be workspace_readwrite, workspace_readonly or insecure_none";
                        return Err(fault(name, words));
                    }
                },
                "additionalReadwritePaths" => {
                    let paths = texts(value).ok_or_else(|| fault(name, "must be a list of texts"))?;
                    self.writable.extend(paths.into_iter().map(|path| base.join(path)));
                }
                "disableTmpWrite" => {
                    self.no_temp = value.as_bool().ok_or_else(|| fault(name, "must be true or false"))?;
                }
                "networkPolicy" => self.apply_network(value, &fault, &mut note)?,
                // Reading is open, so there is nothing to add to it.
                "additionalReadonlyPaths" | "$schema" => {}
                "enableSharedBuildCache" => {
                    if value.as_bool() == Some(true) {
                        note("enableSharedBuildCache has no effect here".to_owned());
                    }
                }
                _ => note(format!("{name} is not known; known are {}", KEYS.join(", "))),
            }
        }
        Ok(())
    }

    fn apply_network(
        &mut self,
        policy: &Node,
        fault: &dyn Fn(&str, &str) -> AgentError,
        note: &mut dyn FnMut(String),
    ) -> Result<(), AgentError> {
        let Value::Object(members) = &policy.value else {
            return Err(fault("networkPolicy", "must be an object"));
        };
        let default = policy.get("default");
        match default.map(|default| default.as_str()) {
            None => {}
            Some(Some("allow")) => self.network = true,
            Some(Some("deny")) => self.network = false,
            Some(_) => return Err(fault("networkPolicy.default", "must be allow or deny")),
        }
        for (list, closes) in [("allow", false), ("deny", true)] {
            let Some(value) = policy.get(list) else { continue };
            let field = format!("networkPolicy.{list}");
            let named = texts(value).ok_or_else(|| fault(&field, "must be a list of texts"))?;
            if named.is_empty() || closes != self.network {
                continue;
            }
            // By name nothing can be let through or held back here.
            self.network = false;
            note(format!(
                "{field}: the network is denied as a whole, since addresses cannot be told apart here"
            ));
        }
        for (key, _) in
            members.iter().filter(|(key, _)| !["default", "allow", "deny", "version"].contains(&&*key.name))
        {
            note(format!("networkPolicy.{} is not known", key.name));
        }
        Ok(())
    }
}

fn of_problem(file: &Path, problem: &toolway_config::Problem) -> Fault {
    Fault { subject: None, field: file.display().to_string(), message: problem.to_string() }
}

fn texts(node: &Node) -> Option<Vec<String>> {
    let Value::Array(items) = &node.value else { return None };
    items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(user: Option<&str>, project: Option<&str>) -> Result<(SandboxConfig, Vec<String>), String> {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: Option<&str>| {
            let folder = folder.path().join(name).join(".cursor");
            std::fs::create_dir_all(&folder).unwrap();
            if let Some(text) = text {
                std::fs::write(folder.join("sandbox.json"), text).unwrap();
            }
            folder
        };
        let (user, project) = (write("user", user), write("project", project));
        let root = folder.path().to_owned();
        SandboxConfig::read(Some(&user), Some(&project))
            .map(|(mut config, notes)| {
                for path in &mut config.writable {
                    *path = path.strip_prefix(&root).map(Path::to_owned).unwrap_or(path.clone());
                }
                (config, notes.0)
            })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn files_of_user_and_project_are_laid_over_each_other() {
        let user = r#"{"type": "workspace_readonly", "additionalReadwritePaths": ["/cache"], "networkPolicy": {"default": "allow"}}"#;
        let project = r#"{ // a comment
            "type": "workspace_readwrite", "additionalReadwritePaths": ["../shared"], "disableTmpWrite": true, }"#;
        let (config, notes) = read(Some(user), Some(project)).unwrap();
        let writable = vec![PathBuf::from("/cache"), PathBuf::from("project/../shared")];
        let expected = SandboxConfig {
            mode: SandboxMode::Workspace,
            writable,
            no_temp: true,
            network: true,
            strict: false,
        };
        assert_eq!(config, expected);
        assert_eq!(notes, Vec::<String>::new());
        assert_eq!(read(None, None).unwrap().0, SandboxConfig::default());
    }

    #[test]
    fn a_project_cannot_take_the_sandbox_away_and_the_user_can() {
        let none = r#"{"type": "insecure_none"}"#;
        let (config, notes) = read(None, Some(none)).unwrap();
        assert_eq!(config.mode, SandboxMode::Workspace);
        assert!(notes.first().unwrap().contains("the sandbox stays"), "{notes:?}");
        assert_eq!(read(Some(none), None).unwrap().0.mode, SandboxMode::Off);
    }

    #[test]
    fn what_cannot_be_told_apart_is_denied_and_said() {
        for policy in [
            r#"{"networkPolicy": {"default": "deny", "allow": ["x.org"]}}"#,
            r#"{"networkPolicy": {"default": "allow", "deny": ["x.org"]}}"#,
        ] {
            let (config, notes) = read(Some(policy), None).unwrap();
            assert!(!config.network, "{policy}");
            assert_eq!(notes.len(), 1, "{notes:?}");
        }
        let (config, notes) =
            read(Some(r#"{"networkPolicy": {"default": "allow", "deny": []}}"#), None).unwrap();
        assert!(config.network && notes.is_empty());
        let (_, notes) = read(Some(r#"{"odd": 1, "enableSharedBuildCache": true}"#), None).unwrap();
        assert_eq!(notes.len(), 2, "{notes:?}");
    }

    #[test]
    fn a_file_that_cannot_be_understood_is_an_error_that_names_it() {
        for text in [
            "{",
            "[]",
            r#"{"type": "open"}"#,
            r#"{"disableTmpWrite": "yes"}"#,
            r#"{"additionalReadwritePaths": [1]}"#,
            r#"{"networkPolicy": {"default": "some"}}"#,
            r#"{"networkPolicy": []}"#,
        ] {
            let error = read(None, Some(text)).unwrap_err();
            assert!(
                error.contains("[validation_error]") && error.contains("sandbox.json"),
                "{text}: {error}"
            );
        }
    }
}
