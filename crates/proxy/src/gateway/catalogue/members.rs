//! Owns editing one object of raw JSON: members replaced, added and taken out, all others byte for byte. Judges
//! nothing.

use bytes::Bytes;
use toolway_wire::find;
use toolway_wire::push_string;

/// One member.
#[derive(Debug, Clone)]
struct Member {
    name: String,
    raw_name: Bytes,
    value: Bytes,
}

/// The members of one object, in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Members {
    list: Vec<Member>,
    changed: bool,
}

impl Members {
    /// Takes an object apart; `raw` is valid JSON. `None`: it is no object.
    pub(super) fn of(raw: &Bytes) -> Option<Self> {
        let at = find::find(raw, &[])?;
        if raw.get(at.start) != Some(&b'{') {
            return None;
        }
        let list = find::members(raw, at).map(|member| Member {
            name: find::string(raw, member.name.clone()).unwrap_or_default(),
            raw_name: raw.slice(member.name),
            value: raw.slice(member.value),
        });
        Some(Self { list: list.collect(), changed: false })
    }

    /// The value of a member; the last one where a name stands twice.
    pub(super) fn get(&self, name: &str) -> Option<&Bytes> {
        self.list.iter().rfind(|member| member.name == name).map(|member| &member.value)
    }

    /// The name stands more than once, and readers differ in which one they take.
    pub(super) fn is_twice(&self, name: &str) -> bool {
        self.list.iter().filter(|member| member.name == name).count() > 1
    }

    /// Puts a value in the member's place, or adds it at the end.
    pub(super) fn set(&mut self, name: &str, value: impl Into<Bytes>) {
        let value = value.into();
        self.changed = true;
        match self.list.iter_mut().rfind(|member| member.name == name) {
            Some(member) => member.value = value,
            None => self.list.push(Member { name: name.to_owned(), raw_name: quoted(name), value }),
        }
    }

    /// Adds a member before all others; there is none of that name.
    pub(super) fn set_first(&mut self, name: &str, value: impl Into<Bytes>) {
        self.changed = true;
        let member = Member { name: name.to_owned(), raw_name: quoted(name), value: value.into() };
        self.list.insert(0, member);
    }

    /// Puts other values in the place of those for which `change` has one, in one pass.
    pub(super) fn change_each(&mut self, change: impl Fn(&Bytes) -> Option<Bytes>) {
        for member in &mut self.list {
            if let Some(value) = change(&member.value) {
                member.value = value;
                self.changed = true;
            }
        }
    }

    /// Takes a member out.
    pub(super) fn remove(&mut self, name: &str) -> Option<Bytes> {
        let at = self.list.iter().rposition(|member| member.name == name)?;
        self.changed = true;
        Some(self.list.remove(at).value)
    }

    /// Something was set or removed.
    pub(super) fn is_changed(&self) -> bool {
        self.changed
    }

    /// The object, on one line: line breaks, which can only stand between tokens, become spaces.
    pub(super) fn json(&self) -> Vec<u8> {
        let length: usize =
            self.list.iter().map(|member| member.raw_name.len() + member.value.len() + 2).sum();
        let mut out = Vec::with_capacity(length + 1);
        out.push(b'{');
        for (index, member) in self.list.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&member.raw_name);
            out.push(b':');
            out.extend_from_slice(&member.value);
        }
        out.push(b'}');
        for byte in &mut out {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        out
    }
}

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> Bytes {
    let mut out = Vec::with_capacity(text.len() + 2);
    push_string(text, &mut out);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_change_and_the_others_stay() {
        let raw = Bytes::from_static(b" { \"a\" : 1.0,\n \"n\\u0061me\":\"x\",\"b\":{ \"c\" :[1, 2]\n} }");
        let mut members = Members::of(&raw).unwrap();
        assert!(!members.is_changed());
        assert_eq!(members.get("name").unwrap(), "\"x\"");
        members.set("name", quoted("y\"z"));
        members.set("new", "true");
        members.set_first("first", "0");
        assert_eq!(members.remove("a").unwrap(), "1.0");
        assert_eq!(members.remove("a"), None);
        let json = String::from_utf8(members.json()).unwrap();
        assert_eq!(json, r#"{"first":0,"n\u0061me":"y\"z","b":{ "c" :[1, 2] },"new":true}"#);
        assert!(members.is_changed() && !members.is_twice("name"));
    }

    #[test]
    fn what_is_no_object_has_no_members() {
        for raw in ["[]", "1", "\"{}\"", "null"] {
            assert!(Members::of(&Bytes::from(raw)).is_none(), "{raw}");
        }
        assert!(Members::of(&Bytes::from(r#"{"a":1,"\u0061":2}"#)).unwrap().is_twice("a"));
    }
}
