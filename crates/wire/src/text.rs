//! Owns text inside JSON strings: counting characters as a compact printer would, and decoding escapes to UTF-8.
//! Knows nothing of messages.

use crate::lex::Run;

/// Counts the characters that a string takes in compact JSON with non-ASCII characters left as they are:
/// one a Unicode scalar value, two for `\n` `\"` `\\` and their like, six for other control characters and lone
/// surrogates, one for each byte that is not UTF-8. The count does not depend on how the string was cut.
#[derive(Debug, Default, Clone)]
pub struct CharCounter {
    chars: u64,
    tail: [u8; 4],
    tail_len: u8,
    high_surrogate: bool,
}

impl CharCounter {
    /// The characters of a whole string without escapes.
    #[inline]
    pub fn whole(run: Run<'_>) -> u64 {
        if run.ascii && !run.control {
            return run.bytes.len() as u64;
        }
        let mut counter = Self::default();
        counter.run(run);
        counter.take()
    }

    /// Adds a piece without escapes.
    #[inline]
    pub fn run(&mut self, run: Run<'_>) {
        if self.high_surrogate {
            self.high_surrogate = false;
            self.chars += 6;
        }
        if run.ascii && self.tail_len == 0 {
            self.chars += run.bytes.len() as u64;
        } else {
            self.utf8(run.bytes);
        }
        if run.control {
            self.chars +=
                run.bytes.iter().map(|byte| control_cost(u16::from(*byte)).saturating_sub(1)).sum::<u64>();
        }
    }

    /// Adds an escape.
    #[inline]
    pub fn escape(&mut self, unit: u16) {
        self.flush_tail();
        match unit {
            0xD800..=0xDBFF => {
                self.chars += if self.high_surrogate { 6 } else { 0 };
                self.high_surrogate = true;
            }
            0xDC00..=0xDFFF => {
                self.chars += if self.high_surrogate { 1 } else { 6 };
                self.high_surrogate = false;
            }
            _ => {
                self.chars += if self.high_surrogate { 6 } else { 0 };
                self.high_surrogate = false;
                self.chars += match unit {
                    0x22 | 0x5C => 2,
                    _ => control_cost(unit),
                };
            }
        }
    }

    /// The string has ended: its characters, without the quotes. The counter is empty again.
    #[inline]
    pub fn take(&mut self) -> u64 {
        self.flush_tail();
        if self.high_surrogate {
            self.high_surrogate = false;
            self.chars += 6;
        }
        std::mem::take(&mut self.chars)
    }

    fn flush_tail(&mut self) {
        self.chars += u64::from(self.tail_len);
        self.tail_len = 0;
    }

    fn utf8(&mut self, mut bytes: &[u8]) {
        while self.tail_len > 0 {
            let Some((&next, rest)) = bytes.split_first() else { return };
            let length = usize::from(self.tail_len);
            self.tail[length] = next;
            match std::str::from_utf8(&self.tail[..=length]) {
                Ok(_) => {
                    self.chars += 1;
                    self.tail_len = 0;
                    bytes = rest;
                }
                Err(error) if error.error_len().is_none() => {
                    self.tail_len += 1;
                    bytes = rest;
                }
                Err(_) => self.flush_tail(),
            }
        }
        loop {
            match std::str::from_utf8(bytes) {
                Ok(text) => {
                    self.chars += count(text.as_bytes());
                    return;
                }
                Err(error) => {
                    let (valid, rest) = bytes.split_at(error.valid_up_to());
                    self.chars += count(valid);
                    if let Some(invalid) = error.error_len() {
                        self.chars += invalid as u64;
                        bytes = rest.get(invalid..).unwrap_or_default();
                    } else {
                        self.tail[..rest.len()].copy_from_slice(rest);
                        self.tail_len = u8::try_from(rest.len()).unwrap_or(0);
                        return;
                    }
                }
            }
        }
    }
}

fn control_cost(unit: u16) -> u64 {
    match unit {
        8 | 9 | 10 | 12 | 13 => 2,
        0..=0x1F => 6,
        _ => 1,
    }
}

/// Scalar values in valid UTF-8.
fn count(valid: &[u8]) -> u64 {
    valid
        .chunks(128)
        .map(|block| block.iter().map(|byte| u8::from(byte & 0xC0 != 0x80)).fold(0u8, u8::wrapping_add))
        .map(u64::from)
        .sum()
}

/// Decodes the pieces of a JSON string into UTF-8 text. Lone surrogates become U+FFFD; bytes that are not UTF-8
/// are passed on as they are.
#[derive(Debug, Default, Clone, Copy)]
pub struct TextDecoder {
    high_surrogate: Option<u16>,
}

impl TextDecoder {
    /// Appends a piece without escapes.
    pub fn run(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.flush(out);
        out.extend_from_slice(bytes);
    }

    /// Appends an escape.
    pub fn escape(&mut self, unit: u16, out: &mut Vec<u8>) {
        match (self.high_surrogate.take(), unit) {
            (Some(high), 0xDC00..=0xDFFF) => {
                let scalar = 0x1_0000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(unit) - 0xDC00);
                push(char::from_u32(scalar), out);
            }
            (high, unit) => {
                if high.is_some() {
                    push(None, out);
                }
                match unit {
                    0xD800..=0xDBFF => self.high_surrogate = Some(unit),
                    _ => push(char::from_u32(u32::from(unit)), out),
                }
            }
        }
    }

    /// The string has ended.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.flush(out);
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        if self.high_surrogate.take().is_some() {
            push(None, out);
        }
    }
}

fn push(scalar: Option<char>, out: &mut Vec<u8>) {
    let mut buffer = [0; 4];
    out.extend_from_slice(scalar.unwrap_or('\u{FFFD}').encode_utf8(&mut buffer).as_bytes());
}
