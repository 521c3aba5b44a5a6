use super::*;

fn variable(name: &str) -> Piece {
    Piece::Variable { name: name.to_owned(), default: None }
}

fn literal(text: &str) -> Piece {
    Piece::Literal(text.to_owned())
}

#[test]
fn each_dialect_has_its_own_placeholders() {
    let env = || vec![variable("T")];
    let cases = [
        (Dialect::Cursor, "${env:T}", env()),
        (Dialect::Cursor, "${T}", env()),
        (Dialect::Cursor, "$T", vec![literal("$T")]),
        (Dialect::Cursor, "{env:T}", vec![literal("{env:T}")]),
        (Dialect::Cursor, "$${T}", vec![literal("${T}")]),
        (Dialect::Cursor, "${/}", vec![Piece::Known(Known::PathSeparator)]),
        (Dialect::Cursor, "${input:k}", vec![Piece::Input("k".to_owned())]),
        (Dialect::OpenCode, "{env:T}", env()),
        (Dialect::OpenCode, "{file:~/t}", vec![Piece::File("~/t".to_owned())]),
        (Dialect::Gemini, "$T/${T}", vec![variable("T"), literal("/"), variable("T")]),
        (Dialect::Gemini, "$5", vec![literal("$5")]),
        (Dialect::Pi, "$env:T", env()),
        (Dialect::Pi, "!pass show x", vec![Piece::Command("pass show x".to_owned())]),
        (Dialect::Pi, "!!x", vec![literal("!x")]),
        (Dialect::Continue, "${{ secrets.T }}", env()),
        (Dialect::Toolway, "${command:pass x}", vec![Piece::Command("pass x".to_owned())]),
        (Dialect::Toolway, "${keyring: db/pw }", vec![Piece::Keyring("db/pw".to_owned())]),
        (Dialect::Codex, "${keyring:x}", vec![literal("${keyring:x}")]),
        (Dialect::Plugin, "${CLAUDE_PLUGIN_ROOT}", vec![Piece::Known(Known::PluginRoot)]),
        (Dialect::Codex, "${env:T} $T", vec![literal("${env:T} $T")]),
        (Dialect::Inline, "${T}", vec![literal("${T}")]),
    ];
    for (dialect, text, expected) in cases {
        assert_eq!(parse(text, dialect, Field::Env), Ok(expected), "{dialect:?} {text}");
    }
}

#[test]
fn a_default_ends_at_the_first_brace_and_may_be_empty() {
    let with =
        |default: &str| vec![Piece::Variable { name: "A".to_owned(), default: Some(default.to_owned()) }];
    assert_eq!(parse("${A:-b:-c}", Dialect::Cursor, Field::Args), Ok(with("b:-c")));
    assert_eq!(parse("${env:A:-}", Dialect::Cursor, Field::Args), Ok(with("")));
}

#[test]
fn what_is_not_understood_is_refused_rather_than_sent() {
    for (dialect, text) in [
        (Dialect::Cursor, "${"),
        (Dialect::Cursor, "${T"),
        (Dialect::Cursor, "${}"),
        (Dialect::Cursor, "${config:x}"),
        (Dialect::Cursor, "${command:x}"),
        (Dialect::Cursor, "${keyring:x}"),
        (Dialect::Toolway, "${keyring:}"),
        (Dialect::Toolway, "${keyring: }"),
        (Dialect::ClaudeCode, "${input:x}"),
        (Dialect::VsCode, "${T}"),
        (Dialect::Continue, "${{ T }}"),
    ] {
        assert!(parse(text, dialect, Field::Env).is_err(), "{dialect:?} {text}");
    }
    let told = parse("${my secret is hunter2}", Dialect::Cursor, Field::Env).unwrap_err();
    assert_eq!(told.message, "the placeholder ${...} is not understood");
}

proptest::proptest! {
    #[test]
    fn any_text_is_taken_apart_or_refused(text in "[$!{}a-z:\\-/ é]{0,24}") {
        for dialect in [Dialect::Toolway, Dialect::OpenCode, Dialect::Gemini, Dialect::Pi, Dialect::Continue] {
            parse(&text, dialect, Field::Env).ok();
        }
        proptest::prop_assert_eq!(
            parse(&text, Dialect::Codex, Field::Env).unwrap(),
            joined(vec![Piece::Literal(text)])
        );
    }
}
