//! The real `toolway saved` on results that a real relay has saved.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use toolway_guard::{Guard, GuardConfig, QueryProcess, ReadBack};

const TOOLWAY: &str = env!("CARGO_BIN_EXE_toolway");

/// A home with the results of the demonstration in it.
struct Home(TempDir);

impl Home {
    fn empty() -> Result<Self> {
        Ok(Self(TempDir::new()?))
    }

    fn new() -> Result<Self> {
        let home = Self::empty()?;
        let shown = home.command(&["quickstart"]).output()?;
        ensure!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
        Ok(home)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(TOOLWAY);
        command.args(args).env_clear().env("HOME", self.0.path()).env("PATH", "/usr/bin:/bin");
        command.stdin(Stdio::null());
        command
    }

    fn saved(&self, args: &[&str]) -> Result<Told> {
        let output = self.command(&[&["saved"], args].concat()).output()?;
        Told::of(output, self)
    }

    /// The id of the tool's result.
    fn id(&self, tool: &str) -> Result<String> {
        let all: Vec<Value> = serde_json::from_str(&self.saved(&["list", "--json"])?.out)?;
        let entry = all.iter().find(|entry| entry["tool"] == tool).context("not saved")?;
        Ok(entry["id"].as_str().context("no id")?.to_owned())
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Told {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Told {
    fn of(output: Output, home: &Home) -> Result<Self> {
        let text = |bytes: Vec<u8>| -> Result<String> {
            let text = String::from_utf8(bytes)?;
            Ok(text.replace(TOOLWAY, "toolway").replace(&*home.0.path().to_string_lossy(), "HOME"))
        };
        Ok(Self { code: output.status.code(), out: text(output.stdout)?, err: text(output.stderr)? })
    }

    fn is(&self, code: i32, out: &str, err: &str) -> Result<()> {
        let expected = Self { code: Some(code), out: out.to_owned(), err: err.to_owned() };
        ensure!(*self == expected, "{self:#?}\nis not\n{expected:#?}");
        Ok(())
    }
}

#[test]
fn the_list_says_what_there_is_and_how_to_read_it() -> Result<()> {
    let home = Home::new()?;
    let (log, table, failing) = (home.id("build_log")?, home.id("table")?, home.id("failing")?);
    let told = home.saved(&["list"])?;
    let total = told.out.lines().find_map(|line| line.strip_prefix("3 saved results, ")).context("no sum")?;
    let expected = format!(
        "ID          AGE  SERVER   TOOL                 SIZE   LINES\n\
         {failing}  now  toolway  failing (error)   30.9 kB     392\n\
         {table}  now  toolway  table            455.6 kB  18,004\n\
         {log}  now  toolway  build_log        203.0 kB   2,800\n\n\
         3 saved results, {total}\n\
         Show one: toolway saved show {failing} --lines 1-200\n"
    );
    told.is(0, &expected, "")?;
    ensure!(total.ends_with(" in HOME/.cache/cursor-mcp-response-proxy"), "{total}");
    Ok(())
}

#[test]
fn an_empty_store_says_so() -> Result<()> {
    let home = Home::empty()?;
    let text = "no saved results in HOME/.cache/cursor-mcp-response-proxy\n\
        A result is saved when a relay (toolway stdio, sse or streamable-http) finds it too large for its client.\n";
    home.saved(&["list"])?.is(0, text, "")?;
    home.saved(&["list", "--json"])?.is(0, "[]\n", "")?;
    let removed = "removed 0 saved results (0 B) from HOME/.cache/cursor-mcp-response-proxy; 0 left\n";
    home.saved(&["purge", "--all"])?.is(0, removed, "")
}

#[test]
fn lines_bytes_and_the_message_itself_are_shown() -> Result<()> {
    let home = Home::new()?;
    let id = home.id("build_log")?;
    let middle = "\u{20}1406   52.022s compiled module_9842 (13 units, optimised, no warnings)\n\
        \u{20}1407   52.059s ERROR module_9849: mismatched types: expected `u64`, found `&str`\n";
    home.saved(&["show", &id, "--lines", "1406-1407"])?.is(0, middle, "")?;
    // The beginning of an id is enough.
    home.saved(&["show", id.get(..7).context("short")?, "--lines", "1406-1407"])?.is(0, middle, "")?;
    let whole = home.saved(&["show", &id])?.out;
    ensure!(whole.lines().count() == 2800);
    ensure!(home.saved(&["show", &id, "--lines", "2799-"])?.out.lines().eq(whole.lines().skip(2798)));
    home.saved(&["show", &id, "--bytes", "4-15"])?.is(0, whole.get(4..16).context("short")?, "")?;
    home.saved(&["show", &id, "--bytes", "0-"])?.is(0, &whole, "")?;
    let raw = home.saved(&["show", &id, "--raw"])?.out;
    let message: Value = serde_json::from_str(&raw)?;
    ensure!(message["result"]["content"][0]["text"] == whole.as_str());
    let behind = format!("error: the result {id} has 2,800 lines: there is no line 5,000\n");
    home.saved(&["show", &id, "--lines", "5000-5001"])?.is(1, "", &behind)?;
    ensure!(home.saved(&["show", &id, "--bytes", "900000-"])?.code == Some(1));
    for range in ["5-1", "0-3", "x"] {
        let told = home.saved(&["show", &id, "--lines", range])?;
        ensure!(told.code == Some(2) && told.err.contains("bad range"), "{told:?}");
    }
    Ok(())
}

#[test]
fn search_shows_numbers_and_context_and_finds_or_not() -> Result<()> {
    let home = Home::new()?;
    let id = home.id("build_log")?;
    let found = "1406- 1406   52.022s compiled module_9842 (13 units, optimised, no warnings)\n\
        1407: 1407   52.059s ERROR module_9849: mismatched types: expected `u64`, found `&str`\n\
        1408- 1408   52.096s compiled module_9856 (15 units, optimised, no warnings)\n";
    home.saved(&["search", &id, "(?i)error", "--context", "1"])?.is(0, found, "")?;
    home.saved(&["search", &id, "no such thing"])?.is(1, "", "")?;
    let told = home.saved(&["search", &id, "("])?;
    ensure!(told.code == Some(2) && told.err.contains("unclosed group"), "{told:?}");
    Ok(())
}

#[test]
fn query_runs_jq_over_structured_content() -> Result<()> {
    let home = Home::new()?;
    let id = home.id("table")?;
    home.saved(&["query", &id, ".rows | length"])?.is(0, "3000\n", "")?;
    home.saved(&["query", &id, ".rows[1499:1501][] | .customer"])?.is(
        0,
        "\"customer 46500\"\n\"customer 46531\"\n",
        "",
    )?;
    let told = home.saved(&["query", &id, ".rows["])?;
    ensure!(told.code == Some(2) && told.err.starts_with("error: query failed: "), "{told:?}");
    Ok(())
}

/// Filters that end in no time, or in no memory.
const ENDLESS: [&str; 3] = ["last(range(1e12))", "def f: f; f", "last(repeat([1]))"];
const VAST: [&str; 2] = ["\"0123456789\" * 1000000000 | length", "def f: 1 + f; f"];

#[test]
fn a_query_of_the_read_back_tool_ends_in_time_and_a_good_one_answers() -> Result<()> {
    let home = Home::new()?;
    let id = home.id("table")?;
    let ask = |filter: &str, time: Duration| -> Result<(String, bool)> {
        let directory = home.0.path().join(".cache/cursor-mcp-response-proxy");
        let guard = Guard::new(GuardConfig {
            read_back: ReadBack::User,
            query_process: Some(QueryProcess { program: TOOLWAY.into(), time }),
            ..GuardConfig::new(directory)
        });
        let arguments = serde_json::json!({"id": id, "query": filter}).to_string();
        let answer: Value = serde_json::from_slice(&guard.call_read_back(b"1", arguments.as_bytes(), ""))?;
        let text = answer["result"]["content"][0]["text"].as_str().context("no text")?.to_owned();
        Ok((text, answer["result"]["isError"] == true))
    };
    let plenty = Duration::from_mins(1);
    ensure!(ask(".rows | length", plenty)? == ("3000\n".to_owned(), false));
    ensure!(ask("empty", plenty)? == ("The filter gave nothing.".to_owned(), false));
    for (filter, words, wrong) in [
        ("-1, .rows[].customer, last(range(1e12))", "[page full after ", false),
        (".", "narrow the filter", false),
        ("[", "query failed: expected ", true),
        (".rows.x", "cannot index", true),
    ] {
        let (text, is_error) = ask(filter, plenty)?;
        ensure!(text.contains(words) && is_error == wrong, "{filter}: {text}");
    }
    for filter in ENDLESS {
        let started = Instant::now();
        let bound = "the query took more than 0.3 s, or more memory than it may";
        ensure!(ask(filter, Duration::from_millis(300))? == (bound.to_owned(), true), "{filter}");
        ensure!(started.elapsed() < Duration::from_secs(10), "{filter}: {:?}", started.elapsed());
    }
    for filter in VAST {
        let bound = "the query took more than 60 s, or more memory than it may";
        ensure!(ask(filter, plenty)? == (bound.to_owned(), true), "{filter}");
    }
    Ok(())
}

#[test]
fn the_process_of_a_query_bounds_itself() -> Result<()> {
    let home = Home::new()?;
    let all: Vec<Value> = serde_json::from_str(&home.saved(&["list", "--json"])?.out)?;
    let word = |name: &str| all.first().and_then(|entry| entry[name].as_str()).context("no field");
    let directory = home.0.path().join(".cache/cursor-mcp-response-proxy");
    let run = |filter: &str| {
        let mut command = home.command(&["__query", "1", "--"]);
        Ok(command.arg(&directory).args([word("session")?, word("id")?, filter]).output()?)
    };
    let done: Result<Output> = run("1");
    ensure!(done?.stdout == b"=1\n.");
    // Nobody waits for it with a clock here.
    let ended: Result<Output> = run("last(range(1e12))");
    let ended = ended?;
    ensure!(!ended.status.success() && ended.stdout.is_empty(), "{ended:?}");
    Ok(())
}

#[test]
fn an_unknown_id_and_an_ambiguous_one_say_what_to_do() -> Result<()> {
    let home = Home::new()?;
    home.saved(&["show", "nope"])?.is(
        1,
        "",
        "error: no saved result has the id \"nope\"\nhint: toolway saved list shows all ids\n",
    )?;
    // Enough results that two of them begin alike.
    let index = home.0.path().join(".cache/cursor-mcp-response-proxy/index.jsonl");
    let lines = fs::read_to_string(&index)?;
    let more = lines.replace("\"id\":\"", "\"id\":\"aa");
    fs::write(&index, format!("{lines}{more}"))?;
    home.saved(&["show", "aa"])?.is(
        2,
        "",
        "error: 3 saved results have an id that begins with \"aa\"; give more of it\nhint: toolway saved list shows all ids\n",
    )
}

#[test]
fn purge_removes_what_was_asked_for_and_says_what() -> Result<()> {
    let home = Home::new()?;
    let directory = home.0.path().join(".cache/cursor-mcp-response-proxy");
    let told = home.saved(&["purge"])?;
    ensure!(told.code == Some(2) && told.err.contains("--older-than"), "{told:?}");
    let told = home.saved(&["purge", "--older-than", "soon"])?;
    ensure!(told.code == Some(2) && told.err.starts_with("error: --older-than: \"soon\" "), "{told:?}");
    let kept = "removed 0 saved results (0 B) from HOME/.cache/cursor-mcp-response-proxy; 3 left\n";
    home.saved(&["purge", "--older-than", "1h"])?.is(0, kept, "")?;
    fs::write(directory.join("mine.txt"), "x")?;
    let told = home.saved(&["purge", "--all"])?;
    ensure!(
        told.out.starts_with("removed 3 saved results (") && told.out.ends_with("; 0 left\n"),
        "{told:?}"
    );
    let left: Vec<_> = fs::read_dir(&directory)?.flatten().map(|entry| entry.file_name()).collect();
    ensure!(left.iter().any(|name| name == "mine.txt") && left.len() <= 3, "{left:?}");
    Ok(())
}

#[test]
fn the_directory_comes_from_the_flag_or_a_variable_and_is_named_in_hints() -> Result<()> {
    let home = Home::empty()?;
    let other = home.0.path().join("it's here");
    let other = other.to_string_lossy();
    ensure!(home.command(&["quickstart", "--output-dir", &other]).output()?.status.success());
    let told = home.saved(&["list", "--output-dir", &other])?;
    let hint = r"Show one: toolway saved --output-dir 'HOME/it'\''s here' show ";
    let line = told.out.lines().last().context("empty")?;
    ensure!(line.starts_with(hint), "{line}");
    // The hint is a command that works.
    let line = line.replace("HOME", &home.0.path().to_string_lossy()).replace("toolway", TOOLWAY);
    let command = line.strip_prefix("Show one: ").context("no hint")?;
    let shown = Command::new("/bin/sh").args(["-c", command]).env("HOME", home.0.path()).output()?;
    ensure!(String::from_utf8_lossy(&shown.stdout).starts_with("deployment failed"), "{shown:?}");
    for variable in ["TOOLWAY_OUTPUT_DIR", "CURSOR_MCP_RESPONSE_PROXY_OUTPUT_DIR"] {
        let output = home.command(&["saved", "list"]).env(variable, &*other).output()?;
        ensure!(Told::of(output, &home)?.out == told.out);
    }
    Ok(())
}

/// The command in the preview that the client got, run by a shell, writes the text.
#[test]
fn the_command_in_a_preview_works_for_a_directory_of_ones_own() -> Result<()> {
    let home = Home::empty()?;
    let other = home.0.path().join("a b");
    let other = other.to_string_lossy();
    let mut relay = home.command(&["stdio", "--output-dir", &other, "--", TOOLWAY, "__demo"]);
    let mut relay = relay.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = relay.stdin.take().context("no stdin")?;
    let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"build_log"}}"#;
    std::io::Write::write_all(&mut input, &[call.as_slice(), b"\n"].concat())?;
    let mut answer = String::new();
    BufReader::new(relay.stdout.take().context("no stdout")?).read_line(&mut answer)?;
    drop(input);
    ensure!(relay.wait()?.success());
    let answer: Value = serde_json::from_str(&answer)?;
    let text = answer["result"]["content"][0]["text"].as_str().context("no text")?;
    let line = text.lines().find_map(|line| line.strip_prefix("- to read on: ")).context("no hint")?;
    ensure!(line.contains("--output-dir"), "{line}");
    let shown = Command::new("/bin/sh").args(["-c", line]).env("HOME", home.0.path()).output()?;
    ensure!(shown.status.success() && String::from_utf8(shown.stdout)?.lines().count() == 200, "{line}");
    Ok(())
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() -> Result<()> {
    let home = Home::new()?;
    let id = home.id("table")?;
    for args in [
        vec!["show", &id],
        vec!["search", &id, "."],
        vec!["query", &id, ".rows[]"],
        vec!["show", &id, "--raw"],
    ] {
        let mut command = home.command(&[&["saved"], args.as_slice()].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut stdout = child.stdout.take().context("no stdout")?;
        stdout.read_exact(&mut [0; 1])?;
        drop(stdout);
        let output = child.wait_with_output()?;
        ensure!(output.status.code() == Some(0) && output.stderr.is_empty(), "{args:?}: {output:?}");
    }
    Ok(())
}
