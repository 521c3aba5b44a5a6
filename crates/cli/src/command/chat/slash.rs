//! Owns the commands that begin with a slash.

use std::fmt::Write as _;
use std::sync::PoisonError;

use toolway_agent::{EventKind, ServerReport, SystemInit};
use toolway_bridge::{HostEvent, NoticeLevel, ReportInput, ReportedRun, Snapshot, report};

use super::{Chat, PROFILE};
use crate::render::age;
use crate::show::one_line;
use crate::table::{Align, columns};

/// Characters of a line.
const LINE: usize = 200;

const HELP: &str = "\
/tools           what the agent can call: its own tools, servers, this chat's tools
/mcp             servers and their states
/reload          read servers, rules, skills, chat.json and bridge.json again
/skills          skills of the project and the user
/model [ID]      show the model, or choose another one
/resume [CHAT]   show earlier chats of this folder, or go on with one
/clear           begin anew
/help            this
/quit            end
A line that ends with \\ goes on; \"\"\" begins and ends a text of several lines. Ctrl-C stops what the agent does.
";

/// What comes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slash {
    /// It is a prompt.
    Prompt,
    /// It was done.
    Done,
    /// It could not be done.
    Failed,
    /// The chat ends.
    Quit,
}

/// The command of a line: a slash and a word. Paths are none.
fn command(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let name = word.strip_prefix('/')?;
    let is_word = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    is_word.then_some((name, rest.trim()))
}

impl Chat {
    /// Does what the line says, where it is a command.
    pub(super) async fn slash(&mut self, line: &str) -> Slash {
        let Some((name, rest)) = command(line) else { return Slash::Prompt };
        match name {
            "tools" => self.tools_page().await,
            "mcp" => self.servers_page().await,
            "reload" => return self.reload().await,
            "skills" => self.skills_page(),
            "model" => self.choose_model(rest).await,
            "resume" => return self.resume(rest),
            "clear" => self.clear(),
            "help" => self.screen.page(HELP),
            "quit" | "exit" => return Slash::Quit,
            other => {
                self.screen
                    .notice(NoticeLevel::Error, &format!("there is no command /{other}; /help shows them"));
                return Slash::Failed;
            }
        }
        Slash::Done
    }

    /// What the agent's last run began with.
    pub(super) async fn init(&self) -> Option<SystemInit> {
        let run = self.last_run.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let mut events = run.observe(0).ok()?;
        match events.next().await?.ok()?.event.kind {
            EventKind::System(init) => Some(*init),
            _ => None,
        }
    }

    async fn tools_page(&mut self) {
        use toolway_bridge::HostPort as _;
        let snapshot = Snapshot::take(&PROFILE, &self.settings.surface(true), &self.host.tools());
        let mut settings = (*self.settings).clone();
        settings.local.setting_sources.clone_from(&self.sources);
        let run = self.session.run();
        let run = run.as_ref().map(|run| {
            let facts = run.facts();
            ReportedRun {
                id: run.id(),
                pending: run.pending(),
                exposed: facts.exposed,
                connected: facts.connected > 0,
                listed: facts.listed > 0,
                called: facts.called > 0,
            }
        });
        let mut text = report(&ReportInput {
            profile: &PROFILE,
            settings: Some(&settings),
            warnings: &self.warnings,
            snapshot: Some(&snapshot),
            deadlines: Some(self.settings.deadlines().0),
            run,
            diagnostics: &[],
        });
        text.push_str("\n\n");
        match self.init().await {
            Some(init) => {
                let own =
                    if init.tools.is_empty() { "as it has them".to_owned() } else { init.tools.join(", ") };
                writeln!(text, "The agent's own tools ({}): {own}", init.runtime).unwrap_or_default();
                let pairs: Vec<String> = init
                    .mcp_tools
                    .iter()
                    .filter(|pair| pair.server != PROFILE.server_key)
                    .map(|pair| one_line(&format!("{}: {}", pair.server, pair.tool), LINE))
                    .collect();
                writeln!(text, "Tools of servers: {}", pairs.len()).unwrap_or_default();
                for pair in &pairs {
                    text.extend(["  ", pair, "\n"]);
                }
            }
            None => text.push_str(
                "The agent has not begun: its own tools and its servers are known after a prompt.\n",
            ),
        }
        self.screen.page(&text);
    }

    async fn servers_page(&mut self) {
        let Some(init) = self.init().await else {
            self.screen.page("The agent has not begun: its servers start with the first prompt. `toolway list` shows what files say.\n");
            return;
        };
        let mut text = "As the last prompt began:\n".to_owned();
        // The chat's own one is the third surface: /tools shows it.
        let servers: Vec<&ServerReport> =
            init.mcp_servers.iter().filter(|server| server.name != PROFILE.server_key).collect();
        if servers.is_empty() {
            text.push_str("There are no servers.\n");
        } else {
            let mut rows = vec![["SERVER", "STATE", "TOOLS", "FROM"].map(String::from).to_vec()];
            rows.extend(servers.iter().copied().map(row));
            text.push_str(&columns(&[Align::Left, Align::Left, Align::Right, Align::Left], &rows));
            for server in servers {
                if let Some(reason) = &server.reason {
                    writeln!(text, "{}: {}", one_line(&server.name, LINE), one_line(reason, LINE * 2))
                        .unwrap_or_default();
                }
            }
        }
        for note in &init.diagnostics {
            text.extend(["note: ", note, "\n"]);
        }
        self.screen.page(&text);
    }

