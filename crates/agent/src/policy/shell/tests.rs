//! Tests of command lines: what they run, and that no spelling of it hides from a denial.

use super::{Denial, Script, allows, denies};
use crate::policy::token::{ShellPattern, Token};

fn pattern(rule: &str) -> ShellPattern {
    match Token::parse(rule).unwrap() {
        Token::Shell(pattern) => pattern,
        other => panic!("{other:?}"),
    }
}

fn commands(text: &str) -> Vec<String> {
    let script = Script::of(text);
    assert_eq!(script.unclear, None, "{text}");
    script.commands.iter().map(super::Command::shown).collect()
}

fn is_allowed(rules: &[&str], text: &str) -> bool {
    let script = Script::of(text);
    let rules: Vec<ShellPattern> = rules.iter().map(|rule| pattern(rule)).collect();
    script.unclear.is_none()
        && !script.commands.is_empty()
        && script.commands.iter().all(|command| rules.iter().any(|rule| allows(rule, command)))
}

#[test]
fn every_command_of_a_line_is_found() {
    for (text, found) in [
        ("ls -la", vec!["ls -la"]),
        ("a && b || c; d & e | f |& g\nh", vec!["a", "b", "c", "d", "e", "f", "g", "h"]),
        ("(a; b) && { c; }", vec!["a", "b", "c"]),
        ("if a; then b; else c; fi", vec!["a", "b", "c"]),
        ("for x in 1 2 rm; do echo $x; done", vec!["echo …"]),
        ("while a; do b; done < in > out", vec!["a", "b"]),
        ("echo \"$(rm x)\" `date`", vec!["rm x", "date", "echo … …"]),
        ("echo $(echo $(rm x))", vec!["rm x", "echo …", "echo …"]),
        ("echo ${x:-$(rm y)}", vec!["rm y", "echo …"]),
        ("diff <(a b) >(c)", vec!["a b", "c", "diff  "]),
        ("echo a # rm x\nls", vec!["echo a", "ls"]),
        ("echo a#b '# c' \\# d", vec!["echo a#b # c # d"]),
        ("echo 'a && b; rm' \"c | d\"", vec!["echo a && b; rm c | d"]),
        ("ls \\\n  -l", vec!["ls -l"]),
        ("f() { rm x; }", vec!["f", "rm x"]),
        ("cat <<EOF\nrm x\n$(date)\nEOF\nls", vec!["cat", "date", "ls"]),
        ("cat <<'EOF'\n$(rm x)\nEOF\nls", vec!["cat", "ls"]),
        ("cat <<-E\n\tx\n\tE\nls", vec!["cat", "ls"]),
        ("git log 2>&1 >/dev/null", vec!["git log"]),
        ("a 2>e >>o <i", vec!["a"]),
        ("A=1 b", vec!["b"]),
        ("", vec![]),
    ] {
        assert_eq!(commands(text), found, "{text}");
    }
}

#[test]
fn redirections_are_files_that_are_written_and_read() {
    let script = Script::of("a >o 2>>e <i &>both >|forced 2>&1 <>rw >&2 <<<text >&file");
    let texts = |words: &[super::Word]| words.iter().map(|word| word.text.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&script.writes), ["o", "e", "both", "forced", "rw", "file"]);
    assert_eq!(texts(&script.reads), ["i"]);
}

#[test]
fn no_spelling_gets_round_a_denial() {
    let rule = pattern("Shell(rm)");
    for text in [
        "rm x",
        "/bin/rm x",
        "../../bin/rm x",
        "\\rm x",
        "'rm' x",
        "r'm' x",
        "\"r\"m x",
        "r\\\nm x",
        "$'rm' x",
        "$'\\x72m' x",
        "$'\\162m' x",
        "$\"rm\" x",
        "RM x",
        "rm.exe x",
        "true && rm x",
        "true; rm x",
        "true | rm x",
        "true & rm x",
        "true\nrm x",
        "true ||rm x",
        "(rm x)",
        "{ rm x; }",
        "! rm x",
        "if true; then rm x; fi",
        "for i in 1; do rm x; done",
        "echo $(rm x)",
        "echo \"$(rm x)\"",
        "echo \"`rm x`\"",
        "echo `echo \\`rm x\\``",
        "echo ${y:-$(rm x)}",
        "cat <(rm x)",
        "cat <<EOF\n$(rm x)\nEOF",
        "cat <<EOF\nx\nEOF\nrm x",
        "A=1 rm x",
        "A=$(rm x)",
        ">o rm x",
        "2>/dev/null rm x",
        "sudo rm x",
        "sudo -u root rm x",
        "env -i A=1 rm x",
        "env -S 'rm x'",
        "nohup nice -n 5 rm x",
        "timeout 5 rm x",
        "time -p rm x",
        "command rm x",
        "exec rm x",
        "builtin command rm x",
        "xargs rm < list",
        "ls | xargs -I{} rm {}",
        "find . -name x -exec rm {} \\;",
        "find . -execdir /bin/rm {} +",
        "sh -c 'rm x'",
        "bash -lc 'true; rm x'",
        "bash -c -- 'rm x'",
        "sudo bash -c \"rm x\"",
        "bash -c \"bash -c 'rm x'\"",
        "eval rm x",
        "eval 'rm' 'x'",
        "trap 'rm x' EXIT",
        "alias y='rm x'",
        "busybox rm x",
        "function f { rm x; }; f",
        "f() { rm x; }; f",
        "watch 'rm x'",
        "su root -c 'rm x'",
        "coproc rm x",
        "[[ -e x ]] && rm x",
        "echo '' ''#; rm x",
        "=rm x",
    ] {
        let script = Script::of(text);
        assert!(matches!(denies(&rule, &script), Denial::Yes(_)), "{text}: {script:?}");
    }
}

