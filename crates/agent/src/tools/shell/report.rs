//! Owns how a command's output and end are said.

use std::time::Duration;

use serde_json::json;
use toolway_transport::Exit;

use crate::tools::ToolOutput;
use crate::tools::shells::RunningCommand;

/// How a call about a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It ended by itself.
    Exit(Exit),
    /// It goes on.
    Running,
    /// It took too long and was ended.
    TimedOut(Duration),
    /// Nobody wants it any more, and it was ended.
    Cancelled,
}

/// The answer: what is new, then how it stands.
pub(super) fn report(id: &str, command: &RunningCommand, ending: Ending) -> ToolOutput {
    let look = command.look();
    let took = command.took();
    let said = match ending {
        Ending::Exit(Exit::Code(code)) => format!("exit code {code}, after {}", seconds(took)),
        Ending::Exit(exit) => format!("the command {exit}, after {}", seconds(took)),
        Ending::Running => format!(
            "it runs in the background as {id}, for {} now: writeStdin with this id reads on, writes to it or ends it",
            seconds(took)
        ),
        Ending::TimedOut(limit) => format!(
            "it did not end within {} and was ended; give a larger timeoutMs, or background=true",
            seconds(limit)
        ),
        Ending::Cancelled => "the call was cancelled, and the command ended".to_owned(),
    };
    let left = match command.left() {
        0 => String::new(),
        1 => "; a process that it left running was ended".to_owned(),
        more => format!("; {more} processes that it left running were ended"),
    };
    let output = without_escapes(&look.text);
    let output = output.trim_end_matches('\n');
    let gap = if output.is_empty() { "" } else { "\n" };
    let (code, signal) = match ending {
        Ending::Exit(Exit::Code(code)) => (Some(code), None),
        Ending::Exit(Exit::Signal(signal)) => (None, Some(signal)),
        _ => (None, None),
    };
    let details = json!({
        "command": command.line(),
        "shellId": (ending == Ending::Running).then_some(id),
        "exitCode": code,
        "signal": signal,
        "timedOut": matches!(ending, Ending::TimedOut(_)),
        "durationMs": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "bytes": look.total,
        "bytesLeftOut": look.left_out,
        "savedTo": look.saved.map(|path| path.display().to_string()),
    });
    let is_error = !matches!(ending, Ending::Running) && ending != Ending::Exit(Exit::Code(0));
    let text = format!("{output}{gap}[{said}{left}]");
    ToolOutput { is_error, ..ToolOutput::text(text).with_details(&details) }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Without the sequences by which programs colour a terminal, and with the last state of a line that was written over.
fn without_escapes(text: &str) -> String {
    if !text.contains(['\u{1b}', '\r', '\u{8}', '\0']) {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut line = 0;
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => match characters.next() {
                Some('[') => while characters.next().is_some_and(|next| !('@'..='~').contains(&next)) {},
                Some(']') => {
                    let mut last = ' ';
                    for next in characters.by_ref() {
                        if next == '\u{7}' || (last == '\u{1b}' && next == '\\') {
                            break;
                        }
                        last = next;
                    }
                }
                _ => {}
            },
            '\r' if characters.peek() == Some(&'\n') => {}
            '\r' if characters.peek() == Some(&'\r') => {}
            '\r' => plain.truncate(line),
            '\u{8}' | '\0' => {}
            '\n' => {
                plain.push('\n');
                line = plain.len();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_overwritten_lines_are_left_out() {
        let table = [
            ("plain\n", "plain\n"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}x\u{1b}]8;;u\u{1b}\\y", "xy"),
            ("10%\r50%\r100%\ndone\r\n", "100%\ndone\n"),
            ("a\r\r\nb", "a\nb"),
            ("cut \u{1b}[", "cut "),
            ("ü\0\u{8}", "ü"),
        ];
        for (text, plain) in table {
            assert_eq!(without_escapes(text), plain, "{text:?}");
        }
    }
}
