"""Commands under the Triton of another Python: this gluonize is what runs there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gluonize
from gluonize import rules
from gluonize.product.cli.other_triton import environment

ASKS = "import gluonize.versions, gluonize.rules.targets as t; print(gluonize.versions.__file__, t.__file__, sep='\\n')"


def test_a_python_without_gluonize_runs_this_one(tmp_path):
    """`-S`: of this Python only the standard library is there, as if gluonize had never been installed."""
    line = [sys.executable, "-S", "-c", ASKS]
    done = subprocess.run(line, env=environment(str(tmp_path)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [Path(path).resolve().parent for path in done.stdout.split()]
    assert found == [Path(gluonize.__file__).resolve().parent, Path(rules.__path__[0]).resolve()]
