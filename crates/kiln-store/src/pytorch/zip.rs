//! The directory of a zip archive, as `torch.save` writes it: members are stored as they are, not compressed.

use std::collections::BTreeMap;
use std::ops::Range;

use super::PytorchErrorKind;

const LOCAL: [u8; 4] = *b"PK\x03\x04";
const CENTRAL: [u8; 4] = *b"PK\x01\x02";
const END: [u8; 4] = *b"PK\x05\x06";
const END_64: [u8; 4] = *b"PK\x06\x06";
const LOCATOR_64: [u8; 4] = *b"PK\x06\x07";
const END_LEN: usize = 22;
/// The tag of the extra field that holds sizes beyond four bytes.
const EXTRA_64: u64 = 1;
/// Stands for a number that is in the extra field.
const ELSEWHERE: u64 = 0xffff_ffff;
/// The most members that are read.
const MAX_MEMBERS: u64 = 1 << 20;

/// Whether a file starts as an archive.
pub(super) fn is_start(bytes: &[u8]) -> bool {
    bytes.starts_with(&LOCAL)
}

/// Where the members of an archive lie, by name.
pub(super) fn members(bytes: &[u8]) -> Result<BTreeMap<String, Range<usize>>, PytorchErrorKind> {
    directory(bytes).ok_or_else(|| PytorchErrorKind::Archive("its directory is cut off or points outside of the file".into()))?
}

/// A little-endian number of `width` bytes at `at`.
fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(width)?)?;
    Some(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn signed(bytes: &[u8], at: usize, signature: [u8; 4]) -> Option<()> {
    (bytes.get(at..at.checked_add(4)?)? == signature).then_some(())
}

/// `None` if a field lies outside of the file.
fn directory(bytes: &[u8]) -> Option<Result<BTreeMap<String, Range<usize>>, PytorchErrorKind>> {
    // A comment of up to 2^16 bytes may follow the end record.
    let first = bytes.len().saturating_sub(END_LEN + 0xffff);
    let end = (first..=bytes.len().checked_sub(END_LEN)?).rev().find(|at| bytes[*at..].starts_with(&END))?;
    let (mut count, mut at) = (number(bytes, end + 10, 2)?, number(bytes, end + 16, 4)?);
    if let Some(locator) = end.checked_sub(20).filter(|at| signed(bytes, *at, LOCATOR_64).is_some()) {
        let end = usize::try_from(number(bytes, locator + 8, 8)?).ok()?;
        signed(bytes, end, END_64)?;
        (count, at) = (number(bytes, end.checked_add(32)?, 8)?, number(bytes, end.checked_add(48)?, 8)?);
    }
    if count > MAX_MEMBERS {
        return Some(Err(PytorchErrorKind::Archive(format!("has {count} members, more than {MAX_MEMBERS}"))));
    }
    let mut at = usize::try_from(at).ok()?;
    let mut members = BTreeMap::new();
    for _ in 0..count {
        signed(bytes, at, CENTRAL)?;
        let field = |offset: usize, width: usize| number(bytes, at.checked_add(offset)?, width);
        let (method, name_len, extra_len, comment_len) = (field(10, 2)?, field(28, 2)? as usize, field(30, 2)? as usize, field(32, 2)? as usize);
        let (mut packed, mut size, mut start) = (field(20, 4)?, field(24, 4)?, field(42, 4)?);
        let name_at = at.checked_add(46)?;
        let name = std::str::from_utf8(bytes.get(name_at..name_at + name_len)?).ok()?.to_owned();
        let extra = bytes.get(name_at + name_len..name_at + name_len + extra_len)?;
        sizes_beyond(extra, &mut [&mut size, &mut packed, &mut start])?;
        if method != 0 || size != packed {
            return Some(Err(PytorchErrorKind::Archive(format!("member `{name}` is compressed, which torch.save never does"))));
        }
        let start = usize::try_from(start).ok()?;
        signed(bytes, start, LOCAL)?;
        let skip = number(bytes, start + 26, 2)? + number(bytes, start + 28, 2)?;
        let start = start.checked_add(30 + skip as usize)?;
        let range = start..start.checked_add(usize::try_from(size).ok()?)?;
        bytes.get(range.clone())?;
        members.insert(name, range);
        at = name_at + name_len + extra_len + comment_len;
    }
    Some(Ok(members))
}

/// Takes numbers that did not fit from the extra field, in order.
fn sizes_beyond(extra: &[u8], fields: &mut [&mut u64]) -> Option<()> {
    let mut at = 0;
    while at + 4 <= extra.len() {
        let (tag, len) = (number(extra, at, 2)?, number(extra, at + 2, 2)? as usize);
        let body = extra.get(at + 4..at + 4 + len)?;
        if tag == EXTRA_64 {
            let mut from = 0;
            for field in fields.iter_mut().filter(|field| ***field == ELSEWHERE) {
                **field = number(body, from, 8)?;
                from += 8;
            }
        }
        at += 4 + len;
    }
    Some(())
}