#[test]
fn what_cannot_be_known_is_not_taken_for_harmless() {
    let rule = pattern("Shell(rm)");
    for text in [
        "$X y",
        "$(echo rm) y",
        "`echo rm` y",
        "r$X y",
        "/bin/r? y",
        "/bin/[r]m y",
        "{rm,-rf,y}",
        "r{m,x} y",
        "X=rm; $X y",
        "\"$X\" y",
        "${X} y",
        "bash -c \"$X\"",
        "echo rm y | sh",
        "sh <<EOF\nrm y\nEOF",
        "bash <<< 'rm y'",
        "bash < file",
        "eval \"$X\"",
        "env $X y",
        "case x in x) rm2;; esac",
        "echo $((1<<2))\nrm y\n2",
        "((x<<2))\nrm y\n2",
        "echo $[1<<2]\nrm y\n2",
        "echo 'rm y",
        "echo \"rm y",
        "echo $(rm2 y",
        "echo ${x@P}",
        "echo \"${x:-'}'}\"",
        "cat <<EOF\nEO\\\nF\nrm2\nEOF",
        "cat <<EOF $(\nrm2 y\n)\nEOF",
        "echo )",
        "~x/rm2 y",
    ] {
        let script = Script::of(text);
        assert!(!matches!(denies(&rule, &script), Denial::No), "{text}: {script:?}");
        assert!(!is_allowed(&["Shell(echo)", "Shell(cat)", "Shell(true)"], text), "{text}");
    }
}

#[test]
fn harmless_lines_are_not_denied() {
    let rule = pattern("Shell(rm)");
    for text in [
        "ls",
        "echo rm",
        "git commit -m 'rm x'",
        "echo 'a; rm x'",
        "echo \"a && rm x\"",
        "grep -r rm .",
        "cargo rm",
        "echo a # rm x",
        "cat <<'EOF'\n$(rm x)\nEOF",
        "for x in rm; do echo $x; done",
        "echo $HOME ${PATH} \"$(date)\"",
        "timeout 5 cargo test",
        "bash script.sh",
        "sh -c 'ls'",
        "git log --format='%h' | head -n 5 > out.txt",
    ] {
        let script = Script::of(text);
        assert_eq!(denies(&rule, &script), Denial::No, "{text}: {script:?}");
    }
}

#[test]
fn denials_of_a_commands_own_command_see_through_options() {
    let rule = pattern("Shell(git push)");
    for (text, expected) in [
        ("git push", true),
        ("git -C dir push --force", true),
        ("git --no-pager push", true),
        ("git -c a=b -C d push", true),
        ("git pull", false),
        ("git commit push", false),
    ] {
        assert_eq!(matches!(denies(&rule, &Script::of(text)), Denial::Yes(_)), expected, "{text}");
    }
    assert!(matches!(denies(&rule, &Script::of("git $X")), Denial::Perhaps(_)));
    let forced = pattern("Shell(git:*--force*)");
    assert!(matches!(denies(&forced, &Script::of("git push --force")), Denial::Yes(_)));
    assert_eq!(denies(&forced, &Script::of("git push")), Denial::No);
    assert!(matches!(denies(&forced, &Script::of("git push $X")), Denial::Perhaps(_)));
}

#[test]
fn every_part_must_be_allowed() {
    let rules = ["Shell(git)", "Shell(ls)", "Shell(cargo test)", "Shell(npm:run build*)", "Shell(echo:*)"];
    for (text, expected) in [
        ("git status", true),
        ("git status && ls", true),
        ("git log | ls", true),
        ("cargo test -p x", true),
        ("cargo", false),
        ("cargo build", false),
        ("npm run build:prod", true),
        ("npm run test", false),
        ("npm run build $X", false),
        ("git status && curl x", false),
        ("git status; curl x", false),
        ("git status | curl x", false),
        ("git status\ncurl x", false),
        ("git $(curl x)", false),
        ("git `curl x`", false),
        ("git <(curl x)", false),
        ("(git status; curl x)", false),
        ("ls & curl x", false),
        ("PATH=/tmp git status", false),
        ("GIT_SSH_COMMAND='curl x' git fetch", false),
        ("PATH=/tmp; git status", false),
        ("./git status", false),
        ("/tmp/git status", false),
        ("g$X status", false),
        ("cargo $X", false),
        ("git ${x:-$(curl y)}", false),
        ("echo $HOME", true),
        ("sudo git status", false),
        ("", false),
    ] {
        assert_eq!(is_allowed(&rules, text), expected, "{text}");
    }
}

#[test]
fn long_and_nested_texts_take_no_time() {
    let mut nested = "rm x".to_owned();
    for _ in 0..40 {
        nested = format!("sudo sudo sudo env {:?}", nested.chars().take(20_000).collect::<String>());
    }
    let texts = [
        nested,
        "$(".repeat(20_000),
        "${x:-".repeat(10_000),
        "`".repeat(60_001),
        "sudo ".repeat(12_000),
        "a;".repeat(30_000),
        "sudo 'a b' ".repeat(5_000),
        "x".repeat(100_000),
        "\"$(".repeat(10_000),
        "<<a ".repeat(10_000),
    ];
    for text in texts {
        let script = Script::of(&text);
        assert_ne!(denies(&pattern("Shell(rm)"), &script), Denial::No);
    }
}
