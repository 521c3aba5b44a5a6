//! Owns the search for the end of the plain part of a string: the innermost loop of the project.

/// The plain part at the start of some bytes of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plain {
    /// Bytes before the first quote or backslash.
    pub(super) length: usize,
    /// They are all below 0x80.
    pub(super) ascii: bool,
    /// One of them is below 0x20.
    pub(super) control: bool,
}

const STOP: u8 = 1;
const HIGH: u8 = 2;
const CONTROL: u8 = 4;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte {
            0x22 | 0x5C => STOP,
            0..=0x1F => CONTROL,
            0x80.. => HIGH,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

/// Looks at the first bytes one by one, for most strings are short, and at the rest as fast as the machine can.
#[inline]
pub(super) fn plain(rest: &[u8]) -> Plain {
    const NEAR: usize = 32;
    let mut seen = 0;
    for (length, &byte) in rest.iter().take(NEAR).enumerate() {
        let class = CLASSES[usize::from(byte)];
        if class == STOP {
            return Plain { length, ascii: seen & HIGH == 0, control: seen & CONTROL != 0 };
        }
        seen |= class;
    }
    let near = Plain { length: rest.len().min(NEAR), ascii: seen & HIGH == 0, control: seen & CONTROL != 0 };
    if rest.len() <= NEAR {
        return near;
    }
    let far = long(rest.get(NEAR..).unwrap_or_default());
    Plain { length: NEAR + far.length, ascii: near.ascii && far.ascii, control: near.control || far.control }
}

fn long(rest: &[u8]) -> Plain {
    let length = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
    let (mut high, mut control) = (0u8, false);
    for block in rest.get(..length).unwrap_or_default().chunks(64) {
        let (mut any, mut low) = (0u8, 0u8);
        for &byte in block {
            any |= byte;
            low |= u8::from(byte < 0x20);
        }
        high |= any;
        control |= low != 0;
    }
    Plain { length, ascii: high < 0x80, control }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simply(rest: &[u8]) -> Plain {
        let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(rest.len());
        let plain = &rest[..length];
        Plain { length, ascii: plain.is_ascii(), control: plain.iter().any(|byte| *byte < 0x20) }
    }

    proptest::proptest! {
        #[test]
        fn every_way_of_looking_agrees(
            bytes in proptest::collection::vec(proptest::prop_oneof![6 => 0x20u8..0x7F, 1 => proptest::prelude::any::<u8>()], 0..200)
        ) {
            proptest::prop_assert_eq!(plain(&bytes), simply(&bytes));
            proptest::prop_assert_eq!(long(&bytes), simply(&bytes));
        }
    }
}
