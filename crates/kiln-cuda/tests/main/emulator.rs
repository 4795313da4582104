//! An emulated GPU: kernels' text compiled by the host's C++ compiler against a header that gives CUDA's words a meaning, and run on host memory.
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use kiln_cuda::convolution::{Convolution, Probe};
use kiln_cuda::lowered::{Lowered, Word, Work};
use kiln_cuda::steps::{Chip, Source, fault};
use kiln_ir::dims::numel;
use kiln_ir::interp::value::{read, write};
use kiln_ir::interp::{Elements, Scalar, Tensor, for_each_product, run_kernel};
use kiln_ir::kernel::ConvMode;
use kiln_ir::{BufId, OutputSpec, Place, Program};

const HEADER: &str = include_str!("emulator/cuda_on_host.h");

/// Whether the host has a C++ compiler for this machine's calling convention. Says once when it has not.
pub fn available() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let found = cfg!(all(target_arch = "x86_64", target_os = "linux")) && Command::new("g++").arg("--version").output().is_ok();
        if !found {
            println!("skipped: the emulated GPU needs g++ on x86-64 Linux");
        }
        found
    })
}

type Launch = unsafe extern "C" fn(*const u32, *const u32, *const u64);

/// The compiled text of a launch. Kept on disk under its hash.
fn library(source: &Source, params: usize) -> PathBuf {
    let call: Vec<String> = (0..params).map(|n| format!("parameters[{n}]")).collect();
    let words = vec!["uint64_t"; params].join(", ");
    let code = format!(
        "#define KILN_BF16 {}\n#include \"cuda_on_host.h\"\n{}\nstatic const uint64_t* parameters;\nstatic void call() {{ ((void (*)({words})){})({}); }}\n\
         extern \"C\" void kiln_launch(const unsigned* grid, const unsigned* block, const uint64_t* p) {{ parameters = p; run_grid(grid, block, call); }}\n",
        source.code.contains("\n#define BRAIN (1)") as u8,
        source.code,
        source.entry,
        call.join(", "),
    );
    let mut hasher = DefaultHasher::new();
    (HEADER, &code).hash(&mut hasher);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("emulated");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{}-{:016x}.so", source.entry, hasher.finish()));
    if path.exists() {
        return path;
    }
    let header = folder.join("cuda_on_host.h");
    if std::fs::read_to_string(&header).ok().as_deref() != Some(HEADER) {
        std::fs::write(&header, HEADER).unwrap();
    }
    std::fs::write(path.with_extension("cu"), &source.code).unwrap();
    // Other threads and processes may make the same library now.
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let unique = format!("{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    let text = path.with_extension(format!("{unique}.cpp"));
    std::fs::write(&text, code).unwrap();
    let made = path.with_extension(format!("{unique}.tmp"));
    let output = Command::new("g++")
        .args(["-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-fwrapv", "-fno-strict-aliasing", "-o"])
        .arg(&made)
        .arg(&text)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}\n{}", text.display(), String::from_utf8_lossy(&output.stderr));
    std::fs::remove_file(&text).unwrap();
    std::fs::rename(&made, &path).unwrap();
    path
}

/// The memory of one run: inputs, fresh outputs, arena.
struct Memory<'a> {
    program: &'a Program,
    regions: Vec<Vec<u64>>,
    outputs: Vec<usize>,
}

fn region(bytes: &[u8]) -> Vec<u64> {
    // Sixteen bytes more, and 64-bit words, so that vectors are aligned as on a device.
    let mut words = vec![0u64; bytes.len() / 8 + 34];
    let skip = aligned(&words);
    // SAFETY: the words have room for the skipped bytes and the copied ones.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), words.as_mut_ptr().cast::<u8>().add(skip), bytes.len()) };
    words
}

/// Bytes to the first address divisible by 256.
fn aligned(words: &[u64]) -> usize {
    words.as_ptr().align_offset(256 / 8) * 8
}

