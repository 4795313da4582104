//! The instructions of Python's pickle machine, protocols 0 to 5.

macro_rules! opcodes {
    ($($(#[$doc:meta])* $name:ident = $byte:literal,)*) => {
        /// An instruction of the pickle machine.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum OpCode {
            $($(#[$doc])* $name = $byte,)*
        }

        impl OpCode {
            /// The instruction of a byte.
            pub fn from_byte(byte: u8) -> Option<Self> {
                match byte {
                    $($byte => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

opcodes! {
    /// Marks a place on the stack.
    Mark = b'(',
    /// Ends the program: the top of the stack is the result.
    Stop = b'.',
    /// Drops the top of the stack.
    Pop = b'0',
    /// Drops everything down to the last mark.
    PopMark = b'1',
    /// Pushes the top of the stack once more.
    Dup = b'2',
    /// A float, as text.
    Float = b'F',
    /// An integer or a truth value, as text.
    Int = b'I',
    /// An integer of four bytes.
    BinInt = b'J',
    /// An integer of one byte.
    BinInt1 = b'K',
    /// An integer, as text.
    Long = b'L',
    /// An integer of two bytes.
    BinInt2 = b'M',
    /// `None`.
    None = b'N',
    /// An object that is stored elsewhere, by a name in the program.
    PersId = b'P',
    /// An object that is stored elsewhere, by the value on the stack.
    BinPersId = b'Q',
    /// Calls what is on the stack with a tuple of arguments.
    Reduce = b'R',
    /// A quoted text.
    String = b'S',
    /// Bytes, their number in four bytes.
    BinString = b'T',
    /// Bytes, their number in one byte.
    ShortBinString = b'U',
    /// A text, up to the end of the line.
    Unicode = b'V',
    /// A text, its length in four bytes.
    BinUnicode = b'X',
    /// Adds the top of the stack to the list below it.
    Append = b'a',
    /// Gives the object below the top its state.
    Build = b'b',
    /// A class or function, by module and name.
    Global = b'c',
    /// A dictionary of what lies above the last mark.
    Dict = b'd',
    /// An empty dictionary.
    EmptyDict = b'}',
    /// Adds what lies above the last mark to the list below it.
    Appends = b'e',
    /// A remembered value, by a number as text.
    Get = b'g',
    /// A remembered value, by a number of one byte.
    BinGet = b'h',
    /// An object of a class named in the program.
    Inst = b'i',
    /// A remembered value, by a number of four bytes.
    LongBinGet = b'j',
    /// A list of what lies above the last mark.
    List = b'l',
    /// An empty list.
    EmptyList = b']',
    /// An object of the class above the last mark.
    Obj = b'o',
    /// Remembers the top of the stack, under a number as text.
    Put = b'p',
    /// Remembers the top of the stack, under a number of one byte.
    BinPut = b'q',
    /// Remembers the top of the stack, under a number of four bytes.
    LongBinPut = b'r',
    /// Adds a key and a value to the dictionary below them.
    SetItem = b's',
    /// A tuple of what lies above the last mark.
    Tuple = b't',
    /// An empty tuple.
    EmptyTuple = b')',
    /// Adds what lies above the last mark to the dictionary below it.
    SetItems = b'u',
    /// A float of eight bytes, the highest first.
    BinFloat = b'G',
    /// The version of the program.
    Proto = 0x80,
    /// An object of a class, with a tuple of arguments.
    NewObj = 0x81,
    /// A registered object, by a number of one byte.
    Ext1 = 0x82,
    /// A registered object, by a number of two bytes.
    Ext2 = 0x83,
    /// A registered object, by a number of four bytes.
    Ext4 = 0x84,
    /// A tuple of one.
    Tuple1 = 0x85,
    /// A tuple of two.
    Tuple2 = 0x86,
    /// A tuple of three.
    Tuple3 = 0x87,
    /// `True`.
    NewTrue = 0x88,
    /// `False`.
    NewFalse = 0x89,
    /// An integer, the number of its bytes in one byte.
    Long1 = 0x8a,
    /// An integer, the number of its bytes in four bytes.
    Long4 = 0x8b,
    /// Bytes, their number in four bytes.
    BinBytes = b'B',
    /// Bytes, their number in one byte.
    ShortBinBytes = b'C',
    /// A text, its length in one byte.
    ShortBinUnicode = 0x8c,
    /// A text, its length in eight bytes.
    BinUnicode8 = 0x8d,
    /// Bytes, their number in eight bytes.
    BinBytes8 = 0x8e,
    /// An empty set.
    EmptySet = 0x8f,
    /// Adds what lies above the last mark to the set below it.
    AddItems = 0x90,
    /// A set of what lies above the last mark.
    FrozenSet = 0x91,
    /// An object of a class, with arguments by place and by name.
    NewObjEx = 0x92,
    /// A class or function, by the module and name on the stack.
    StackGlobal = 0x93,
    /// Remembers the top of the stack, under the next number.
    Memoize = 0x94,
    /// How many bytes follow that belong together.
    Frame = 0x95,
    /// A byte array, its length in eight bytes.
    ByteArray8 = 0x96,
    /// A buffer that is not in the program.
    NextBuffer = 0x97,
    /// Makes the top of the stack read-only.
    ReadonlyBuffer = 0x98,
}
