//! `toolway-acp-agent`: a scripted agent of the Agent Client Protocol over stdio; see `toolway_testkit::AcpScript`.
//!
//! `toolway-acp-agent SCRIPT|--script TEXT [--journal FILE]`; other words are let pass.

use std::fs::File;

use anyhow::{Context as _, Result};
use toolway_testkit::{AcpAgent, AcpScript};

fn main() -> Result<()> {
    let (mut script, mut journal) = (None, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--script" => script = Some(AcpScript::parse(&value()?)?),
            "--journal" => journal = Some(value()?),
            word if script.is_none() => {
                let text = std::fs::read_to_string(word).with_context(|| format!("{word} cannot be read"))?;
                script = Some(AcpScript::parse(&text)?);
            }
            _ => {}
        }
    }
    let journal = journal.map(|path| File::options().create(true).append(true).open(path)).transpose()?;
    AcpAgent::serve(script.unwrap_or_default(), journal)
}
