//! The parameters of a kernel under construction: which buffers it takes, under which names, and whether they may share memory.
use kiln_ir::{BufId, DType, OutputSpec, Place, Program};

use super::text::{PRELUDE, memory_type};
use crate::steps::{Param, Source};

/// Parameters in order, with their declarations.
pub struct Signature<'a> {
    program: &'a Program,
    params: Vec<Param>,
    written: Vec<BufId>,
    /// Buffers that are a variable of the kernel instead of a parameter.
    locals: Vec<(BufId, String)>,
    /// Whether element indices need 64 bits.
    pub wide: bool,
    /// Blocks of a cluster, where there is one.
    pub cluster: usize,
    /// Least blocks that a multiprocessor should hold, for the register allocator; 0 leaves it alone.
    pub resident: usize,
    /// What a kernel does before what ran earlier has finished: it must read only what no kernel of the program writes.
    pub early: String,
}

/// Where a buffer is: a region (inputs, then outputs, then the arena) and its bytes there.
fn region(program: &Program, buf: BufId) -> (usize, std::ops::Range<usize>) {
    let spec = program.buf(buf);
    let output = |mut o: usize| loop {
        match program.outputs[o] {
            OutputSpec::Donated(i) | OutputSpec::SameAs(i) => break i as usize,
            OutputSpec::SameAsOutput(earlier) => o = earlier as usize,
            OutputSpec::New(_) => break program.inputs + o,
        }
    };
    match spec.place {
        Place::Input(n) => (n as usize, 0..spec.bytes()),
        Place::Output(o) => (output(o as usize), 0..spec.bytes()),
        Place::Arena(at) => (usize::MAX, at..at + spec.bytes()),
        Place::Unused => (usize::MAX - 1, 0..0),
    }
}

/// Whether two buffers share memory.
pub fn overlap(program: &Program, a: BufId, b: BufId) -> bool {
    let ((ra, a), (rb, b)) = (region(program, a), region(program, b));
    ra == rb && a.start < b.end && b.start < a.end
}

impl<'a> Signature<'a> {
    /// No parameters yet.
    pub fn new(program: &'a Program) -> Self {
        Signature { program, params: Vec::new(), written: Vec::new(), locals: Vec::new(), wide: false, cluster: 1, resident: 0, early: String::new() }
    }

    /// Makes a buffer a variable of the kernel: what is read and written there goes through `name`, a pointer.
    pub fn local(&mut self, buf: BufId, name: &str) {
        self.locals.push((buf, name.into()));
    }

    fn buffer(&mut self, buf: BufId) -> String {
        match self.locals.iter().find(|l| l.0 == buf) {
            Some((_, name)) => name.clone(),
            None => self.param(Param::Buf(buf)),
        }
    }

    /// The program.
    pub fn program(&self) -> &'a Program {
        self.program
    }

    fn param(&mut self, param: Param) -> String {
        let known = self.params.iter().position(|p| *p == param);
        let n = known.unwrap_or_else(|| {
            self.params.push(param);
            self.params.len() - 1
        });
        format!("p{n}")
    }

    /// Name of the pointer to a buffer that is read.
    pub fn read(&mut self, buf: BufId) -> String {
        self.buffer(buf)
    }

    /// Name of the pointer to a buffer that is written.
    pub fn write(&mut self, buf: BufId) -> String {
        if !self.written.contains(&buf) {
            self.written.push(buf);
        }
        self.buffer(buf)
    }

    /// Name of the pointer to scratch memory at a byte offset, a `char*`.
    pub fn scratch(&mut self, offset: usize) -> String {
        self.param(Param::Scratch(offset))
    }

    /// Name of the pointer to the words of the run-time scalars.
    pub fn args(&mut self) -> String {
        self.param(Param::Args)
    }

    /// Name of the pointer to the fault word.
    pub fn fault(&mut self) -> String {
        self.param(Param::Fault)
    }

    /// Name of a number passed by value.
    pub fn number(&mut self, value: u64) -> String {
        self.params.push(Param::U64(value));
        format!("p{}", self.params.len() - 1)
    }

    /// The dtype of a buffer.
    pub fn dtype(&self, buf: BufId) -> DType {
        self.program.buf(buf).dtype
    }

    /// The type of element indices.
    pub fn index_type(&self) -> &'static str {
        if self.wide { "i64" } else { "int" }
    }

    /// The whole translation unit around a function body, and the parameters of its launch. `block` is the number of threads of a block, for the register
    /// allocator.
    pub fn finish(self, entry: &str, block: u32, body: &str) -> (Source, Vec<Param>) {
        let mut list = String::new();
        for (n, p) in self.params.iter().enumerate() {
            if n > 0 {
                list += ", ";
            }
            list += &match *p {
                Param::Buf(buf) => {
                    let written = self.written.contains(&buf);
                    let shares = |o: &BufId| *o != buf && overlap(self.program, *o, buf);
                    let reads = self.params.iter().filter_map(|p| if let Param::Buf(b) = p { Some(b) } else { None });
                    let alone = if written { !reads.into_iter().any(shares) } else { !self.written.iter().any(shares) };
                    let (constant, restrict) = (if written { "" } else { "const " }, if alone { " __restrict__" } else { "" });
                    format!("{constant}{}*{restrict} p{n}", memory_type(self.dtype(buf)))
                }
                Param::Args => format!("const u64* __restrict__ p{n}"),
                Param::Scratch(_) => format!("char* p{n}"),
                Param::Fault => format!("int* p{n}"),
                Param::U64(_) => format!("u64 p{n}"),
            };
        }
        let cluster = if self.cluster > 1 { format!("__cluster_dims__({}, 1, 1) ", self.cluster) } else { String::new() };
        let resident = if self.resident > 0 { format!(", {}", self.resident) } else { String::new() };
        let early = &self.early;
        let code = format!(
            "{PRELUDE}\nextern \"C\" __global__ void {cluster}__launch_bounds__({block}{resident}) {entry}({list}) {{\n{early}chain();\nconst unsigned bid = blockIdx.x;\n{body}}}\n"
        );
        (Source { entry: entry.into(), code }, self.params)
    }
}
