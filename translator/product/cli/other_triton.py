"""Commands under another Triton than the installed one: the same gluonize, run by the Python that has it.

    gluonize translate kernel.py -t gfx950 --for-triton 3.8 --triton-python /venvs/3.8/bin/python

What is translated, compiled and validated then is by that Triton's own front end, passes and code generator, so that an output is as checked
as one for the installed Triton. Of that environment nothing else is needed: what it lacks of gluonize's own dependencies is taken from here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import gluonize
from gluonize import rules
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.rules.gluon import release
from gluonize.versions import NOT_INSTALLED, TRIED, same_release, triton_version

_MOVED = "GLUONIZE_TRITON_PYTHON"  # set in the environment of a command that runs elsewhere: where
_ASKS = "import sys, triton; print(triton.__version__, *sys.version_info[:2])"
# At the end of the path, so that what the other environment has comes first.
_SITE = "import sys\nsys.path += {folders!r}\n"
_SECONDS = 60


def run_elsewhere(python: str, argv: list[str]) -> None:
    """Go on with the Triton of a Python; returns where that is what runs. Raises: TranslationError `triton-version`."""
    if os.environ.get(_MOVED) == python:
        return
    _check_python(python)
    folder = tempfile.mkdtemp(prefix="gluonize-triton-")
    os.execve(python, [python, "-m", "gluonize.product.cli", *argv], environment(folder) | {_MOVED: python})


def check_release(wanted: str) -> None:
    """Raises: TranslationError `triton-version` where another Triton runs than outputs shall be for."""
    version = triton_version()
    if not same_release(wanted, version):
        message = f"an output for Triton {wanted} was asked for, and this is {version}"
        help = f"name a Python that has it: --for-triton {wanted} --triton-python /path/to/python"
        if release(wanted) < release(TRIED[0]):
            help = f"gluonize works with Triton {' and '.join(TRIED)}: ask for one of them"
        raise TranslationError(Diagnostic("triton-version", message, help=help))


def environment(folder: str) -> dict[str, str]:
    """The environment of another Python that runs this gluonize; folder: an empty one, which has to stay as long as that runs."""
    own = Path(folder, "gluonize")  # a checkout has the package and its rules elsewhere than an installation
    own.mkdir()
    for part in (*Path(gluonize.__file__).parent.iterdir(), Path(rules.__path__[0])):
        if part.name != "__pycache__" and not (own / part.name).exists():
            (own / part.name).symlink_to(part)
    folders = [p for p in sys.path if p.rstrip(os.sep).endswith(("site-packages", "dist-packages"))]
    Path(folder, "sitecustomize.py").write_text(_SITE.format(folders=folders))
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH", ""))))}


def _check_python(python: str) -> None:
    """Raises: TranslationError `triton-version` for a Python that has no Triton, or that is of another release than this one."""
    try:
        done = subprocess.run([python, "-I", "-c", _ASKS], capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _no_python(python, f"it cannot be run: {error}") from error
    words = done.stdout.split()
    if done.returncode or len(words) != 3:
        raise _no_python(python, " ".join(done.stderr.split()[-12:]) or NOT_INSTALLED)
    _, *release = words
    if tuple(map(int, release)) != sys.version_info[:2]:
        here = ".".join(map(str, sys.version_info[:2]))
        raise _no_python(
            python, f"it is Python {'.'.join(release)}, and gluonize runs on {here}, of which it needs packages"
        )


def _no_python(python: str, why: str) -> TranslationError:
    help = "create one: python -m venv DIR && DIR/bin/pip install triton==3.8.*"
    return TranslationError(
        Diagnostic("triton-version", f"--triton-python {python} has no Triton to use", why=why, help=help)
    )
