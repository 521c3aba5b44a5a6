//! What can happen, drawn by lot.

use std::time::Duration;

use super::World;
use crate::agent_port::{AgentEnd, AgentEvent, AgentFailure, Usage};
use crate::coordinator::driver::Told;
use crate::coordinator::state::Event;
use crate::coordinator::tests::display::activity;
use crate::host_port::HostEvent;
use crate::prompt::Message;
use crate::replay::AgentToolEvent;

impl World {
    fn shell(&mut self, arg: u8) {
        let id = format!("shell-{}", arg % 8);
        let args = r#"{"command":"echo"}"#;
        let done = r#"{"status":"success","value":{"exitCode":0,"stdout":"hello\n","stderr":""}}"#;
        self.tell(0, AgentEvent::Tool(AgentToolEvent::Started(activity(&id, "shell", args, None))));
        if arg < 200 {
            let done = activity(&id, "shell", args, Some(done));
            self.tell(0, AgentEvent::Tool(AgentToolEvent::Completed(done)));
        }
    }

    pub(super) fn obey(&mut self) {
        for (_, driver, _) in self.drivers.values_mut() {
            driver.orders();
        }
    }

    /// What comes next where nothing goes wrong.
    async fn natural(&mut self, number: u64, arg: u8) {
        self.obey();
        for which in 0..self.turns.len() {
            self.read(which, 1000);
        }
        if self.gate.turns() == 0 {
            if self.open.is_empty() {
                self.messages.push(Message::user("go"));
                return self.ask();
            }
            return self.bring(if arg < 200 { 2 } else { arg });
        }
        if self.drivers.get(&number).is_some_and(|(_, _, told)| !told) {
            self.ready(number).await;
            return self.handle(Event::Told(number, Told::Sent(Ok(()))));
        }
        self.handle(Event::Told(number, Told::Sent(Ok(()))));
        match arg % 8 {
            0..=3 => {
                self.call(arg);
                self.call(arg / 8);
                tokio::time::sleep(Duration::from_millis(200)).await;
                self.rest();
            }
            4 => self.tell(0, AgentEvent::Ended(AgentEnd::Finished(None))),
            5 => self.shell(arg),
            _ => self.tell(0, AgentEvent::Text("text ".to_owned())),
        }
    }

    pub(super) async fn step(&mut self, (what, arg): (u8, u8)) {
        let number = self.agent(arg);
        match what {
            0 | 1 => {
                self.messages.push(Message::user("go"));
                self.ask();
            }
            2..=4 => self.bring(arg),
            5 | 6 => self.ready(number).await,
            7 if arg < 30 => {
                self.handle(Event::Told(number, Told::NotMade(AgentFailure::new("no"))));
            }
            8..=10 => self.handle(Event::Told(number, Told::Sent(Ok(())))),
            11 if arg < 60 => {
                self.handle(Event::Told(number, Told::Sent(Err(AgentFailure::new("no")))));
            }
            12 => {
                for _ in 0..arg {
                    self.tell(arg, AgentEvent::Text("text ".to_owned()));
                    self.tell(arg, AgentEvent::Thinking("thought ".to_owned()));
                }
            }
            13 => self.tell(arg, AgentEvent::Text("text ".to_owned())),
            14 => self.tell(arg, AgentEvent::TurnEnded(Usage::default())),
            15 => {
                let end = match arg % 8 {
                    0 => AgentEnd::Failed(AgentFailure::new("broken")),
                    1 => AgentEnd::Cancelled,
                    2 => AgentEnd::Finished(Some("final".to_owned())),
                    _ => AgentEnd::Finished(None),
                };
                self.tell(arg, AgentEvent::Ended(end));
            }
            16 if arg < 60 => self.handle(Event::Told(number, Told::Dead)),
            36.. => self.natural(number, arg).await,
            _ => self.host_step(what, arg).await,
        }
        self.hear();
        self.check();
    }

    async fn host_step(&mut self, what: u8, arg: u8) {
        let pick = |len: usize| if len == 0 { 0 } else { usize::from(arg) % len };
        match what {
            17..=20 => self.call(arg),
            21 => {
                if let Some(called) = self.called.get(pick(self.called.len())) {
                    called.waiter.cancel("the client cancelled the request");
                }
                self.rest();
            }
            22 | 35 if arg < 160 => {
                let last = self.turns.len().saturating_sub(1);
                let which = if arg.is_multiple_of(3) { pick(self.turns.len()) } else { last };
                if let Some(asked) = self.turns.get(which) {
                    asked.abort.cancel();
                }
                self.rest();
            }
            23 if arg < 60 => {
                if let Some(asked) = self.turns.last_mut() {
                    asked.turn = None;
                }
                self.rest();
            }
            24..=28 => {
                for which in 0..self.turns.len() {
                    self.read(which, usize::from(arg));
                }
            }
            29..=31 => {
                let ms = [1, 30, 80, 250, 1000, 3100, 6000, 11_000][pick(8)];
                tokio::time::sleep(Duration::from_millis(ms)).await;
                self.rest();
            }
            32 => self.shell(arg),
            33 => {
                let event = match arg % 3 {
                    0 => HostEvent::Compaction,
                    1 => HostEvent::TreeNavigation,
                    _ => HostEvent::AgentConfiguration,
                };
                self.handle(Event::Host(event));
            }
            34 => self.obey(),
            _ => {}
        }
    }
}
