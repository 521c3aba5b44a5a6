//! Owns pictures on a terminal: the protocols of kitty and of iTerm2. Pure: it gives the bytes.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A larger picture goes to a file: terminals keep what they are given.
const MOST_BYTES: usize = 8 << 20;
/// The most base64 characters in one piece, as kitty's protocol has it.
const PIECE: usize = 4096;

/// How a terminal takes pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Graphics {
    /// <https://sw.kovidgoyal.net/kitty/graphics-protocol/>: PNG.
    Kitty,
    /// <https://iterm2.com/documentation-images.html>: what the system can read.
    Iterm,
}

impl Graphics {
    /// What the terminal that these variables describe takes. Multiplexers pass pictures on only when told to.
    pub(super) fn of(variable: &impl Fn(&str) -> Option<String>) -> Option<Self> {
        let is = |name: &str, value: &str| variable(name).is_some_and(|own| own == value);
        let multiplexed = variable("TMUX").is_some()
            || variable("TERM").is_some_and(|term| term.starts_with("screen") || term.starts_with("tmux"));
        if multiplexed {
            return None;
        }
        if is("TERM_PROGRAM", "iTerm.app") || is("TERM_PROGRAM", "WezTerm") {
            return Some(Self::Iterm);
        }
        let kitty = is("TERM", "xterm-kitty")
            || is("TERM", "xterm-ghostty")
            || is("TERM_PROGRAM", "ghostty")
            || variable("KITTY_WINDOW_ID").is_some();
        kitty.then_some(Self::Kitty)
    }

    /// The bytes that show this picture, if the terminal can. They are made from the decoded picture, so that nothing
    /// that a server wrote gets out of the sequence.
    pub(super) fn picture(self, picture: &[u8], mime: &str) -> Option<String> {
        let known = ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&mime);
        if picture.is_empty() || picture.len() > MOST_BYTES || !known {
            return None;
        }
        let encoded = STANDARD.encode(picture);
        match self {
            Self::Iterm => {
                let size = picture.len();
                Some(format!(
                    "\x1b]1337;File=inline=1;size={size};width=auto;height=auto;preserveAspectRatio=1:{encoded}\x07\n"
                ))
            }
            Self::Kitty if picture.starts_with(b"\x89PNG\r\n\x1a\n") => Some(kitty(&encoded)),
            Self::Kitty => None,
        }
    }
}

/// Transmit and display, in pieces; without answers, which would reach the shell as input.
fn kitty(encoded: &str) -> String {
    let pieces: Vec<&[u8]> = encoded.as_bytes().chunks(PIECE).collect();
    let mut out = String::with_capacity(encoded.len() + pieces.len() * 16);
    for (index, piece) in pieces.iter().enumerate() {
        let more = u8::from(index + 1 < pieces.len());
        let keys = if index == 0 { "a=T,f=100,q=2," } else { "" };
        let piece = std::str::from_utf8(piece).unwrap_or_default();
        write!(out, "\x1b_G{keys}m={more};{piece}\x1b\\").unwrap_or_default();
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Option<Graphics> {
        Graphics::of(&|name: &str| {
            let found = variables.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn terminals_are_known_by_their_variables() {
        assert_eq!(of(&[("TERM", "xterm-kitty")]), Some(Graphics::Kitty));
        assert_eq!(of(&[("TERM_PROGRAM", "ghostty")]), Some(Graphics::Kitty));
        assert_eq!(of(&[("TERM_PROGRAM", "iTerm.app")]), Some(Graphics::Iterm));
        assert_eq!(of(&[("TERM_PROGRAM", "WezTerm")]), Some(Graphics::Iterm));
        assert_eq!(of(&[("TERM", "xterm-256color")]), None);
        assert_eq!(of(&[("TERM", "tmux-256color"), ("KITTY_WINDOW_ID", "1")]), None);
        assert_eq!(of(&[("TMUX", "/tmp/x"), ("TERM_PROGRAM", "WezTerm")]), None);
    }

    #[test]
    fn a_picture_for_kitty_comes_in_pieces() {
        let picture = [b"\x89PNG\r\n\x1a\n".as_slice(), &[7; 5000]].concat();
        let shown = Graphics::Kitty.picture(&picture, "image/png").unwrap();
        let pieces: Vec<&str> = shown.trim_end().split("\x1b\\").filter(|piece| !piece.is_empty()).collect();
        assert_eq!(pieces.len(), 2);
        assert!(pieces[0].starts_with("\x1b_Ga=T,f=100,q=2,m=1;"), "{shown:?}");
        let data: String = pieces.iter().map(|piece| piece.split_once(';').unwrap().1).collect();
        assert_eq!(pieces[1].split_once(';').unwrap().0, "\x1b_Gm=0");
        assert_eq!(STANDARD.decode(data).unwrap(), picture);
    }

    #[test]
    fn what_a_terminal_cannot_show_is_refused() {
        assert_eq!(Graphics::Kitty.picture(b"\xff\xd8\xff", "image/jpeg"), None);
        assert!(Graphics::Iterm.picture(b"\xff\xd8\xff", "image/jpeg").is_some());
        assert_eq!(Graphics::Iterm.picture(b"<svg/>", "image/svg+xml"), None);
        assert_eq!(Graphics::Iterm.picture(&vec![0; MOST_BYTES + 1], "image/png"), None);
    }
}