impl<'a> Memory<'a> {
    fn new(program: &'a Program, inputs: &[Vec<u8>]) -> Self {
        let mut regions: Vec<_> = inputs.iter().map(|b| region(b)).collect();
        let mut outputs: Vec<usize> = Vec::new();
        for spec in &program.outputs {
            outputs.push(match spec {
                OutputSpec::New(bytes) => {
                    regions.push(region(&vec![0xa5; *bytes]));
                    regions.len() - 1
                }
                OutputSpec::Donated(i) | OutputSpec::SameAs(i) => *i as usize,
                OutputSpec::SameAsOutput(o) => outputs[*o as usize],
            });
        }
        regions.push(region(&vec![0xa5; program.arena]));
        Memory { program, regions, outputs }
    }

    fn address(&self, buf: BufId) -> u64 {
        match self.program.buf(buf).place {
            Place::Input(n) => self.region(n as usize),
            Place::Output(n) => self.region(self.outputs[n as usize]),
            Place::Arena(offset) => self.arena(offset),
            Place::Unused => 0,
        }
    }

    fn region(&self, n: usize) -> u64 {
        let words = &self.regions[n];
        (words.as_ptr() as usize + aligned(words)) as u64
    }

    fn arena(&self, offset: usize) -> u64 {
        self.region(self.regions.len() - 1) + offset as u64
    }

    fn bytes(&self, buf: BufId) -> &[u8] {
        // SAFETY: the plan gives the buffer its bytes.
        unsafe { std::slice::from_raw_parts(self.address(buf) as *const u8, self.program.buf(buf).bytes()) }
    }

    fn bytes_mut(&mut self, buf: BufId) -> &mut [u8] {
        // SAFETY: as above; the memory is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.address(buf) as *mut u8, self.program.buf(buf).bytes()) }
    }
}

impl Elements for Memory<'_> {
    fn program(&self) -> &Program {
        self.program
    }
    fn load(&self, buf: BufId, i: isize) -> Result<Scalar, String> {
        Ok(read(self.program.buf(buf).dtype, self.bytes(buf), usize::try_from(i).map_err(|e| e.to_string())?))
    }
    fn store(&mut self, buf: BufId, i: isize, v: Scalar) -> Result<(), String> {
        let dtype = self.program.buf(buf).dtype;
        write(dtype, self.bytes_mut(buf), usize::try_from(i).map_err(|e| e.to_string())?, v);
        Ok(())
    }
}

/// A convolution as a library does it: products with the padding are left out.
fn convolve(c: &Convolution, memory: &mut Memory<'_>) -> Result<(), String> {
    let s = &c.shape;
    let (a, b, out) = match s.mode {
        ConvMode::Forward => (&s.x, &s.w, &s.y),
        ConvMode::InputGrad => (&s.y, &s.w, &s.x),
        ConvMode::WeightGrad => (&s.x, &s.y, &s.w),
    };
    // Where element `i` of a dense `[n, c, spatial...]` lies.
    let place = |dims: &[usize], i: usize| {
        let (n, rest) = (i / numel(&dims[1..]), i % numel(&dims[1..]));
        let (c, at) = (rest / numel(&dims[2..]), rest % numel(&dims[2..]));
        (if s.attrs.channels_last { (n * numel(&dims[2..]) + at) * dims[1] + c } else { i }) as isize
    };
    let mut sums = vec![0.0f64; numel(out)];
    let mut failed = Ok(());
    for_each_product(&s.attrs, &s.x, &s.w, &s.y, |x, w, y| {
        let Some(x) = x else { return };
        let (i, j, o) = match s.mode {
            ConvMode::Forward => (x, w, y),
            ConvMode::InputGrad => (y, w, x),
            ConvMode::WeightGrad => (x, y, w),
        };
        match (memory.load(c.a, place(a, i)), memory.load(c.b, place(b, j))) {
            (Ok(l), Ok(r)) => sums[o] += l.float() * r.float(),
            (Err(e), _) | (_, Err(e)) => failed = Err(e),
        }
    });
    failed?;
    sums.iter().enumerate().try_for_each(|(i, v)| memory.store(c.out, place(out, i), Scalar::Float(*v)))
}

