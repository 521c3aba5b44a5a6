//! Behaviour of the limits.

use proptest::prelude::*;

use super::*;

#[test]
fn what_is_missing_is_said() {
    let scrubber = Scrubber::new();
    let text = (1..=5000).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
    let shown = block(&scrubber, &text, TRANSCRIPT);
    assert_eq!(shown.lines().count(), 800);
    assert_eq!(shown.lines().nth(798), Some("line 799"));
    let missing = text.len() - text.find("line 800\n").unwrap();
    assert_eq!(
        shown.lines().last(),
        Some(format!("[4201 more lines ({missing} more characters) not shown]").as_str())
    );
    assert_eq!(block(&scrubber, "a\nb\n", TRANSCRIPT), "a\nb");
    assert!(label(&scrubber, &"x".repeat(300), 240).chars().count() <= 240);
    assert!(label(&scrubber, &"x".repeat(300), 240).ends_with("… (+68)"));
    assert_eq!(list(&vec!["a".to_owned(); 205], 1000).lines().last(), Some("[800 more items not shown]"));
}

#[test]
fn a_huge_text_is_counted_and_not_worked_through() {
    let text = "é line\n".repeat(1 << 20);
    let shown = block(&Scrubber::new(), &text, READ_CARD);
    assert_eq!(shown.lines().count(), 20);
    assert_eq!(
        shown.lines().last(),
        Some(
            format!("[{} more lines ({} more characters) not shown]", (1 << 20) - 19, ((1 << 20) - 19) * 7)
                .as_str()
        )
    );
}

#[test]
fn one_endless_line_is_shown_in_part() {
    let shown = block(&Scrubber::new(), &"x".repeat(100_000), READ_CARD);
    assert_eq!(shown.lines().count(), 2);
    assert!(
        shown.ends_with("[1 more line (96080 more characters) not shown]"),
        "{}",
        shown.lines().last().unwrap()
    );
}

#[test]
fn a_secret_at_the_edge_does_not_leave_its_beginning() {
    let secret = "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6";
    for before in 3_900..4_000 {
        let text = format!("{} {secret} {}", "x".repeat(before), "y".repeat(9_000));
        assert!(!block(&Scrubber::new(), &text, READ_CARD).contains("ghp_a"), "{before}");
    }
}

#[test]
fn escape_sequences_go_whole() {
    assert_eq!(
        clean(
            "\u{1b}[1;31mred\u{1b}[0m \u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{1b}\\ a\u{8}\u{0}b\r\nc\rd\te\u{202e}f\u{9b}31m"
        ),
        "red link ab\nc\nd\tef"
    );
    assert_eq!(clean("\u{1b}(Bx\u{1b}7y\u{1b}"), "xy");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]
    #[test]
    fn nothing_exceeds_its_limit(text in "(\\PC|\\n|\\t|\u{1b}|\\r|[a-z \\n]{0,30}){0,200}", chars in 0usize..300, lines in 0usize..20) {
        let scrubber = Scrubber::new();
        let limit = Limit { chars, lines };
        let shown = block(&scrubber, &text, limit);
        prop_assert!(shown.chars().count() <= chars && shown.lines().count() <= lines);
        prop_assert!(shown.chars().all(|char| !char.is_control() || char == '\n' || char == '\t'));
        let line = label(&scrubber, &text, chars);
        prop_assert!(line.chars().count() <= chars);
        prop_assert!(!line.chars().any(char::is_control));
    }

    #[test]
    fn what_is_shown_and_what_is_missing_are_the_whole(text in "[a-zé \\n]{0,200}", chars in 0usize..250, lines in 0usize..20) {
        let scrubber = Scrubber::new();
        let cut = cut(&scrubber, &text, Limit { chars, lines });
        let text = text.trim_end_matches('\n');
        prop_assert!(text.starts_with(&cut.text));
        prop_assert_eq!(cut.lines + cut.missing_lines, text.lines().count());
    }
}
