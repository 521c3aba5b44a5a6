//! Behaviour of the scrubber.

use std::time::{Duration, Instant};

use super::*;

#[test]
fn the_patterns_compile() {
    assert!(SHAPES.is_some() && TRIGGER.is_some());
    Redactor::with_patterns(&patterns::lines(&Profile::ALL)).unwrap();
}

fn gone(text: &str, secret: &str) {
    let scrubbed = Scrubber::new().scrub(text).into_owned();
    assert!(!scrubbed.contains(secret), "{text} -> {scrubbed}");
    assert!(scrubbed.contains(REDACTED), "{text} -> {scrubbed}");
}

#[test]
fn endpoints_of_both_profiles_go_in_every_spelling() {
    let token = "3f2b8c1e-9d4a-4f6b-8a7c-0123456789ab";
    for profile in Profile::ALL {
        let segment = profile.path_segment;
        let path = format!("/{segment}/{token}/mcp");
        for text in [
            format!("http://127.0.0.1:4312{path}"),
            format!("see http://localhost:1{path}?x=1 there"),
            format!("127.0.0.1:4312{path}"),
            path.clone(),
            format!("POST {path} HTTP/1.1"),
            format!("{segment}/{token}"),
            format!("\"url\":\"http:\\/\\/127.0.0.1:4312\\/{segment}\\/{token}\\/mcp\""),
            format!("u=http%3A%2F%2F127.0.0.1%3A4312%2F{segment}%2F{token}%2Fmcp"),
            format!("u=http%253A%252F%252F127.0.0.1%252F{segment}%252F{token}%252Fmcp"),
            format!("\"http:\\u002F\\u002F127.0.0.1:4312\\u002F{segment}\\u002F{token}\\u002Fmcp\""),
            format!("http://127.0.0.1:4312//{segment}//{token}/mcp"),
            format!("&#x2F;{segment}&#x2F;{token}&#x2F;mcp"),
        ] {
            gone(&text, token);
            gone(&text, "3f2b8c1e");
        }
        let shown = Scrubber::new().scrub(&format!("at http://127.0.0.1:4312{path}, then")).into_owned();
        assert_eq!(shown, "at [redacted], then");
    }
}

#[test]
fn values_of_key_like_names_go_in_every_form() {
    let (secret, letters) = ("abCD1234efGH", "abcdEFGHijkl");
    for text in [
        format!("Authorization: Bearer {secret}"),
        format!("authorization: Basic {secret}"),
        format!("Authorization: Digest username=\"{secret}\", response=\"{secret}\""),
        format!("X-Api-Key: {secret}"),
        format!("Mcp-Session-Id: {secret}"),
        format!("Proxy-Authorization: {secret}"),
        format!("{{\"api_key\":\"{secret}\"}}"),
        format!("{{\"token\": \"{secret}\"}}"),
        format!("{{\\\"sessionId\\\":\\\"{secret}\\\"}}"),
        format!("{{'session_id': '{secret}'}}"),
        format!("GITHUB_TOKEN={secret} make"),
        format!("export API_KEY='{secret}'"),
        format!("OPENAI_API_KEY=\"{secret}\""),
        format!("https://h/x?api_key={secret}&y=1"),
        format!("https://h/x?a=1&access_token={secret}"),
        format!("run --token {secret} --verbose"),
        format!("run --api-key={secret}"),
        format!("run --session-id '{secret}'"),
        format!("[\"run\",\"--auth-token\",\"{secret}\"]"),
        format!("token: {secret}"),
        format!("a: b\n  auth_token: {letters}\nc: d"),
        format!("Token: {letters}\r\nHost: h"),
        format!("{{\"Cookie\":[\"sid={secret}\"]}}"),
        format!("{{\"x-auth-token\": [\"{secret}\"]}}"),
        format!("PHPSESSID={secret}; a"),
        format!("curl -H 'x-api-key:{secret}'"),
        format!("Authorization=Bearer%20{secret}"),
        format!("session id: {secret}"),
        format!("password = {secret}"),
        format!("<token>{secret}</token>"),
        format!("<x:api_key type=\"a\">\n  {letters}\n</x:api_key>"),
        format!("{{\"name\":\"API_KEY\",\"value\":\"{letters}\"}}"),
        format!("{{\\\"name\\\": \\\"API_KEY\\\", \\\"value\\\": \\\"{secret}\\\"}}"),
        format!("token => {secret}"),
        format!("token -> {secret}"),
        format!("machine h.example login joe password {letters}"),
        format!("curl -sS -u joe:{letters} https://h/"),
        format!("curl --user 'joe:{secret}' https://h/"),
        format!("curl -b sid={letters} https://h/"),
        format!("https://joe:p@{secret}@h.example/x"),
        format!("u=https%3A%2F%2Fjoe%3A{letters}%40h.example%2Fx"),
        format!("Cookie: sid = {secret}"),
        format!("Set-Cookie: __Host-sid=\"{letters}\"; Secure"),
        format!("Cookie: sid={secret}; theme=dark"),
        format!("Set-Cookie: sid={secret}; Path=/"),
        format!("{{\"cookie\":\"sid={secret}\"}}"),
        format!("curl --cookie 'sid={secret}' https://h/"),
        format!("https://{secret}@example.com/x"),
        format!("https://joe:{secret}@example.com/x"),
        format!("git clone https://{secret}:x-oauth-basic@example.com/x"),
        format!("bearer%20{secret}"),
        format!("-----BEGIN PRIVATE KEY-----\n{}{secret}\nrest", "M".repeat(40)),
    ] {
        gone(&text, if text.contains(secret) { secret } else { letters });
        let once = Scrubber::new().scrub(&text).into_owned();
        assert_eq!(Scrubber::new().scrub(&once), once, "what was scrubbed stays as it is");
    }
}

