"""The names of the ops that the installed Triton registers in the dialects of Triton's IR, as JSON in the last line.

Candidates are the op-like strings in Triton's library and in the dialects' definitions; a name is an op where the parser knows it. Invalid
IR may end the process, so this is a script.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import triton
from triton._C import libtriton
from triton._C.libtriton import amd, ir, nvidia

from gluonize.judge.lower.stderr_log import captured_stderr

DEFINITIONS = {"tt": "Triton/IR/TritonOps.td", "ttg": "TritonGPU/IR/TritonGPUOps.td", "gluon": "Gluon/IR/GluonOps.td"}
DEFINITIONS |= {"ttng": "TritonNvidiaGPU/IR/TritonNvidiaGPUOps.td"}
SEARCHED = ("amdg", "arith", "math", "scf", "cf")


def candidates() -> set[str]:
    library, names = Path(libtriton.__file__).read_bytes(), set()
    for dialect in SEARCHED:  # a pattern with a fixed beginning is searched for fast
        names |= {name.decode() for name in re.findall(rb"%s\.[a-z][a-z_0-9.]*" % dialect.encode(), library)}
    for dialect, file in DEFINITIONS.items():
        text = (Path(triton.__file__).parent / "include/triton/Dialect" / file).read_text()
        names |= {f"{dialect}.{name}" for name in re.findall(r':\s*\w+<\s*"([a-z_0-9.]+)"', text)}
    return names


def is_registered(name: str, context, file: Path) -> bool:
    file.write_text(f'module {{ "{name}"() : () -> () }}\n')
    with captured_stderr() as printed:
        try:
            ir.parse_mlir_module(str(file), context)
        except RuntimeError:
            pass
        return "unregistered operation" not in printed()


def main() -> None:
    context = ir.context()
    ir.load_dialects(context)
    amd.load_dialects(context)
    nvidia.load_dialects(context)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "op.mlir"
        print(json.dumps(sorted(name for name in candidates() if is_registered(name, context, file))))


if __name__ == "__main__":
    main()
