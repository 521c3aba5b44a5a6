//! `toolway-model`: a scripted model, for agents that are programs of their own. The script's form is told in
//! `toolway_testkit::ModelScript`.
//!
//! `toolway-model SCRIPT [--port N] [--journal FILE]` writes its address (`http://127.0.0.1:PORT`) as one line to stdout
//! and serves until stdin ends, or for ever with `--stay`. The journal is a line of JSON for each request.

use std::fs::File;
use std::io::{self, Read as _, Write as _};

use anyhow::{Context as _, Result, bail};
use toolway_testkit::{Journal, ModelScript, ModelServer};

fn main() -> Result<()> {
    let (mut script, mut port, mut journal, mut stay) = (None, 0, None, false);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--port" => port = value()?.parse()?,
            "--journal" => {
                let path = value()?;
                let file = File::options().create(true).append(true).open(&path);
                journal = Some(file.with_context(|| format!("{path} cannot be written"))?);
            }
            "--stay" => stay = true,
            flag if flag.starts_with("--") => bail!("no such option: {flag}"),
            path => {
                let text = std::fs::read_to_string(path).with_context(|| format!("{path} cannot be read"))?;
                script = Some(ModelScript::parse(&text)?);
            }
        }
    }
    let script = script.context("no script given")?;
    let server = ModelServer::start_at(script, port, Journal::new(journal, None))?;
    let mut output = io::stdout();
    output.write_all(format!("{}\n", server.root()).as_bytes())?;
    output.flush()?;
    if stay {
        loop {
            std::thread::park();
        }
    }
    // The end of whoever started it is its end.
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