#[test]
fn well_known_keys_go_without_a_name_beside_them() {
    for secret in [
        format!("ghp_{}", "a1B2".repeat(9)),
        format!("github_pat_{}", "a1B2".repeat(9)),
        format!("glpat-{}", "a1B2".repeat(6)),
        format!("npm_{}", "a1B2".repeat(9)),
        format!("pypi-{}", "a1B2".repeat(15)),
        format!("hf_{}", "a1B2".repeat(9)),
        "AKIAIOSFODNN7EXAMPLE".to_owned(),
        format!("xoxb-{}", "1".repeat(12)),
        format!("sk-ant-{}", "x".repeat(30)),
        format!("sk_live_{}", "x1".repeat(10)),
        format!("AIza{}", "x1Y".repeat(12)),
        format!("ya29.{}", "x1Y".repeat(12)),
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_1".to_owned(),
    ] {
        gone(&format!("a {secret} b"), &secret);
    }
}

#[test]
fn what_is_no_secret_stays_and_costs_no_copy() {
    for text in [
        "",
        "plain text with nothing in it",
        "fn token(&self) -> Token { self.next() }",
        "maxTokens: 4096, tokens: 12",
        "the token: it is a word",
        "https://example.com/a?b=c#d",
        "mail joe@example.com",
        "/etc/passwd",
        "let session = start();",
        "    token: String,\n    token: Vec<u8>,\n",
        "日本語のテキスト",
        "docker run -u 1000:1000 image",
        "<tokens>12</tokens> <key>a</key>",
        "https://h.example/a?to=joe@example.com",
        "PWD=/home/joe",
    ] {
        assert!(matches!(Scrubber::new().scrub(text), Cow::Borrowed(same) if same == text), "{text}");
    }
}

#[test]
fn given_texts_go_and_of_an_endpoint_its_token_alone() {
    let mut scrubber = Scrubber::new();
    scrubber.add(&Secret::new("key+with.odd*chars"));
    let url = Secret::new(format!(
        "http://127.0.0.1:4312/{}/0a1b2c3d-0000-4000-8000-123456789abc/mcp",
        Profile::HOST.path_segment
    ));
    scrubber.add(&url);
    scrubber.add(&Secret::new("abc"));
    assert_eq!(scrubber.scrub("a key+with.odd*chars b"), "a [redacted] b");
    assert_eq!(scrubber.scrub("run 0a1b2c3d-0000-4000-8000-123456789abc"), "run [redacted]");
    assert_eq!(scrubber.scrub("abc"), "abc");
    scrubber.forget(&url);
    assert!(scrubber.scrub("run 0a1b2c3d-0000-4000-8000-123456789abc").contains("0a1b"));
    assert!(!format!("{scrubber:?}").contains("odd"));
}

#[test]
fn a_long_text_is_scrubbed_to_its_end_in_a_time_that_grows_with_its_length() {
    let secret = "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6";
    let line = format!("日本 line with a token={secret} and é more words\n");
    let small = line.repeat((1 << 20) / line.len());
    let started = Instant::now();
    let scrubbed = Scrubber::new().scrub(&small).into_owned();
    let one = started.elapsed();
    assert!(!scrubbed.contains("ghp_"));
    assert_eq!(scrubbed.lines().count(), small.lines().count());
    let large = small.repeat(4);
    let started = Instant::now();
    assert!(!Scrubber::new().scrub(&large).contains("ghp_"));
    // Four times the text; a search that looks ahead at every find would take sixteen times as long.
    assert!(started.elapsed() < one * 10 + Duration::from_secs(1), "{one:?} {:?}", started.elapsed());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(proptest::prelude::ProptestConfig::default().cases / 4))]
    #[test]
    fn secrets_go_from_any_surroundings(before in "[ -~\\n]{0,40}", after in "[ -~\\n]{0,40}") {
        let token = "3f2b8c1e-9d4a-4f6b-8a7c-0123456789ab";
        let text = format!("{before} /{}/{token}/mcp {after}", Profile::PI.path_segment);
        let scrubbed = Scrubber::new().scrub(&text).into_owned();
        proptest::prop_assert!(!scrubbed.contains(token));
    }

    #[test]
    fn any_text_can_be_scrubbed(text in "\\PC{0,200}") {
        let _scrubbed = Scrubber::new().scrub(&text).into_owned();
    }
}
