"""A process that has imported what the scripts of the tests need, and forks once for each script that it is asked to run.

Reads one JSON line per request: {"script": path, "arguments": [...], "limit_s": seconds}; answers with one line
{"status": exit status, negative for a signal, "stdout": text, "stderr": text}. Each script still has a process of its own,
because a fault in the compiler's passes can abort it; only the imports, a second each, are shared, and what the first translation
makes for all.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import runpy
import signal
import sys
import tempfile
import traceback

import fixture_set  # (with the rest of this block: imported once, for all scripts)
import triton.compiler  # noqa: F401
import triton.experimental.gluon._runtime  # noqa: F401
from gluonize.judge.lower.children.worker_process import ALLOCATIONS_BETWEEN_COLLECTIONS
from gluonize.read.spec.launch import read_launches
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel


def run(script: str, arguments: list[str], limit_s: int) -> dict:
    """Run one script in a fork of this process."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            _become(script, arguments, out.fileno(), err.fileno(), limit_s)
        _, status = os.waitpid(child, 0)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return {"status": os.waitstatus_to_exitcode(status), "stdout": texts[0], "stderr": texts[1]}


def _become(script: str, arguments: list[str], out: int, err: int, limit_s: int) -> None:
    """In the child: run the script as its own program, and end."""
    status = 1
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        signal.alarm(limit_s)
        sys.argv = [script, *arguments]
        runpy.run_path(script, run_name="__main__")
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  (the edge of the process: what was raised is shown as Python would)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _warm() -> None:
    """Translate something small: tables, grammars and dialects are then there for every script."""
    folder = fixture_set.ROOT / "vector_add"
    launches = tuple(read_launches(str(folder / "launches.json")))
    with contextlib.suppress(Exception):  # a script that fails by it says so
        translate_kernel(TranslateRequest(str(folder / "kernel.py"), "gfx950", launches=launches))
    gc.collect()
    gc.freeze()  # what is there stays: no script goes through it
    gc.set_threshold(ALLOCATIONS_BETWEEN_COLLECTIONS)  # as in the workers


def main() -> None:
    _warm()
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for line in requests:
        print(json.dumps(run(**json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
