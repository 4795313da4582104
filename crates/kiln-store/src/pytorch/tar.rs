//! The members of a tar archive, as the first versions of PyTorch wrote them.

use std::ops::Range;

const BLOCK: usize = 512;

/// Whether a file starts as such an archive.
pub(super) fn is_start(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

/// Where the member `name` lies.
pub(super) fn member(bytes: &[u8], name: &str) -> Option<Range<usize>> {
    let mut at = 0usize;
    loop {
        let header = bytes.get(at..at.checked_add(BLOCK)?)?;
        let mut size = header[124..136].iter().take_while(|byte| byte.is_ascii_digit());
        let size = size.try_fold(0usize, |size, digit| size.checked_mul(8)?.checked_add(usize::from(digit.checked_sub(b'0')?)))?;
        let start = at + BLOCK;
        let range = start..start.checked_add(size)?;
        let found = header[..100].split(|byte| *byte == 0).next().unwrap_or_default();
        if found.strip_prefix(b"./").unwrap_or(found) == name.as_bytes() {
            bytes.get(range.clone())?;
            return Some(range);
        }
        if header.iter().all(|byte| *byte == 0) {
            return None;
        }
        at = range.end.checked_next_multiple_of(BLOCK)?;
    }
}
