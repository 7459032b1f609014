"""Run a script of the tests in a process of its own: some compiler faults and bad addresses end the process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT_S = 120


class ChildFailed(Exception):
    """The script did not end with status 0; the message has its command and standard error."""


def run_child(script: str, *arguments: str, **environment: str) -> dict:
    """The JSON in the last line that HERE/script prints; it runs in the repository root. Raises: ChildFailed."""
    command = [sys.executable, str(HERE / script), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, cwd=HERE.parent, env=os.environ | environment
    )
    if done.returncode:
        raise ChildFailed(f"{script} {' '.join(arguments)} ended with {done.returncode}\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def interpret(folder: Path) -> dict[str, list[str]]:
    """The mismatches of each launch of a fixture against its reference; see interpreted_fixture.py."""
    return run_child("interpreted_fixture.py", str(folder), TRITON_INTERPRET="1")


def compile_folder(folder: Path, target: str, translation: Path | None = None) -> dict[str, dict]:
    """Language and size of the code object, or the error, of each launch of a fixture; see compile_fixture.py."""
    return run_child("compile_fixture.py", str(folder), target, *([str(translation)] if translation else []))
