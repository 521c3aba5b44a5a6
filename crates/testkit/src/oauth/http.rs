//! Answers of HTTP/1.1 as the issuer writes them, and the loopback client of browser and tests.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use url::Url;

/// The longest that the other side may take.
const DEADLINE: Duration = Duration::from_mins(1);

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Whole,
    /// The head only.
    Head,
    /// The head and half of the body.
    Cut,
    /// The head, and a body without an end.
    Endless,
}

/// An answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn empty(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub(super) fn json(status: u16, body: &Value) -> Self {
        let body = body.to_string().into_bytes();
        Self { status, body, ..Self::default() }.with("Content-Type", "application/json")
    }

    pub(super) fn html(status: u16, title: &str, body: &str) -> Self {
        let page =
            format!("<!DOCTYPE html><html><head><title>{title}</title></head><body>{body}</body></html>");
        Self { status, body: page.into_bytes(), ..Self::default() }
            .with("Content-Type", "text/html; charset=utf-8")
    }

    pub(super) fn redirect(status: u16, location: &str) -> Self {
        Self::empty(status).with("Location", location)
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes it, the clock so far ahead.
    pub(super) fn write(&self, mut connection: &TcpStream, skew_seconds: i64, way: Way) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {} Issued\r\nDate: {}\r\n", self.status, date(skew_seconds));
        for (name, value) in &self.headers {
            head.push_str(&[name, ": ", value, "\r\n"].concat());
        }
        if way == Way::Endless {
            head.push_str("Transfer-Encoding: chunked\r\n\r\n");
            connection.write_all(head.as_bytes())?;
            let chunk = [b"10000\r\n".as_slice(), &vec![b' '; 0x1_0000], b"\r\n"].concat();
            return (0..0x4000).try_for_each(|_| connection.write_all(&chunk));
        }
        if self.status != 204 {
            head.push_str(&["Content-Length: ", &self.body.len().to_string(), "\r\n"].concat());
        }
        let length = match way {
            Way::Head => 0,
            Way::Cut => self.body.len() / 2,
            _ => self.body.len(),
        };
        let body = self.body.get(..length).unwrap_or_default();
        connection.write_all(&[head.as_bytes(), b"\r\n", body].concat())
    }
}

/// Now, so many seconds ahead, as RFC 9110 (5.6.7) wants it.
fn date(skew_seconds: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let now = now.saturating_add_signed(skew_seconds);
    let (days, second) = (now / 86_400, now % 86_400);
    // The civil date of a day's number, by Howard Hinnant's algorithm: years begin in March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let name = |names: &str, place: u64| {
        names.split(' ').nth(usize::try_from(place).unwrap_or_default()).unwrap_or_default().to_owned()
    };
    format!(
        "{}, {day:02} {} {year} {:02}:{:02}:{:02} GMT",
        name("Thu Fri Sat Sun Mon Tue Wed", days % 7),
        name("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec", month - 1),
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// A request to a server over plain HTTP, for tests. Redirects are not followed.
#[derive(Debug, Clone)]
pub struct Ask {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// An answer to an [`Ask`].
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Ask {
    /// A `GET`.
    pub fn get(url: &str) -> Self {
        Self { method: "GET".to_owned(), url: url.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    /// A `POST` of a form.
    pub fn form(url: &str, parameters: &[(&str, &str)]) -> Self {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
        let ask = Self { method: "POST".to_owned(), body: body.into_bytes(), ..Self::get(url) };
        ask.header("Content-Type", "application/x-www-form-urlencoded")
    }

    /// A `POST` of JSON.
    pub fn json(url: &str, body: &Value) -> Self {
        let ask = Self { method: "POST".to_owned(), body: body.to_string().into_bytes(), ..Self::get(url) };
        ask.header("Content-Type", "application/json").header("Accept", "application/json, text/event-stream")
    }

    /// Another method.
    #[must_use]
    pub fn method(mut self, method: &str) -> Self {
        method.clone_into(&mut self.method);
        self
    }

    /// With this header too.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends it on a connection of its own, which is returned: the answer has not been read.
    pub fn begin(&self) -> Result<TcpStream> {
        let url = Url::parse(&self.url).with_context(|| format!("{} is no URL", self.url))?;
        ensure!(url.scheme() == "http", "{} is not plain HTTP", self.url);
        let address = url.socket_addrs(|| None)?;
        let address = address.first().context("the URL has no address")?;
        let connection = TcpStream::connect_timeout(address, DEADLINE)
            .with_context(|| format!("nothing answers at {}", self.url))?;
        connection.set_read_timeout(Some(DEADLINE))?;
        connection.set_write_timeout(Some(DEADLINE))?;
        let authority = url.authority();
        let target =
            url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let mut head =
            format!("{} {target} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n", self.method);
        for (name, value) in &self.headers {
            head.push_str(&[name, ": ", value, "\r\n"].concat());
        }
        head.push_str(&["Content-Length: ", &self.body.len().to_string(), "\r\n\r\n"].concat());
        (&connection).write_all(&[head.as_bytes(), &self.body].concat())?;
        Ok(connection)
    }

    /// Sends it and reads the answer.
    pub fn send(&self) -> Result<Reply> {
        Reply::read(&self.begin()?).with_context(|| format!("{} {}", self.method, self.url))
    }
}

impl Reply {
    /// Reads it: to its stated length, or to the end of the connection.
    pub fn read(mut connection: &TcpStream) -> Result<Self> {
        let (mut bytes, mut piece) = (Vec::new(), [0; 16 * 1024]);
        loop {
            if let Some(reply) = Self::parse(&bytes, false)? {
                return Ok(reply);
            }
            let count = connection.read(&mut piece)?;
            if count == 0 {
                return Self::parse(&bytes, true)?.context("the connection was closed before the answer");
            }
            bytes.extend_from_slice(piece.get(..count).unwrap_or_default());
        }
    }

    /// The answer, if it is whole.
    fn parse(bytes: &[u8], ended: bool) -> Result<Option<Self>> {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Ok(None);
        };
        let head = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).context("no status")?.parse()?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut reply = Self { status, headers, body: Vec::new() };
        let body = bytes.get(end + 4..).unwrap_or_default();
        if reply.header("transfer-encoding").is_some() {
            let Some(body) = unchunked(body)? else {
                ensure!(!ended, "the connection was closed in the middle of the answer");
                return Ok(None);
            };
            reply.body = body;
            return Ok(Some(reply));
        }
        let length = match reply.header("content-length") {
            Some(length) => length.parse::<usize>()?,
            None if status == 204 || status == 304 => 0,
            None if ended => body.len(),
            None => return Ok(None),
        };
        if body.len() < length {
            if ended {
                bail!("the connection was closed after {} bytes of {length}", body.len());
            }
            return Ok(None);
        }
        reply.body = body.get(..length).unwrap_or_default().to_vec();
        Ok(Some(reply))
    }

    /// A header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All headers of that name.
    pub fn headers_named(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(known, _)| known == name);
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).with_context(|| format!("no JSON: {}", self.text()))
    }
}

/// A body out of its chunks, if the last one is there.
fn unchunked(mut bytes: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    loop {
        let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else {
            return Ok(None);
        };
        let size = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned();
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16)?;
        let Some(chunk) = bytes.get(end + 2..end + 2 + size) else {
            return Ok(None);
        };
        if size == 0 {
            return Ok(Some(body));
        }
        body.extend_from_slice(chunk);
        bytes = bytes.get(end + 4 + size..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests;
