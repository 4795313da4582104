//! The pickle machine: it builds values and calls nothing.
//!
//! The size of what it makes is linear in the size of the program: a repeated value is one more reference to the same place.

use std::collections::HashMap;

use super::value::{Heap, Ref, Value};
use super::{OpCode, PickleError};

/// A program's values, its result, and where the program ends.
pub(super) struct Program {
    pub(super) heap: Heap,
    pub(super) root: Ref,
    pub(super) end: usize,
}

/// Runs the program at the start of `bytes`.
pub(super) fn run(bytes: &[u8]) -> Result<Program, PickleError> {
    let mut machine = Machine { bytes, at: 0, heap: Heap::default(), stack: Vec::new(), marks: Vec::new(), memo: HashMap::new() };
    loop {
        let offset = machine.at;
        let byte = machine.byte()?;
        let opcode = OpCode::from_byte(byte).ok_or(PickleError::UnknownOpCode { byte, offset })?;
        if opcode == OpCode::Stop {
            let root = machine.stack.pop().ok_or(PickleError::Stack { opcode, offset })?;
            return Ok(Program { heap: machine.heap, root, end: machine.at });
        }
        machine.step(opcode)?.ok_or(PickleError::Stack { opcode, offset })?;
    }
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    heap: Heap,
    stack: Vec<Ref>,
    /// Heights of the stack.
    marks: Vec<usize>,
    memo: HashMap<u64, Ref>,
}

/// What an instruction comes to: `None` if the stack has not what it needs.
type Step = Result<Option<()>, PickleError>;

