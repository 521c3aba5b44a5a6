//! Reading HTTP/1.1 requests off a connection (RFC 9112), for the fake server.

use std::io::{self, BufRead, BufReader, Read as _};
use std::net::TcpStream;

/// One request.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) verb: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Reads the next request; none when the client has closed.
    pub(crate) fn read(input: &mut BufReader<TcpStream>) -> io::Result<Option<Self>> {
        let Some(start) = line(input)? else {
            return Ok(None);
        };
        let mut words = start.split(' ');
        let mut request = Self {
            verb: words.next().unwrap_or_default().to_owned(),
            target: words.next().unwrap_or_default().to_owned(),
            ..Self::default()
        };
        while let Some(header) = line(input)? {
            if header.is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':') {
                let value = value.trim().to_owned();
                request.headers.push((name.to_ascii_lowercase(), value));
            }
        }
        if request.header("transfer-encoding").is_some() {
            request.read_chunks(input)?;
        } else if let Some(len) = request.header("content-length") {
            let len: u64 = len.parse().map_err(io::Error::other)?;
            input.by_ref().take(len).read_to_end(&mut request.body)?;
        }
        Ok(Some(request))
    }

    fn read_chunks(&mut self, input: &mut BufReader<TcpStream>) -> io::Result<()> {
        while let Some(size) = line(input)? {
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(size, 16).map_err(io::Error::other)?;
            input.by_ref().take(size).read_to_end(&mut self.body)?;
            line(input)?;
            if size == 0 {
                break;
            }
        }
        Ok(())
    }

    /// A header; `name` in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The target without its query, and the query.
    pub(crate) fn path(&self) -> (&str, &str) {
        self.target.split_once('?').unwrap_or((&self.target, ""))
    }
}

fn line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    if input.read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}