/// Runs a program on the emulated GPU; kernels without a rendering are interpreted.
pub fn run(program: &Program, inputs: &[Tensor], args: &[u64], chip: &Chip) -> Result<Vec<Vec<u8>>, String> {
    run_with(program, inputs, args, chip, None)
}

/// The same beside a library of convolutions.
pub fn run_with(
    program: &Program,
    inputs: &[Tensor],
    args: &[u64],
    chip: &Chip,
    library_of_convolutions: Option<&mut Probe<'_>>,
) -> Result<Vec<Vec<u8>>, String> {
    static LIBRARIES: Mutex<Vec<(PathBuf, libloading::Library)>> = Mutex::new(Vec::new());
    let bytes: Vec<Vec<u8>> = inputs.iter().map(Tensor::to_bytes).collect();
    let lowered = Lowered::new(program, chip, false, library_of_convolutions).map_err(|e| e.to_string())?;
    let mut own = lowered.program.clone();
    own.arena = lowered.arena;
    let mut memory = Memory::new(&own, &bytes);
    let mut fault_words = [0i32; fault::WORDS];
    for work in lowered.works() {
        let (source, grid, block, shared, words) = match work {
            Work::Launch { source, grid, block, shared, params } => (source, grid, block, *shared, params),
            Work::Host(kernel) => {
                run_kernel(kernel, &mut memory, args)?;
                continue;
            }
            Work::Copy { from, to } => {
                if memory.address(*from) != memory.address(*to) {
                    let bytes = memory.bytes(*from).to_vec();
                    memory.bytes_mut(*to).copy_from_slice(&bytes);
                }
                continue;
            }
            Work::Convolution(c) => {
                convolve(c, &mut memory)?;
                continue;
            }
            Work::Product(_) => unreachable!("there is no library of products here"),
        };
        let params: Vec<u64> = (words.iter())
            .map(|w| match *w {
                Word::Buf(b) => memory.address(b),
                Word::Args => args.as_ptr() as u64,
                Word::Arena(offset) => memory.arena(offset),
                Word::Fault => fault_words.as_mut_ptr() as u64,
                Word::Number(v) => v,
            })
            .collect();
        assert!(shared as usize <= chip.shared_limit, "{}: {shared} bytes of shared memory", source.entry);
        let path = library(source, params.len());
        let mut libraries = LIBRARIES.lock().unwrap();
        if libraries.iter().all(|(p, _)| *p != path) {
            // SAFETY: the library was just made from a kernel's text and has no initialisers but its own.
            libraries.push((path.clone(), unsafe { libloading::Library::new(&path).unwrap() }));
        }
        let library = &libraries.iter().find(|(p, _)| *p == path).unwrap().1;
        // SAFETY: the symbol has this signature; the parameters are the addresses that the launch asks for.
        unsafe { library.get::<Launch>(b"kiln_launch\0").unwrap()(grid.as_ptr(), block.as_ptr(), params.as_ptr()) };
        drop(libraries);
        if let Some(message) = fault::message(&fault_words) {
            return Err(message);
        }
    }
    let outputs = memory.outputs.iter().zip(&program.outputs).zip(program_output_bytes(program, inputs));
    Ok(outputs
        .map(|((r, _), len)| {
            let words = &memory.regions[*r];
            // SAFETY: the region holds that many bytes.
            unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>().add(aligned(words)), len) }.to_vec()
        })
        .collect())
}

/// Bytes of each output.
fn program_output_bytes(program: &Program, inputs: &[Tensor]) -> Vec<usize> {
    let mut sizes: Vec<usize> = Vec::new();
    for spec in &program.outputs {
        sizes.push(match spec {
            OutputSpec::New(bytes) => *bytes,
            OutputSpec::Donated(i) | OutputSpec::SameAs(i) => inputs[*i as usize].len() * inputs[*i as usize].dtype.size(),
            OutputSpec::SameAsOutput(o) => sizes[*o as usize],
        });
    }
    sizes
}