impl<'a> Machine<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], PickleError> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..len).ok_or(PickleError::UnexpectedEnd)?;
        self.at += len;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, PickleError> {
        Ok(self.take(1)?[0])
    }

    /// An unsigned number of `width` bytes, the lowest first.
    fn number(&mut self, width: usize) -> Result<u64, PickleError> {
        Ok(self.take(width)?.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// Bytes, their number before them in `width` bytes.
    fn counted(&mut self, width: usize) -> Result<&'a [u8], PickleError> {
        let len = usize::try_from(self.number(width)?).map_err(|_| PickleError::UnexpectedEnd)?;
        self.take(len)
    }

    /// Text up to the end of the line.
    fn line(&mut self) -> Result<&'a str, PickleError> {
        let rest = &self.bytes[self.at..];
        let len = rest.iter().position(|byte| *byte == b'\n').ok_or(PickleError::UnexpectedEnd)?;
        let line = std::str::from_utf8(self.take(len)?).map_err(|_| PickleError::Malformed("text"))?;
        self.at += 1;
        Ok(line)
    }

    fn push(&mut self, value: Value) -> Step {
        let value = self.heap.add(value)?;
        self.stack.push(value);
        Ok(Some(()))
    }

    fn push_text(&mut self, bytes: &[u8]) -> Step {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.push(Value::Text(text.into())),
            Err(_) => Err(PickleError::Malformed("text in UTF-8")),
        }
    }

    /// Bytes of Python 2, which are text more often than not.
    fn push_string(&mut self, bytes: &[u8]) -> Step {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.push(Value::Text(text.into())),
            Err(_) => self.push(Value::Bytes),
        }
    }

    /// An integer, its bytes from the lowest on, in two's complement.
    fn push_integer(&mut self, bytes: &[u8]) -> Step {
        if bytes.len() > 8 {
            return self.push(Value::BigInt);
        }
        let sign = if bytes.last().is_some_and(|last| *last >= 0x80) { u64::MAX } else { 0 };
        let value = bytes.iter().rev().fold(sign, |value, byte| value << 8 | u64::from(*byte));
        self.push(Value::Int(value as i64))
    }

    fn push_decimal(&mut self, text: &str) -> Step {
        match text.trim_end_matches('L').parse() {
            Ok(value) => self.push(Value::Int(value)),
            Err(error) if matches!(error.kind(), std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow) => {
                self.push(Value::BigInt)
            }
            Err(_) => Err(PickleError::Malformed("an integer")),
        }
    }

    /// The top of the stack, above the last mark.
    fn pop(&mut self) -> Option<Ref> {
        let floor = self.marks.last().copied().unwrap_or(0);
        (self.stack.len() > floor).then(|| self.stack.pop()).flatten()
    }

    fn top(&self) -> Option<Ref> {
        let floor = self.marks.last().copied().unwrap_or(0);
        self.stack[floor..].last().copied()
    }

    /// What lies above the last mark, which is taken away with it.
    fn pop_mark(&mut self) -> Option<Vec<Ref>> {
        let floor = self.marks.pop()?;
        Some(self.stack.split_off(floor))
    }

    fn push_tuple(&mut self, len: usize) -> Step {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len().checked_sub(len).filter(|start| *start >= floor) {
            Some(start) => {
                let items = self.stack.split_off(start);
                self.push(Value::List(items))
            }
            None => Ok(None),
        }
    }

    fn remember(&mut self, number: u64) -> Step {
        Ok(self.top().map(|top| {
            self.memo.insert(number, top);
        }))
    }

    fn recall(&mut self, number: u64) -> Step {
        let value = *self.memo.get(&number).ok_or(PickleError::Memo(number))?;
        self.stack.push(value);
        Ok(Some(()))
    }

    /// The value of calling `class`; ordered dictionaries are dictionaries.
    fn push_object(&mut self, class: Ref, args: Ref) -> Step {
        if self.heap.global(class) == Some("collections.OrderedDict") {
            let given = self.heap.list(args).and_then(|args| args.first()).and_then(|first| self.heap.list(*first));
            let pair = |item: &Ref| match self.heap.list(*item) {
                Some([key, value]) => Some((*key, *value)),
                _ => None,
            };
            let pairs = given.unwrap_or_default().iter().filter_map(pair).collect();
            return self.push(Value::Dict(pairs));
        }
        self.push(Value::Object { class, args, items: Vec::new(), pairs: Vec::new(), state: None })
    }

    fn extend(&mut self, added: Vec<Ref>) -> Option<()> {
        let target = self.top()?;
        match self.heap.get_mut(target) {
            Value::List(items) | Value::Object { items, .. } => items.extend(added),
            _ => return None,
        }
        Some(())
    }

    fn extend_dict(&mut self, added: &[Ref]) -> Option<()> {
        let target = self.top()?;
        if !added.len().is_multiple_of(2) {
            return None;
        }
        let added = added.chunks_exact(2).map(|pair| (pair[0], pair[1]));
        match self.heap.get_mut(target) {
            Value::Dict(pairs) | Value::Object { pairs, .. } => pairs.extend(added),
            _ => return None,
        }
        Some(())
    }

    fn build(&mut self) -> Option<()> {
        let given = self.pop()?;
        let target = self.top()?;
        match self.heap.get_mut(target) {
            Value::Object { state, .. } => *state = Some(given),
            // The attributes of a dictionary, such as PyTorch's `_metadata`.
            Value::Dict(_) | Value::List(_) => {}
            _ => return None,
        }
        Some(())
    }

    fn step(&mut self, opcode: OpCode) -> Step {
        match opcode {
            OpCode::Proto => self.take(1).map(|_| Some(())),
            OpCode::Frame => self.take(8).map(|_| Some(())),
            OpCode::Mark => {
                self.marks.push(self.stack.len());
                Ok(Some(()))
            }
            // A mark may be popped as a value may.
            OpCode::Pop => Ok(self.pop().map(drop).or_else(|| self.marks.pop().map(drop))),
            OpCode::PopMark => Ok(self.pop_mark().map(drop)),
            OpCode::Dup => Ok(self.top().map(|top| self.stack.push(top))),
            OpCode::None => self.push(Value::None),
            OpCode::NewTrue => self.push(Value::Bool(true)),
            OpCode::NewFalse => self.push(Value::Bool(false)),
            OpCode::BinInt => {
                let value = self.number(4)? as u32 as i32;
                self.push(Value::Int(value.into()))
            }
            OpCode::BinInt1 => {
                let value = self.number(1)? as i64;
                self.push(Value::Int(value))
            }
            OpCode::BinInt2 => {
                let value = self.number(2)? as i64;
                self.push(Value::Int(value))
            }
            OpCode::Int => match self.line()? {
                "00" => self.push(Value::Bool(false)),
                "01" => self.push(Value::Bool(true)),
                text => self.push_decimal(text),
            },
            OpCode::Long => {
                let text = self.line()?;
                self.push_decimal(text)
            }
            OpCode::Long1 => {
                let bytes = self.counted(1)?;
                self.push_integer(bytes)
            }
            OpCode::Long4 => {
                let bytes = self.counted(4)?;
                self.push_integer(bytes)
            }
            OpCode::Float => {
                let value = self.line()?.parse().map_err(|_| PickleError::Malformed("a float"))?;
                self.push(Value::Float(value))
            }
            OpCode::BinFloat => {
                let bits = self.number(8)?.swap_bytes();
                self.push(Value::Float(f64::from_bits(bits)))
            }
            OpCode::Unicode => {
                let line = self.line()?;
                self.push(Value::Text(line.into()))
            }
            OpCode::BinUnicode => {
                let bytes = self.counted(4)?;
                self.push_text(bytes)
            }
            OpCode::ShortBinUnicode => {
                let bytes = self.counted(1)?;
                self.push_text(bytes)
            }
            OpCode::BinUnicode8 => {
                let bytes = self.counted(8)?;
                self.push_text(bytes)
            }
            OpCode::String => {
                let line = self.line()?;
                let quoted = |quote: char| line.strip_prefix(quote).and_then(|line| line.strip_suffix(quote));
                let text = quoted('\'').or_else(|| quoted('"')).ok_or(PickleError::Malformed("a quoted text"))?;
                self.push(Value::Text(text.into()))
            }
            OpCode::BinString => {
                let bytes = self.counted(4)?;
                self.push_string(bytes)
            }
            OpCode::ShortBinString => {
                let bytes = self.counted(1)?;
                self.push_string(bytes)
            }
            OpCode::BinBytes => {
                self.counted(4)?;
                self.push(Value::Bytes)
            }
            OpCode::ShortBinBytes => {
                self.counted(1)?;
                self.push(Value::Bytes)
            }
            OpCode::BinBytes8 | OpCode::ByteArray8 => {
                self.counted(8)?;
                self.push(Value::Bytes)
            }
            OpCode::ReadonlyBuffer => Ok(self.top().map(drop)),
            OpCode::EmptyTuple | OpCode::EmptyList | OpCode::EmptySet => self.push(Value::List(Vec::new())),
            OpCode::EmptyDict => self.push(Value::Dict(Vec::new())),
            OpCode::Tuple1 => self.push_tuple(1),
            OpCode::Tuple2 => self.push_tuple(2),
            OpCode::Tuple3 => self.push_tuple(3),
            OpCode::Tuple | OpCode::List | OpCode::FrozenSet => match self.pop_mark() {
                Some(items) => self.push(Value::List(items)),
                None => Ok(None),
            },
            OpCode::Dict => match self.pop_mark() {
                Some(items) => {
                    self.push(Value::Dict(Vec::new()))?;
                    Ok(self.extend_dict(&items))
                }
                None => Ok(None),
            },
            OpCode::Append => Ok(self.pop().and_then(|item| self.extend(vec![item]))),
            OpCode::Appends | OpCode::AddItems => Ok(self.pop_mark().and_then(|items| self.extend(items))),
            OpCode::SetItem => {
                let (value, key) = (self.pop(), self.pop());
                Ok(key.zip(value).and_then(|(key, value)| self.extend_dict(&[key, value])))
            }
            OpCode::SetItems => Ok(self.pop_mark().and_then(|items| self.extend_dict(&items))),
            OpCode::Build => Ok(self.build()),
            OpCode::Global => {
                let (module, name) = (self.line()?, self.line()?);
                self.push(Value::Global(format!("{module}.{name}")))
            }
            OpCode::StackGlobal => {
                let (name, module) = (self.pop(), self.pop());
                let text = |at: Option<Ref>| at.and_then(|at| self.heap.text(at));
                match text(module).zip(text(name)).map(|(module, name)| format!("{module}.{name}")) {
                    Some(name) => self.push(Value::Global(name)),
                    None => Ok(None),
                }
            }
            OpCode::Reduce | OpCode::NewObj => {
                let (args, class) = (self.pop(), self.pop());
                match class.zip(args) {
                    Some((class, args)) => self.push_object(class, args),
                    None => Ok(None),
                }
            }
            OpCode::NewObjEx => {
                let (_, args, class) = (self.pop(), self.pop(), self.pop());
                match class.zip(args) {
                    Some((class, args)) => self.push_object(class, args),
                    None => Ok(None),
                }
            }
            OpCode::Inst => {
                let (module, name) = (self.line()?, self.line()?);
                let class = self.heap.add(Value::Global(format!("{module}.{name}")))?;
                match self.pop_mark() {
                    Some(items) => {
                        let args = self.heap.add(Value::List(items))?;
                        self.push_object(class, args)
                    }
                    None => Ok(None),
                }
            }
            OpCode::Obj => match self.pop_mark() {
                Some(items) if !items.is_empty() => {
                    let args = self.heap.add(Value::List(items[1..].to_vec()))?;
                    self.push_object(items[0], args)
                }
                _ => Ok(None),
            },
            OpCode::PersId => {
                let line = self.line()?;
                let name = self.heap.add(Value::Text(line.into()))?;
                self.push(Value::Persistent(name))
            }
            OpCode::BinPersId => match self.pop() {
                Some(id) => self.push(Value::Persistent(id)),
                None => Ok(None),
            },
            OpCode::Put => {
                let number = self.line()?.parse().map_err(|_| PickleError::Malformed("a number"))?;
                self.remember(number)
            }
            OpCode::BinPut => {
                let number = self.number(1)?;
                self.remember(number)
            }
            OpCode::LongBinPut => {
                let number = self.number(4)?;
                self.remember(number)
            }
            OpCode::Memoize => self.remember(self.memo.len() as u64),
            OpCode::Get => {
                let number = self.line()?.parse().map_err(|_| PickleError::Malformed("a number"))?;
                self.recall(number)
            }
            OpCode::BinGet => {
                let number = self.number(1)?;
                self.recall(number)
            }
            OpCode::LongBinGet => {
                let number = self.number(4)?;
                self.recall(number)
            }
            OpCode::Ext1 | OpCode::Ext2 | OpCode::Ext4 | OpCode::NextBuffer => Err(PickleError::Unsupported(opcode)),
            // The caller ends there.
            OpCode::Stop => Ok(Some(())),
        }
    }
}
