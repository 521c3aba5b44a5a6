//! The real `toolway quickstart`: what it shows is so, and nothing is left.
#![cfg(unix)]

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

const TOOLWAY: &str = env!("CARGO_BIN_EXE_toolway");

/// A run in a home of its own, with no terminal.
fn quickstart(home: &TempDir, variables: &[(&str, &str)], options: &[&str]) -> Result<(String, Option<i32>)> {
    let output = Command::new(TOOLWAY)
        .arg("quickstart")
        .args(options)
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()?;
    ensure!(
        output.stderr.is_empty() || !output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = [output.stdout, output.stderr].concat();
    Ok((String::from_utf8(text)?, output.status.code()))
}

/// What differs between runs: ids become ID, directories HOME and TOOLWAY.
fn filtered(text: &str, home: &TempDir) -> String {
    let text = text.replace(TOOLWAY, "TOOLWAY").replace(&*home.path().to_string_lossy(), "HOME");
    // The letters of ids: an id may be without a digit, and no word of the screen looks like one.
    let is_id =
        |word: &str| word.len() == 10 && word.chars().all(|c| "0123456789abcdefghjkmnpqrstvwxyz".contains(c));
    text.lines()
        .map(|line| {
            line.split(' ').map(|word| if is_id(word) { "ID" } else { word }).collect::<Vec<_>>().join(" ")
                + "\n"
        })
        .collect()
}

const TABLE: &str = "\
TOOL       WITHOUT TOOLWAY                    WITH TOOLWAY                SAVED AS
build_log  203,015 chars: too large           N chars                     ID
table      454,450 chars: too large           N chars                     ID
picture    113 chars, 7.0 kB of image         the same bytes
failing    30,977 chars, an error: too large  N chars, an error           ID
slow       108 chars, 5 progress              the same bytes, 5 progress
";

#[test]
fn one_screen_shows_both_ways_and_lines_out_of_the_middle() -> Result<()> {
    let home = TempDir::new()?;
    let (text, code) = quickstart(&home, &[], &[])?;
    ensure!(code == Some(0), "{code:?}: {text}");
    let shown = filtered(&text, &home);
    // The preview's size depends on the length of paths: it is checked apart.
    let mut table = String::new();
    for line in shown.lines().skip(3).take(6) {
        let mut cells: Vec<String> =
            line.split("  ").filter(|cell| !cell.is_empty()).map(|cell| cell.trim().to_owned()).collect();
        if let Some(cell) = cells.get_mut(2).filter(|cell| cell.contains(" chars")) {
            let (number, rest) = cell.split_once(' ').context("no number")?;
            let number: u64 = number.replace(',', "").parse()?;
            ensure!((500..=10_000).contains(&number), "{line}");
            *cell = format!("N {rest}");
        }
        table.push_str(&(cells.join("|") + "\n"));
    }
    let expected: String = TABLE
        .lines()
        .map(|line| {
            line.split("  ").filter(|cell| !cell.is_empty()).map(str::trim).collect::<Vec<_>>().join("|")
                + "\n"
        })
        .collect();
    ensure!(table == expected, "{table}\nis not\n{expected}\nin\n{text}");
    for part in [
        "[Toolway] This result was too large for this client: 203,015 characters, the limit is 10,000.",
        "All 3 saved results are byte for byte what the server sent",
        "TOOLWAY saved show ID --lines 1406-1408\n  |  1406 ",
        "  |  1407   52.059s ERROR module_9849: mismatched types: expected `u64`, found `&str`\n  |  1408 ",
        "{\"mcpServers\":{\"name\":{\"command\":\"TOOLWAY\",",
    ] {
        ensure!(shown.contains(part), "no {part:?} in\n{shown}");
    }
    ensure!(text.lines().count() <= 45, "more than a screen:\n{text}");
    ensure!(!text.contains('\u{1b}'), "colours without a terminal");
    Ok(())
}

#[test]
fn the_results_are_where_the_other_commands_find_them() -> Result<()> {
    let home = TempDir::new()?;
    quickstart(&home, &[], &[])?;
    let default = home.path().join(".cache/cursor-mcp-response-proxy");
    ensure!(fs::read_dir(default)?.count() > 3);
    let other = home.path().join("a b");
    let (text, code) = quickstart(&home, &[], &["--output-dir", &other.to_string_lossy()])?;
    ensure!(code == Some(0), "{text}");
    ensure!(text.contains(&format!("saved --output-dir '{}' list", other.display())), "{text}");
    ensure!(fs::read_dir(other)?.count() > 3);
    Ok(())
}

#[test]
fn settings_of_other_relays_do_not_change_the_demonstration() -> Result<()> {
    let home = TempDir::new()?;
    let variables =
        [("TOOLWAY_MAX_RESPONSE_CHARS", "900000"), ("CURSOR_MCP_RESPONSE_PROXY_PREVIEW_CHARS", "x")];
    let (text, code) = quickstart(&home, &variables, &[])?;
    ensure!(code == Some(0), "{text}");
    Ok(())
}

#[test]
fn a_directory_that_cannot_be_used_is_told() -> Result<()> {
    let home = TempDir::new()?;
    let file = home.path().join("file");
    fs::write(&file, "x")?;
    let (text, code) = quickstart(&home, &[], &["--output-dir", &file.to_string_lossy()])?;
    ensure!(code == Some(1), "{code:?} {text}");
    ensure!(text.contains("not a directory") && text.contains("hint: "), "{text}");
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_left_running() -> Result<()> {
    let home = TempDir::new()?;
    let mark = format!("quickstart-mark-{}", std::process::id());
    let (text, code) = quickstart(
        &home,
        &[("TOOLWAY_TEST_MARK", &mark)],
        &["--output-dir", &home.path().join(&mark).to_string_lossy()],
    )?;
    ensure!(code == Some(0), "{text}");
    for entry in fs::read_dir("/proc")?.flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        ensure!(!String::from_utf8_lossy(&line).contains(&mark), "left: {}", entry.path().display());
    }
    Ok(())
}
