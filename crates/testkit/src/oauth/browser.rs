//! A scripted browser: it follows redirects over plain HTTP, keeps cookies, fills forms and posts them, and ends where a
//! real one would leave its user.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use url::Url;

use super::http::{Ask, Reply};

/// Pages and redirects until it gives up.
const STEPS: usize = 30;

/// A browser and what its user types.
#[derive(Debug, Clone)]
pub struct Browser {
    fields: BTreeMap<String, String>,
    deliver: bool,
    submit: bool,
}

/// Where a visit ended.
#[derive(Debug, Clone)]
pub struct Visit {
    /// The URL of the last page, or of the redirect that was not delivered.
    pub ended_at: String,
    /// The status of the last page; 0 where none was loaded.
    pub status: u16,
    /// The last page's text.
    pub text: String,
    /// The redirect to the client's `redirect_uri`, if it came to that.
    pub redirect: Option<String>,
    /// All URLs that were loaded, forms included.
    pub loaded: Vec<String>,
}

impl Default for Browser {
    fn default() -> Self {
        let fields = [("login", "alice"), ("username", "alice"), ("email", "alice@example.com")];
        let fields = fields.into_iter().chain([("password", "open sesame")]);
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { fields, deliver: true, submit: true }
    }
}

impl Browser {
    /// Opens a URL as a user does who types a name and a password where they are wanted, agrees to everything, and
    /// whose browser reaches the client's redirect.
    pub fn open(url: &str) -> Result<Visit> {
        Self::default().visit(url)
    }

    /// One that does not load the redirect to the client: its user copies the URL ([`Visit::redirect`]).
    pub fn on_another_machine() -> Self {
        Self { deliver: false, ..Self::default() }
    }

    /// One whose user does not post forms.
    pub fn that_only_looks() -> Self {
        Self { submit: false, ..Self::default() }
    }

