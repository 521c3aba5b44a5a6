//! Owns the card of a command. It was run by the agent; nothing is run here.

use serde_json::{Value, json};

use super::super::lenient;
use super::super::limits;
use super::{Call, Card, Matrix, Said};

impl Matrix<'_> {
    pub(super) fn shell(&self, call: &mut Call, streamed: Option<&str>) -> Card {
        let value = &call.outcome.value;
        let command = lenient::text(&call.args, &["command", "cmd"])
            .or_else(|| lenient::text(value, &["command"]))
            .map(str::to_owned);
        let timeout =
            lenient::number(&call.args, &["timeout", "timeoutMs", "timeout_ms"]).filter(|ms| *ms > 0.0);
        let took = lenient::number(
            value,
            &["executionTime", "execution_time", "durationMs", "localExecutionTimeMs"],
        );
        let exit = lenient::number(value, &["exitCode", "exit_code"]).filter(|code| code.fract() == 0.0);

        let mut args = json!({"command": self.block(command.as_deref().unwrap_or_default())});
        if let (Some(ms), Some(map)) = (timeout, args.as_object_mut()) {
            map.insert("timeout".to_owned(), seconds(ms));
        }
        let output = output(call).or(streamed.map(str::to_owned)).unwrap_or_default();
        let ran_out = timeout.zip(took).is_some_and(|(timeout, took)| took >= timeout);
        let failed = call.outcome.failed || ran_out || exit.is_some_and(|code| code != 0.0);
        let why = match (timeout.filter(|_| ran_out), exit.filter(|code| *code != 0.0)) {
            (Some(ms), _) => Some(format!("timed out after {} s", seconds(ms))),
            (None, Some(code)) => Some(format!("exit code {code}")),
            (None, None) if failed && output.trim().is_empty() => Some(self.error(call)),
            (None, None) if failed => {
                let error = self.label(&call.outcome.error);
                let is_told = error.is_empty() || output.contains(&call.outcome.error);
                Some(if is_told { "the command failed".to_owned() } else { error })
            }
            (None, None) => None,
        };
        let room = why.as_ref().map_or(0, |why| why.chars().count() + 2);
        let lines = why.as_ref().map_or(0, |why| why.lines().count() + 1);
        let limit = limits::Limit {
            chars: self.limit.chars.saturating_sub(room),
            lines: self.limit.lines.saturating_sub(lines),
        };
        let output = limits::block(self.scrubber, &output, limit);
        let output = match (output.is_empty(), why) {
            (true, Some(why)) => why,
            (true, None) => "(no output)".to_owned(),
            // Some agents say it below the output themselves.
            (false, Some(why)) if output.lines().next_back().is_some_and(|last| last.contains(&why)) => {
                output
            }
            (false, Some(why)) => format!("{output}\n\n{why}"),
            (false, None) => output,
        };
        call.outcome.failed = failed;
        if let Some(command) = command {
            return self.native(call, "bash", &args, &command, output);
        }
        // Without a command it is no call of a shell that a host could show.
        if failed {
            call.outcome.error.clone_from(&output);
        }
        let title = format!("{} shell", self.profile.card_title);
        self.activity(call, Said { title, text: output, ..Said::default() })
    }
}

/// What the command wrote, in the order in which it wrote it where the agent knows that.
fn output(call: &Call) -> Option<String> {
    let value = &call.outcome.value;
    let whole = lenient::text(
        value,
        &["interleavedOutput", "output", "content", "aggregatedOutput", "formatted_output"],
    );
    let whole = whole.or(call.outcome.text.as_deref()).filter(|text| !text.trim().is_empty());
    if let Some(whole) = whole {
        return Some(whole.to_owned());
    }
    let of = |name: &str| lenient::text(value, &[name]).filter(|text| !text.trim().is_empty());
    match (of("stdout"), of("stderr")) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(one.to_owned()),
        (Some(out), Some(err)) => Some(format!("{}\n{err}", out.trim_end_matches('\n'))),
    }
}

/// Milliseconds as seconds, without a fraction where there is none.
fn seconds(ms: f64) -> Value {
    let seconds = ms / 1000.0;
    if seconds.fract() == 0.0 && seconds < 1e15 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, whole and small"
        )]
        return Value::from(seconds as u64);
    }
    Value::from(seconds)
}
