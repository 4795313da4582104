#!/usr/bin/env bash
# What a GPU machine runs: tests and benchmarks from binaries built elsewhere. That machine needs no Rust.
#
#   scripts/gpu.sh build [FOLDER]      here: builds and strips the binaries into FOLDER (.gpu)
#   scripts/gpu.sh run [FOLDER] [WHAT] there: WHAT is a list of tests, tensor, bench, peers, sanitizer (default: all but sanitizer)
#
# CUDA's libraries are looked for in PyTorch's packages too, and KILN_CUDA_LIBS adds folders.
set -uo pipefail
cd "$(dirname "$0")/.."
mode=${1:-run} folder=${2:-.gpu}
shift $(($# < 2 ? $# : 2))
what=${*:-tests tensor bench peers}

# Prints the path of the test binary of a package.
test_binary() {
    cargo test "$@" --no-run --message-format=json 2>/dev/null | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | grep '/main-' | tail -1
}

if [ "$mode" = build ]; then
    mkdir -p "$folder"
    cargo build --release -p kiln-bench --no-default-features --features cuda || exit 1
    cp target/release/kiln-bench "$folder/kiln-bench"
    cp "$(test_binary -p kiln-cuda --test main)" "$folder/cuda-tests"
    if [ -z "${KILN_GPU_SMALL:-}" ]; then
        cp "$(test_binary -p kiln-tensor --features cuda --test main)" "$folder/tensor-tests"
    fi
    strip "$folder"/*-tests "$folder/kiln-bench"
    pwd >"$folder/root"
    ls -l "$folder"
    exit
fi

packages=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null || true)
for lib in "$packages"/*/lib; do
    [ -d "$lib" ] && export KILN_CUDA_LIBS="$lib${KILN_CUDA_LIBS:+:$KILN_CUDA_LIBS}"
done
export LD_LIBRARY_PATH="${KILN_CUDA_LIBS:-}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" KILN_CACHE=${KILN_CACHE:-/tmp/kiln-cache}
chmod +x "$folder"/* 2>/dev/null
# Tests read their data where they were built: a link there leads here.
built=$(cat "$folder/root" 2>/dev/null)
[ -n "$built" ] && [ ! -e "$built" ] && mkdir -p "$(dirname "$built")" && ln -s "$PWD" "$built"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
failed=""
section() {
    local name=$1
    shift
    echo "==> $name"
    local start=$SECONDS
    "$@" || failed="$failed $name"
    echo "    $((SECONDS - start)) s"
}
for part in $what; do
    case $part in
    tests) section "kiln-cuda tests" "$folder/cuda-tests" ;;
    tensor) section "kiln-tensor tests" "$folder/tensor-tests" ;;
    bench) section "benchmarks" "$folder/kiln-bench" ${KILN_BENCH:-} ;;
    peers) [ -e "$folder/gpu_torch_bench.py" ] && section "PyTorch" python3 "$folder/gpu_torch_bench.py" ${KILN_PEERS:-} ;;
    sanitizer) section "compute-sanitizer" compute-sanitizer --tool memcheck "$folder/cuda-tests" fused indexing ;;
    *) echo "unknown part $part" && exit 2 ;;
    esac
done
[ -z "$failed" ] && echo "all parts passed" || { echo "failed:$failed"; exit 1; }
