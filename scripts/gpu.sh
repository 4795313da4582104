#!/usr/bin/env bash
# What a GPU machine runs: tests, sanitizers, examples and benchmarks from binaries built elsewhere. That machine needs no Rust.
#
#   scripts/gpu.sh build [FOLDER]      here: builds and strips the binaries into FOLDER (.gpu); KILN_GPU_SMALL=1 leaves out the tensor suite and the examples
#   scripts/gpu.sh run [FOLDER] [PART ...] there: the parts in this order (default: tests tensor examples memcheck racecheck), then one summary
#
# Parts: tests (kiln-cuda: table tests against the interpreter, random graphs), tensor (kiln-tensor's suite with its fuzzers, on the GPU), examples (the three of them),
# memcheck and racecheck (compute-sanitizer over table tests), bench (kiln-bench; KILN_BENCH names workloads), peers (PyTorch, where gpu_torch_bench.py lies in FOLDER).
# Every part has a time limit; the default parts fit into nine minutes. CUDA's libraries are looked for in PyTorch's packages too, and KILN_CUDA_LIBS adds folders.
set -uo pipefail
cd "$(dirname "$0")/.."
mode=${1:-run} folder=${2:-.gpu}
shift $(($# < 2 ? $# : 2))
parts=${*:-tests tensor examples memcheck racecheck}

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
        cargo build --release -p kiln --features cuda --examples || exit 1
        for example in mnist regression char_gpt; do
            cp "target/release/examples/$example" "$folder/example-$example"
        done
    fi
    strip "$folder"/*-tests "$folder"/kiln-bench "$folder"/example-* 2>/dev/null
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
failed="" summary=""
# section NAME SECONDS COMMAND...: runs it within a time limit and keeps a line for the summary.
section() {
    local name=$1 limit=$2 log
    shift 2
    echo "==> $name"
    local start=$SECONDS
    log=$(mktemp)
    timeout "$limit" "$@" 2>&1 | tee "$log" | grep -v ' \.\.\. ok$'
    local code=${PIPESTATUS[0]} verdict=passed said
    [ "$code" = 124 ] && verdict="cut off after $limit s"
    [ "$code" != 0 ] && [ "$code" != 124 ] && verdict=FAILED
    [ "$code" = 0 ] || failed="$failed $name"
    said=$(grep -E '^test result|ERROR SUMMARY|RACECHECK SUMMARY|accuracy|loss' "$log" | tail -1 | cut -c1-110)
    summary="$summary$(printf '%-12s %-22s %4d s  %s' "$name" "$verdict" "$((SECONDS - start))" "$said")
"
    rm -f "$log"
}
# sanitize TOOL SECONDS TEST...: tests under a tool of compute-sanitizer.
sanitize() {
    local tool=$1 limit=$2
    shift 2
    # The allocation that a test makes fail on purpose is reported by the driver's interface, so errors of the interface don't count.
    section "$tool" "$limit" compute-sanitizer --tool "$tool" --report-api-errors no --error-exitcode 9 "$folder/cuda-tests" --test-threads 4 "$@"
}
for part in $parts; do
    case $part in
    # Whether sources compile for other architectures is checked where there is no GPU.
    tests) KILN_FUZZ=${KILN_FUZZ:-120} section tests 150 "$folder/cuda-tests" --skip compiles --skip families ;;
    tensor) section tensor 200 "$folder/tensor-tests" ;;
    examples)
        section regression 40 "$folder/example-regression"
        section mnist 60 "$folder/example-mnist"
        section char_gpt 60 "$folder/example-char_gpt"
        ;;
    memcheck) sanitize memcheck 100 fused:: scans:: pools:: decoding:: gpu::a_matrix ;;
    racecheck) sanitize racecheck 90 transposes dots_of decoding:: softmax every_reduction ;;
    bench) section bench 400 "$folder/kiln-bench" ${KILN_BENCH:-} ;;
    peers) [ -e "$folder/gpu_torch_bench.py" ] && section peers 200 python3 "$folder/gpu_torch_bench.py" ${KILN_PEERS:-} ;;
    *) echo "unknown part $part" && exit 2 ;;
    esac
done
echo "==> summary"
printf '%s' "$summary"
[ -z "$failed" ] && echo "all parts passed" || { echo "failed:$failed"; exit 1; }
