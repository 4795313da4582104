//! Text of the products of warpgroups (`wgmma`), whose operands are lists of registers: compute capability 9.0 only.
use std::fmt::Write;

/// A list of operands `%first`, `%first + 1`, ...
fn operands(first: usize, n: usize) -> String {
    (first..first + n).map(|k| format!("%{k}")).collect::<Vec<_>>().join(", ")
}

/// `multiply_shared(d, a, b, more)`: `d (+)= a . b^T` with both operands in shared memory, rows along the summed dimension, and
/// `multiply_registers(d, a, b)`: `d += a . b` with the left operand in registers and the right one in rows of the summed dimension, for the given numbers of columns.
pub(crate) fn products(element: &str, columns: &[usize]) -> String {
    let mut s = String::from(include_str!("cuda/warpgroup.cu"));
    s += "#ifndef KILN_EMULATED\n";
    for &n in columns {
        let d = n / 2;
        let sums = (0..d).map(|k| format!("\"+f\"(d[{k}])")).collect::<Vec<_>>().join(", ");
        let name = format!("wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{element}.{element}");
        let _ = writeln!(
            s,
            "__device__ __forceinline__ void multiply_shared(float (&d)[{d}], u64 a, u64 b, i32 more) {{\n\
             asm volatile(\"{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{}, 0;\\n{name} {{{}}}, %{}, %{}, p, 1, 1, 0, 0;\\n}}\\n\" : {sums} : \"l\"(a), \"l\"(b), \"r\"(more));\n}}",
            d + 2,
            operands(0, d),
            d,
            d + 1,
        );
        let _ = writeln!(
            s,
            "__device__ __forceinline__ void multiply_registers(float (&d)[{d}], const u32 (&a)[4], u64 b) {{\n\
             asm volatile(\"{name} {{{}}}, {{{}}}, %{}, 1, 1, 1, 1;\\n\" : {sums} : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b));\n}}",
            operands(0, d),
            operands(d, 4),
            d + 4,
        );
    }
    s += "#endif\n";
    s
}

/// `multiply_tiles<left, right>(d, a, b)`: `d += a . b` with both operands in shared memory, each in rows along the summed dimension (`true`) or across it.
pub(crate) fn tile_products(element: &str, columns: usize, left_along: bool, right_along: bool) -> String {
    let d = columns / 2;
    let sums = (0..d).map(|k| format!("\"+f\"(d[{k}])")).collect::<Vec<_>>().join(", ");
    let name = format!("wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{element}.{element}");
    format!(
        "{}#ifndef KILN_EMULATED\ntemplate <bool LEFT_ALONG, bool RIGHT_ALONG> __device__ __forceinline__ void multiply_tiles(float (&d)[{d}], u64 a, u64 b) {{\n\
         asm volatile(\"{name} {{{}}}, %{d}, %{}, 1, 1, 1, {}, {};\\n\" : {sums} : \"l\"(a), \"l\"(b));\n}}\n#endif\n",
        include_str!("cuda/warpgroup.cu"),
        operands(0, d),
        d + 1,
        !left_along as u8,
        !right_along as u8,
    )
}
