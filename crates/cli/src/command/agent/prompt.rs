//! Owns what is sent: the text of the command line or of stdin, and pictures.

use std::io::Read as _;

use toolway_agent::Prompt;

use crate::args::SendArgs;
use crate::compose::UsageError;
use crate::compose::agent::prompt_image;

/// The most bytes of a prompt from stdin.
const MOST: u64 = 16 << 20;

/// The prompt. Waits for stdin where it is there.
pub(super) fn prompt(text: &str, sending: &SendArgs) -> Result<Prompt, UsageError> {
    let text = if text == "-" { stdin()? } else { text.to_owned() };
    let images = sending.image.iter().map(|file| prompt_image(file)).collect::<Result<Vec<_>, _>>()?;
    if text.trim().is_empty() && images.is_empty() {
        return Err(UsageError::new("PROMPT", "is empty"));
    }
    Ok(Prompt { text, images })
}

fn stdin() -> Result<String, UsageError> {
    let wrong = |reason: String| UsageError::new("PROMPT", reason);
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MOST + 1).read_to_end(&mut bytes);
    read.map_err(|error| wrong(format!("stdin cannot be read: {error}")))?;
    if bytes.len() as u64 > MOST {
        return Err(wrong("stdin has more than 16 MiB".to_owned()));
    }
    String::from_utf8(bytes).map_err(|_| wrong("stdin is not UTF-8".to_owned()))
}
