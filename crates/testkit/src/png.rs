//! A valid PNG of a wanted size, so that image blocks in tests are real images.

/// A grey PNG (uncompressed, 256 pixels wide) of about `size` bytes: at least `size`, at most 400 bytes more.
pub fn png(size: usize) -> Vec<u8> {
    const WIDTH: usize = 256;
    let height = size.div_ceil(WIDTH + 1).max(1);
    // Each row begins with its filter type, 0.
    let mut pixels = vec![0; height * (WIDTH + 1)];
    let mut state = 0x2545_f491_u32;
    for row in pixels.chunks_mut(WIDTH + 1) {
        for pixel in row.iter_mut().skip(1) {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            *pixel = state.to_le_bytes()[0];
        }
    }
    let mut header = Vec::new();
    header.extend(be(WIDTH));
    header.extend(be(height));
    header.extend([8, 0, 0, 0, 0]);
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut out, *b"IHDR", &header);
    chunk(&mut out, *b"IDAT", &stored(&pixels));
    chunk(&mut out, *b"IEND", &[]);
    out
}

fn be(n: usize) -> [u8; 4] {
    u32::try_from(n).unwrap_or(u32::MAX).to_be_bytes()
}

fn chunk(out: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    out.extend(be(data.len()));
    let start = out.len();
    out.extend(kind);
    out.extend(data);
    let sum = crc32(out.get(start..).unwrap_or_default());
    out.extend(sum.to_be_bytes());
}

/// RFC 1950 around RFC 1951 stored blocks.
fn stored(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let mut blocks = data.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let len = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.push(u8::from(blocks.peek().is_none()));
        out.extend(len.to_le_bytes());
        out.extend((!len).to_le_bytes());
        out.extend(block);
    }
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in data {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    out.extend(((b << 16) | a).to_be_bytes());
    out
}

fn crc32(data: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in data {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_standard_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn size_is_as_asked_and_chunks_add_up() {
        for size in [1, 1_000, 60_000, 200_000] {
            let image = png(size);
            assert!(image.len() >= size && image.len() <= size + 400);
            let mut at = 8;
            let mut kinds = Vec::new();
            while at < image.len() {
                let len = u32::from_be_bytes(image[at..at + 4].try_into().unwrap()) as usize;
                kinds.push(image[at + 4..at + 8].to_vec());
                at += 12 + len;
            }
            assert_eq!(at, image.len());
            assert_eq!(kinds, [b"IHDR", b"IDAT", b"IEND"]);
        }
    }
}