    /// The user types this into a field of that name.
    #[must_use]
    pub fn with_field(mut self, name: &str, value: &str) -> Self {
        self.fields.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Opens a URL.
    pub fn visit(&self, url: &str) -> Result<Visit> {
        let client = Url::parse(url).with_context(|| format!("{url} is no URL"))?;
        let client =
            client.query_pairs().find(|(name, _)| name == "redirect_uri").map(|(_, uri)| uri.into_owned());
        let client = client.and_then(|uri| Url::parse(&uri).ok());
        let mut cookies = Cookies::default();
        let mut visit = Visit {
            ended_at: url.to_owned(),
            status: 0,
            text: String::new(),
            redirect: None,
            loaded: Vec::new(),
        };
        let mut next = (url.to_owned(), None);
        for _ in 0..STEPS {
            let (url, form): (String, Option<Form>) = next;
            visit.ended_at.clone_from(&url);
            let here = Url::parse(&url).with_context(|| format!("{url} is no URL"))?;
            if client.as_ref().is_some_and(|client| leads_to(&here, client)) {
                visit.redirect = Some(url.clone());
                if !self.deliver {
                    return Ok(visit);
                }
            }
            if here.scheme() != "http" {
                "not loaded: this is no plain HTTP".clone_into(&mut visit.text);
                return Ok(visit);
            }
            let reply = load(&here, form.as_ref(), &cookies)?;
            visit.loaded.push(url.clone());
            cookies.take(&here, &reply);
            visit.status = reply.status;
            visit.text = reply.text();
            if let Some(location) = reply.header("location").filter(|_| (300..400).contains(&reply.status)) {
                next = (here.join(location)?.into(), None);
                continue;
            }
            let form = Form::first(&visit.text).filter(|_| self.submit && reply.status < 400);
            let Some(form) = form else {
                return Ok(visit);
            };
            let form = form.filled(&self.fields);
            next = (here.join(&form.action)?.into(), Some(form));
        }
        ensure!(false, "after {STEPS} pages and redirects there is no end: {:?}", visit.loaded);
        Ok(visit)
    }
}

/// Whether this is a redirect to the client.
fn leads_to(here: &Url, client: &Url) -> bool {
    let place = |url: &Url| (url.scheme().to_owned(), url.authority().to_owned(), url.path().to_owned());
    place(here) == place(client)
}

fn load(url: &Url, form: Option<&Form>, cookies: &Cookies) -> Result<Reply> {
    let ask = match form {
        Some(form) if form.post => {
            let pairs: Vec<_> =
                form.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            Ask::form(url.as_str(), &pairs)
        }
        Some(form) => {
            let mut url = url.clone();
            url.query_pairs_mut().clear().extend_pairs(&form.fields);
            Ask::get(url.as_str())
        }
        None => Ask::get(url.as_str()),
    };
    let ask = ask.header("Accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let sent = cookies.of(url);
    if sent.is_empty() { ask.send() } else { ask.header("Cookie", &sent).send() }
}

/// Cookies by host, path and name. As browsers have it, ports do not matter.
#[derive(Debug, Default)]
struct Cookies(BTreeMap<(String, String, String), String>);

impl Cookies {
    fn take(&mut self, url: &Url, reply: &Reply) {
        let host = url.host_str().unwrap_or_default().to_owned();
        for cookie in reply.headers_named("set-cookie") {
            let mut parts = cookie.split(';').map(str::trim);
            let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else {
                continue;
            };
            let mut path = "/".to_owned();
            let mut gone = value.is_empty();
            for part in parts {
                let (attribute, value) = part.split_once('=').unwrap_or((part, ""));
                match attribute.to_ascii_lowercase().as_str() {
                    "path" => value.clone_into(&mut path),
                    "max-age" => gone |= value.parse::<i64>().is_ok_and(|seconds| seconds <= 0),
                    "expires" => gone |= value.contains(" 1970 "),
                    _ => {}
                }
            }
            let key = (host.clone(), path, name.to_owned());
            if gone {
                self.0.remove(&key);
            } else {
                self.0.insert(key, value.to_owned());
            }
        }
    }

    fn of(&self, url: &Url) -> String {
        let fits = |(host, path, _): &(String, String, String)| {
            let below = url.path() == path
                || url
                    .path()
                    .strip_prefix(path.as_str())
                    .is_some_and(|rest| path.ends_with('/') || rest.starts_with('/'));
            url.host_str() == Some(host) && below
        };
        let cookies = self.0.iter().filter(|(key, _)| fits(key));
        cookies.map(|((_, _, name), value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
    }
}

/// A form of a page.
#[derive(Debug, PartialEq, Eq)]
struct Form {
    action: String,
    post: bool,
    fields: Vec<(String, String)>,
}

impl Form {
    /// The first form of a page.
    fn first(page: &str) -> Option<Self> {
        let (_, rest) = page.split_once("<form")?;
        let (tag, rest) = rest.split_once('>')?;
        let inside = rest.split_once("</form").map_or(rest, |(inside, _)| inside);
        let post = attribute(tag, "method").is_some_and(|method| method.eq_ignore_ascii_case("post"));
        let mut form =
            Self { action: attribute(tag, "action").unwrap_or_default(), post, fields: Vec::new() };
        let mut pressed = false;
        for piece in inside.split('<').skip(1) {
            let tag = piece.split_once('>').map_or(piece, |(tag, _)| tag);
            let is_button = tag.starts_with("button");
            if !is_button && !tag.starts_with("input") {
                continue;
            }
            let Some(name) = attribute(tag, "name").filter(|name| !name.is_empty()) else {
                continue;
            };
            let kind = attribute(tag, "type").unwrap_or_default();
            let unchecked = matches!(kind.as_str(), "checkbox" | "radio") && !tag.contains("checked");
            let presses = is_button || kind == "submit";
            // Only one button is pressed: the first.
            if unchecked || (presses && std::mem::replace(&mut pressed, true)) {
                continue;
            }
            form.fields.push((name, attribute(tag, "value").unwrap_or_default()));
        }
        Some(form)
    }

    /// The same with what the user types into its empty fields.
    fn filled(mut self, typed: &BTreeMap<String, String>) -> Self {
        for (name, value) in &mut self.fields {
            if value.is_empty() {
                *value = typed.get(name).cloned().unwrap_or_default();
            }
        }
        self
    }
}

/// An attribute of a tag, its entities resolved.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let mut rest = tag;
    loop {
        let (before, after) = rest.split_once(&format!("{name}="))?;
        if before.ends_with(|letter: char| letter.is_ascii_whitespace()) {
            let quote = after.chars().next().filter(|letter| ['"', '\''].contains(letter));
            let value = match quote {
                Some(quote) => after.split(quote).nth(1)?,
                None => after.split(|letter: char| letter.is_ascii_whitespace()).next()?,
            };
            return Some(resolved(value));
        }
        rest = after;
    }
}

fn resolved(text: &str) -> String {
    let entities = [
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&#x2F;", "/"),
        ("&#x3D;", "="),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ];
    entities.into_iter().fold(text.to_owned(), |text, (entity, letter)| text.replace(entity, letter))
}

#[cfg(test)]
mod tests;