    async fn reload(&mut self) -> Slash {
        let other_settings = match self.settings_again().await {
            Ok(others) => others,
            Err(error) => {
                self.screen.notice(NoticeLevel::Error, &error.to_string());
                return Slash::Failed;
            }
        };
        let read = self.read_again().await;
        if !other_settings {
            self.session.tell(HostEvent::AgentConfiguration).await;
        }
        self.told.lines.clear();
        self.tell_notices();
        self.tell_warnings();
        match read {
            Ok(()) => {
                let (skills, commands) = (self.skills.iter().count(), self.tools.config.commands.len());
                let others = if other_settings { ", other settings of the bridge" } else { "" };
                self.screen.page(&format!(
                    "Read again: {skills} skills, {commands} commands{others}; the agent reads its own files again.\n"
                ));
                Slash::Done
            }
            Err(error) => {
                self.screen.notice(NoticeLevel::Error, &format!("{error}; the commands stay as they were"));
                Slash::Failed
            }
        }
    }

    fn skills_page(&mut self) {
        let mut text = String::new();
        for skill in self.skills.iter() {
            writeln!(text, "{}: {}", one_line(&skill.name, 80), one_line(&skill.description, LINE))
                .unwrap_or_default();
        }
        if text.is_empty() {
            text.push_str("There are no skills: folders with a SKILL.md below .cursor/skills, of the project or of the user.\n");
        }
        self.screen.page(&text);
    }

    async fn choose_model(&mut self, rest: &str) {
        if rest.is_empty() {
            let model = if self.model.is_empty() { "the agent's own choice" } else { &self.model };
            let mut text = format!("{model}\n");
            let known = self.opening.coordinator.models().await.unwrap_or_default();
            let others = known.iter().map(|known| known.id.as_str()).filter(|known| *known != self.model);
            let others: Vec<&str> = others.collect();
            if !others.is_empty() {
                writeln!(text, "Others that there is a key for: {}", others.join(", ")).unwrap_or_default();
            }
            self.screen.page(&text);
            return;
        }
        rest.clone_into(&mut self.model);
        self.screen.page(&format!("From the next prompt on: {rest}\n"));
    }

    fn clear(&mut self) {
        self.messages.clear();
        self.log.anew();
        self.screen.page("A new chat.\n");
    }

    /// Shows earlier chats, or goes on with one: by its number, or its id.
    pub(super) fn resume(&mut self, which: &str) -> Slash {
        let kept = self.log.list();
        if which.is_empty() {
            let mut rows = vec![["", "AGE", "CHAT", "FIRST PROMPT"].map(String::from).to_vec()];
            for (at, chat) in kept.iter().enumerate() {
                rows.push(vec![
                    (at + 1).to_string(),
                    age(chat.age),
                    chat.id.clone(),
                    one_line(&chat.first, 60),
                ]);
            }
            let text = if kept.is_empty() {
                "There are no earlier chats of this folder.\n".to_owned()
            } else {
                columns(&[Align::Right, Align::Right, Align::Left, Align::Left], &rows)
            };
            self.screen.page(&text);
            return Slash::Done;
        }
        let numbered = || which.parse::<usize>().ok()?.checked_sub(1).and_then(|at| kept.get(at));
        let Some(chat) = kept.iter().find(|chat| chat.id == which).or_else(numbered) else {
            self.screen.notice(
                NoticeLevel::Error,
                &format!("there is no chat {which:?} of this folder; /resume shows them"),
            );
            return Slash::Failed;
        };
        match self.log.resume(chat) {
            Ok(messages) => {
                self.messages = messages;
                let text = format!("Going on with {}: {}\n", chat.id, one_line(&chat.first, 60));
                self.screen.page(&text);
                Slash::Done
            }
            Err(error) => {
                self.screen.notice(NoticeLevel::Error, &format!("{}: {error}", chat.path.display()));
                Slash::Failed
            }
        }
    }
}

fn row(server: &ServerReport) -> Vec<String> {
    vec![
        one_line(&server.name, 40),
        server.state.replace('_', " "),
        server.tools.to_string(),
        one_line(server.place.as_deref().unwrap_or(&server.source), 80),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_no_command() {
        assert_eq!(command(" /model  gpt-5 "), Some(("model", "gpt-5")));
        assert_eq!(command("/tools"), Some(("tools", "")));
        for prompt in ["/etc/hosts what is this?", "/ what", "look", "/Users"] {
            assert_eq!(command(prompt), None);
        }
    }
}
