//! What was typed, as plain values. Knows the options' spelling and defaults, not what they do.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::gateway;
use crate::loopback;
use crate::measure::Config;
use crate::server;

pub(crate) const USAGE: &str = "\
toolway-bench server --transport stdio|http|sse [--port N] [--reply-sse] [--no-get] [--stateless] [--pidfile F]
                     [--ignore-eof] [--ignore-term] [--drain] [--init-delay MS] [--max-life S]
                     [--tools N] [--name NAME] [--stamps DIR]
toolway-bench client [MEASURE] [--upstream KIND] -- COMMAND...   one stdio front ({up} stands for the upstream's argv,
                                                                 {url} for its URL); no command = the upstream itself
toolway-bench ab     --fronts FILE [--only a,b] [--upstream KIND] [--rounds N] [--baseline NAME] [--out FILE] [MEASURE]
toolway-bench checks --fronts FILE [--only a,b] [--upstream KIND] [--out FILE]
toolway-bench faults --fronts FILE [--only a,b] [--upstream KIND] [--scenarios x,y] [--out FILE] [--judge]
toolway-bench huge   --fronts FILE [--only a,b] [--rounds N] [--bytes N] [--out FILE] [--tmp DIR]
toolway-bench gateway start|scale|idle|reload --fronts FILE [--only a,b] [--rounds N] [--out FILE] [--servers N]
                     [--asks 50] [--reloads 200] [--tmp DIR]
toolway-bench loopback NAME=COMMAND... [--rounds N] [--calls 3000] [--pipe 40000] [--window 64] [--flight 1000] [--out FILE]
toolway-bench table  --baseline NAME FILE...                     table of saved JSON lines
toolway-bench summary --baseline NAME FILE...                    the same as JSON
toolway-bench report FILE...                                     tables of saved checks and faults lines
toolway-bench judge  FILE...                                     right and wrong of saved faults lines
toolway-bench relay  [--splice | --frame] -- COMMAND...
toolway-bench bridge URL
KIND: stdio | http (JSON replies) | http-sse (SSE replies) | sse (legacy HTTP+SSE)
MEASURE: --calls 1000 --pipe 4000 --window 64 --cold 2 --sizes 9000,100000,1000000,10000000,100000000 (none: '')
         --kinds ascii[,multibyte,escaped,structured,image,values] --budget 4 --blob-timeout 90 --tmp DIR
--pin (client, ab, huge): everything on one core";

/// Options that stand alone.
const SWITCHES: [&str; 11] = [
    "--reply-sse",
    "--no-get",
    "--stateless",
    "--ignore-eof",
    "--ignore-term",
    "--drain",
    "--judge",
    "--splice",
    "--frame",
    "--pin",
    "--no-request",
];

#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) command: String,
    options: Vec<(String, String)>,
    switches: Vec<String>,
    /// Words that belong to no option.
    pub(crate) words: Vec<String>,
    /// Everything behind `--`.
    pub(crate) rest: Vec<String>,
}

