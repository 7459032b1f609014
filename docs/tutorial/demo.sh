#!/usr/bin/env bash
# The main job on two kernels: translate, compile, compare with Triton's own compile, validate. No GPU is used.
#
#   demo.sh [TARGET [FOLDER]]
#
# `gluonize` must be on the path; `make demo` sees to that.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${1:-gfx950}
out=${2:-.demo}
mkdir -p "$out"

step() {
    printf '\n\033[1m$ %s\033[0m\n' "$*"
    "$@"
}

demonstrate() { # FIXTURE KERNEL
    local source=fixtures/$1/kernel.py launches=fixtures/$1/launches.json translated=$out/$1_$target.py
    step gluonize translate "$source" -t "$target" -l "$launches" -o "$translated"
    step gluonize compile "$translated" -k "$2" -t "$target" -l "$launches" --emit "$out/$1_$target"
    step gluonize parity "$source" "$translated" -k "$2" -t "$target" -l "$launches"
    step gluonize validate "$source" "$translated" -k "$2" -t "$target" -l "$launches"
}

demonstrate softmax softmax_kernel
demonstrate matmul matmul_kernel

printf '\n\033[1mThe translated matmul: %s\033[0m\n\n' "$out/matmul_$target.py"
cat "$out/matmul_$target.py"
