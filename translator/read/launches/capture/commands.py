"""What stands behind `gluonize capture`: a script, a module, a notebook, or a command such as pytest."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from gluonize.diagnostics import Diagnostic, TranslationError


@dataclass(frozen=True)
class Program:
    """What to run: kind is `script`, `module`, `notebook` or `entry` (a console script: `module:function`)."""

    kind: str
    name: str
    arguments: tuple[str, ...]

    @property
    def runs_tests(self) -> bool:
        """Whether its status says what the code that it runs has computed."""
        return self.name.partition(":")[0].partition(".")[0].lstrip("_") in ("pytest", "unittest")


def resolve_command(words: tuple[str, ...], is_module: bool) -> Program:
    """The program that a command line means: `pytest tests/test_x.py`, `python -m pkg`, `python script.py`, `notes.ipynb`.

    Raises: TranslationError `source-missing` when there is none.
    """
    name, *rest = words
    if is_module:
        return Program("module", name, tuple(rest))
    if os.path.basename(name).startswith("python") and not os.path.isfile(name) and rest:
        if rest[0] == "-m" and len(rest) > 1:
            return Program("module", rest[1], tuple(rest[2:]))
        name, *rest = rest
    if os.path.isfile(name):
        return Program("notebook" if name.endswith(".ipynb") else "script", name, tuple(rest))
    for entry in importlib.metadata.entry_points(group="console_scripts", name=name):
        return Program("entry", entry.value, tuple(rest))
    if name.isidentifier() and importlib.util.find_spec(name) is not None:
        return Program("module", name, tuple(rest))
    if (path := shutil.which(name)) is not None and _is_python(path):
        return Program("script", path, tuple(rest))
    help = "give a script, a notebook, a command such as pytest, or a module with -m"
    raise TranslationError(Diagnostic("source-missing", "no such file or command", name, help=help))


def _is_python(path: str) -> bool:
    with open(path, "rb") as file:
        return b"python" in file.readline()


def notebook_text(path: str) -> str:
    """The code of a notebook as one script; lines that are no Python (`%timeit`, `!pip`) are left out.

    Raises: TranslationError `source-unreadable` when it is no notebook.
    """
    try:
        cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, KeyError, TypeError):
        raise TranslationError(Diagnostic("source-unreadable", "this is no notebook", path)) from None
    lines = [line for text in texts if not text.startswith("%%") for line in text.split("\n")]
    return "\n".join("pass" if line.lstrip()[:1] in ("%", "!") else line for line in lines) + "\n"
