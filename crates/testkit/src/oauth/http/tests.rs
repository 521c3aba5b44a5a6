use super::*;

#[test]
fn a_date_is_written_as_the_standard_shows_it() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let at = |second: i64| date(second - i64::try_from(now).unwrap());
    // A second may pass between the two looks at the clock.
    let shown = |second: i64, text: &str| {
        let told = at(second);
        assert!(told == text || told == at(second), "{told} is not {text}");
        assert_eq!(told.rsplit_once(':').unwrap().0, text.rsplit_once(':').unwrap().0);
    };
    shown(784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT");
    shown(951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT");
    shown(1_798_761_599 - 30, "Thu, 31 Dec 2026 23:59:29 GMT");
}

#[test]
fn a_chunked_body_is_put_together() {
    let whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
    assert_eq!(Reply::parse(whole, false).unwrap().unwrap().body, b"abcde");
    assert!(Reply::parse(&whole[..50], false).unwrap().is_none());
    assert!(Reply::parse(&whole[..50], true).is_err());
}
