//! Programs of the interpreter: every kernel over real byte memory.
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::kernels::run_kernel;
use super::memory::Memory;
use crate::Program;

/// Runs a program on the bytes of its inputs and returns those of its outputs. Places, donated inputs and arena offsets are honoured: buffers that share
/// memory really do, and fresh memory holds rubbish. A kernel that overwrites what it or a kernel of the same launch still reads is an error.
///
/// # Errors
/// A plan or kernel that breaks the contract, an index out of range, a host function's error.
pub fn run_program(program: &Program, inputs: &[Vec<u8>], args: &[u64]) -> Result<Vec<Vec<u8>>, String> {
    if inputs.len() != program.inputs || args.len() != program.args {
        return Err(format!("the program takes {} inputs and {} scalars, not {} and {}", program.inputs, program.args, inputs.len(), args.len()));
    }
    let mut memory = Memory::new(program, inputs)?;
    for (n, launch) in program.launches.iter().enumerate() {
        memory.check_launch(launch).map_err(|e| format!("launch {n}: {e}"))?;
        for kernel in &launch.kernels {
            run_kernel(kernel, &mut memory, args).map_err(|e| format!("launch {n}, {} kernel: {e}", kernel.family()))?;
        }
    }
    Ok(memory.into_outputs())
}
