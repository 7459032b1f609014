"""Run a script of the tests in a process of its own: some compiler faults and bad addresses end the process."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT_S = 120


class ChildFailed(Exception):
    """The script did not end with status 0; the message has its command and standard error."""


class _Warm:
    """One `warm_process.py` for this process of pytest; threads take turns."""

    def __init__(self) -> None:
        command = [sys.executable, str(HERE / "warm_process.py")]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE.parent
        )
        self.turn = threading.Lock()
        atexit.register(self._end)

    def run(self, script: str, arguments: tuple[str, ...]) -> subprocess.CompletedProcess:
        request = {"script": str(HERE / script), "arguments": list(arguments), "limit_s": LIMIT_S}
        with self.turn:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline() or '{"status": 1, "stdout": "", "stderr": "ended"}')
        return subprocess.CompletedProcess([script], answer["status"], answer["stdout"], answer["stderr"])

    def _end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


@functools.cache
def _warm(thread: int) -> _Warm:
    return _Warm()


def run_child(script: str, *arguments: str, **environment: str) -> dict:
    """The JSON in the last line that HERE/script prints; it runs in the repository root. Raises: ChildFailed.

    environment: variables of a new interpreter; without any, the script runs in a fork of one that has its imports.
    """
    if environment:
        command = [sys.executable, str(HERE / script), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT_S, cwd=HERE.parent, env=os.environ | environment
        )
    else:
        done = _warm(threading.get_ident()).run(script, arguments)
    if done.returncode:
        raise ChildFailed(f"{script} {' '.join(arguments)} ended with {done.returncode}\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def interpret(folder: Path) -> dict[str, list[str]]:
    """The mismatches of each launch of a fixture against its reference; see interpreted_fixture.py.

    Triton's interpreter knows no block pointers: a kernel with them is run as what it is translated from.
    """
    if "make_block_ptr" not in (folder / "kernel.py").read_text():
        return run_child("interpreted_fixture.py", str(folder), TRITON_INTERPRET="1")
    with tempfile.TemporaryDirectory() as made:
        copied = shutil.copytree(folder, Path(made) / folder.name)
        (copied / "kernel.py").write_text(_without_block_pointers(folder / "kernel.py"))
        return run_child("interpreted_fixture.py", str(copied), TRITON_INTERPRET="1")


def _without_block_pointers(file: Path) -> str:
    """The kernels of a file, without host code, with what stands for their block pointers."""
    from gluonize.read.kernels.listing import list_kernels
    from gluonize.read.kernels.load import load_kernel

    kernels = [load_kernel(str(file), k.name) for k in list_kernels(str(file), ()) if k.is_kernel]
    texts = [f"@triton.jit\n{k.fn.src}" for k in kernels]
    return "\n\n".join(["import triton\nimport triton.language as tl", *texts])


def compile_folder(folder: Path, target: str, translation: Path | None = None, ctas: int = 0) -> dict[str, dict]:
    """Language and size of the code object, or the error, of each launch of a fixture; see compile_fixture.py."""
    words = [str(translation)] if translation else []
    return run_child("compile_fixture.py", str(folder), target, *words, *([str(ctas)] if ctas else []))
