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

translate() { # FIXTURE
    local translated=$out/$1_$target.py
    set -- gluonize translate "fixtures/$1/kernel.py" -t "$target" -l "fixtures/$1/launches.json" -o "$translated"
    printf '\033[1m$ %s\033[0m\n' "$*"
    "$@"
}

translate softmax
translate matmul

printf '\n\033[1mThe pipelined loop of %s\033[0m\n' "$out/matmul_$target.py"
# From the first `for` of the kernel to the end of its block.
awk '/^    for k in /{inside=1} inside && /^    [^ ]/ && !/^    for k in /{exit} inside' "$out/matmul_$target.py"
printf '\nNext, for the page to review it: gluonize report fixtures/matmul/kernel.py %s -t %s -l fixtures/matmul/launches.json\n' \
    "$out/matmul_$target.py" "$target"
