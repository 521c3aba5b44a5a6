//! Pages as people write them.

use expect_test::{Expect, expect};

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "so that calls read well")]
fn check(html: &str, expected: Expect) {
    let base = Url::parse("https://x.org/dir/page").unwrap();
    let Readable { title, text } = text(html, &base);
    let shown = if title.is_empty() { text } else { format!("({title})\n{text}") };
    expected.assert_eq(&shown);
}

#[test]
fn a_page_reads_like_a_text() {
    check(
        r#"<!DOCTYPE html><html><head><title> A &amp; B </title><style>p { color: "</p>" }</style>
        <script>if (1 < 2) document.write("<p>no</p>");</script></head>
        <body><!-- <p>no</p> --><nav><a href="/">Home</a></nav>
        <h1>Head<em>ing</em></h1><p>First   <b>bold</b>, then
        <a href="other?a=1&amp;b=2">a link</a>.</p><p>Second<br>line</p>
        <ul><li>one</li><li>two<ol><li>x<li>y</ol></li></ul><hr/>
        <pre><code>fn main() {
    x &lt; y
}
</code></pre><p>With <code>code</code>.</body></html>"#,
        expect![[r"
            (A & B)
            [Home](https://x.org/)

            # Heading

            First bold, then [a link](https://x.org/dir/other?a=1&b=2).

            Second
            line

            - one
            - two
              1. x
              2. y

            ---

            ```
            fn main() {
                x < y
            }
            ```

            With `code`."]],
    );
}

#[test]
fn tables_pictures_and_links_that_lead_nowhere() {
    check(
        r##"<table><tr><th>a<th>b</tr><tr><td>1</td><td>2</td></tr></table>
        <img src=x alt="a 'picture'"><img src=y><a href="#top">top</a> <a href="javascript:x()">run</a>
        <a href='m.html'><img alt=""></a><a title="x > y" href=z>z</a><a name=n>n</a>"##,
        expect![[r"
            a | b
            1 | 2

            [image: a 'picture']top run [z](https://x.org/dir/z)n"]],
    );
}

#[test]
fn what_is_broken_is_taken_as_far_as_it_goes() {
    check("a < b and c <d", expect!["a < b and c <d"]);
    check("x<p", expect!["x<p"]);
    check("<p>open <a href='x'>link", expect!["open [link](https://x.org/dir/x)"]);
    check("<script>never ends", expect![""]);
    check("<!-- never ends", expect![""]);
    check(
        "<pre>open",
        expect![[r"
        ```
        open
        ```"]],
    );
    check("</p></ul></pre></a>text</li>", expect!["text"]);
    check("<a href=\"x>y", expect!["<a href=\"x>y"]);
    check(
        "<SCRIPT>x</sCript >y<TITLE>t</TITLE>",
        expect![[r"
        (t)
        y"]],
    );
}

#[test]
fn a_large_page_takes_little_time() {
    let many = "<div><a href='x'>link</a><".repeat(50_000);
    let base = Url::parse("https://x.org/").unwrap();
    assert!(text(&many, &base).text.starts_with("[link](https://x.org/x)<"));
    text(&"<script>".repeat(20_000), &base);
    text(&"</".repeat(20_000), &base);
    text(&"<ul><li>".repeat(20_000), &base);
}

proptest::proptest! {
    #[test]
    fn nothing_that_comes_breaks_it(html in "[<>/a-c\"'= &;!\\-\u{e4}\n]{0,200}") {
        text(&html, &Url::parse("https://x.org/").unwrap());
    }
}
