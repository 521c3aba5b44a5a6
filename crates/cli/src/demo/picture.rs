//! Owns a picture: a PNG (RFC 2083) made without a library, its pixels in stored blocks (RFC 1951).

const WIDTH: u16 = 48;
const HEIGHT: u16 = 48;

/// A square of colours.
pub(super) fn png() -> Vec<u8> {
    let mut pixels = Vec::new();
    for y in 0..HEIGHT {
        // Each row begins with its filter: none.
        pixels.push(0);
        for x in 0..WIDTH {
            let shade = |value: u16| u8::try_from(value * 5).unwrap_or(u8::MAX);
            pixels.extend([shade(x), shade(y), shade(WIDTH - x)]);
        }
    }
    let mut header = Vec::new();
    header.extend(u32::from(WIDTH).to_be_bytes());
    header.extend(u32::from(HEIGHT).to_be_bytes());
    // Eight bits, red green blue, deflate, no special filters, not interlaced.
    header.extend([8, 2, 0, 0, 0]);
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut out, *b"IHDR", &header);
    chunk(&mut out, *b"IDAT", &stored(&pixels));
    chunk(&mut out, *b"IEND", &[]);
    out
}

fn chunk(out: &mut Vec<u8>, name: [u8; 4], data: &[u8]) {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    out.extend(length.to_be_bytes());
    let named = [&name, data].concat();
    out.extend(&named);
    out.extend(crc32(&named).to_be_bytes());
}

/// RFC 1950 around stored blocks.
fn stored(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let mut blocks = data.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.push(u8::from(blocks.peek().is_none()));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    let (a, b) = data.iter().fold((1_u32, 0_u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    out.extend(((b << 16) | a).to_be_bytes());
    out
}

fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standards() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let wrapped = stored(b"Wikipedia");
        assert_eq!(wrapped[wrapped.len() - 4..], 0x11e6_0398_u32.to_be_bytes());
    }
}