impl Args {
    pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> anyhow::Result<Self> {
        let mut args = args.into_iter();
        let command = args.next().context("no command")?;
        let mut out = Self { command, options: vec![], switches: vec![], words: vec![], rest: vec![] };
        while let Some(arg) = args.next() {
            if arg == "--" {
                out.rest = args.collect();
                break;
            }
            if SWITCHES.contains(&arg.as_str()) {
                out.switches.push(arg);
            } else if arg.starts_with("--") {
                let value = args.next().with_context(|| format!("{arg} needs a value"))?;
                out.options.push((arg, value));
            } else {
                out.words.push(arg);
            }
        }
        Ok(out)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str())
    }

    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.text(name).map(PathBuf::from)
    }

    pub(crate) fn number<T: FromStr>(&self, name: &str, default: T) -> anyhow::Result<T> {
        match self.text(name) {
            None => Ok(default),
            Some(text) => match text.replace('_', "").parse() {
                Ok(n) => Ok(n),
                Err(_) => bail!("{name} {text}: not such a number"),
            },
        }
    }

    pub(crate) fn has(&self, switch: &str) -> bool {
        self.switches.iter().any(|s| s == switch)
    }

    pub(crate) fn upstream(&self) -> &str {
        self.text("--upstream").unwrap_or("stdio")
    }

    fn seconds(&self, name: &str, default: u64, most: u64) -> anyhow::Result<Duration> {
        Ok(Duration::from_secs(self.number(name, default)?.clamp(1, most)))
    }

    /// The measure options, everything bounded.
    pub(crate) fn measure(&self) -> anyhow::Result<Config> {
        let sizes = self.text("--sizes").unwrap_or("9000,100000,1000000,10000000,100000000");
        let sizes = sizes.split(',').filter(|s| !s.is_empty());
        let sizes: Result<Vec<usize>, _> = sizes.map(|s| s.replace('_', "").parse()).collect();
        Ok(Config {
            upstream: self.upstream().to_owned(),
            rounds: self.number("--rounds", 5)?.clamp(1, 100),
            cold: self.number("--cold", 2)?.min(50),
            calls: self.number("--calls", 1000)?.min(1_000_000),
            pipe: self.number("--pipe", 4000)?.min(1_000_000),
            window: self.number("--window", 64)?.clamp(1, 512),
            sizes: sizes.context("--sizes")?.into_iter().filter(|n| *n <= 500_000_000).collect(),
            kinds: self.text("--kinds").unwrap_or("ascii").split(',').map(str::to_owned).collect(),
            budget: self.seconds("--budget", 4, 120)?,
            blob_timeout: self.seconds("--blob-timeout", 90, 300)?,
            large_request: !self.has("--no-request"),
            tmp: self.path("--tmp").unwrap_or_else(std::env::temp_dir),
        })
    }

    /// The options of a gateway's measures.
    pub(crate) fn gateway(&self) -> anyhow::Result<gateway::Config> {
        let servers = self.text("--servers").map(|_| self.number("--servers", 0_usize)).transpose()?;
        Ok(gateway::Config {
            rounds: self.number("--rounds", 5)?.clamp(1, 100),
            servers: servers.map(|n| n.clamp(1, 200)),
            asks: self.number("--asks", 50)?.clamp(1, 100_000),
            reloads: self.number("--reloads", 200)?.clamp(1, 10_000),
            tmp: self.path("--tmp").unwrap_or_else(std::env::temp_dir),
        })
    }

    /// The options of loopback servers.
    pub(crate) fn loopback(&self) -> anyhow::Result<loopback::Config> {
        Ok(loopback::Config {
            rounds: self.number("--rounds", 5)?.clamp(1, 100),
            calls: self.number("--calls", 3000)?.clamp(10, 1_000_000),
            pipe: self.number("--pipe", 40_000)?.min(1_000_000),
            window: self.number("--window", 64)?.clamp(1, 512),
            flight: self.number("--flight", 1000)?.min(10_000),
        })
    }

    /// What the upstream shall be.
    pub(crate) fn server(&self) -> anyhow::Result<server::Options> {
        Ok(server::Options {
            transport: self.text("--transport").unwrap_or("stdio").parse()?,
            port: self.number("--port", 0)?,
            reply_sse: self.has("--reply-sse"),
            no_get: self.has("--no-get"),
            stateless: self.has("--stateless"),
            pidfile: self.path("--pidfile"),
            ignore_eof: self.has("--ignore-eof"),
            ignore_term: self.has("--ignore-term"),
            drain: self.has("--drain"),
            max_life: self.seconds("--max-life", 900, 3600)?,
            init_delay: Duration::from_millis(self.number("--init-delay", 0)?.min(60_000)),
            tools: self
                .text("--tools")
                .map(|_| self.number("--tools", 0_usize))
                .transpose()?
                .map(|n| n.min(250)),
            name: self.text("--name").unwrap_or("bench").to_owned(),
            stamps: self.path("--stamps"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> anyhow::Result<Args> {
        Args::parse(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn options_switches_words_and_rest_are_told_apart() {
        let args =
            parse("client --calls 1_000 --pin a.jsonl --upstream http -- x --calls 7").expect("parses");
        assert_eq!((args.command.as_str(), args.upstream()), ("client", "http"));
        assert!(args.has("--pin") && !args.has("--judge"));
        assert_eq!(args.number("--calls", 5).ok(), Some(1000));
        assert_eq!(args.words, ["a.jsonl"]);
        assert_eq!(args.rest, ["x", "--calls", "7"]);
    }

    #[test]
    fn what_is_no_number_and_what_lacks_a_value_is_refused() {
        assert!(parse("ab --calls x").and_then(|a| a.measure()).is_err());
        assert!(parse("ab --sizes 1,x").and_then(|a| a.measure()).is_err());
        assert!(parse("ab --calls").is_err());
        assert!(parse("server --transport smoke").and_then(|a| a.server()).is_err());
    }
}
