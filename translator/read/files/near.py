"""What a name that is not there was probably meant to be: a file beside it. Commands ask it, never what reads for another
machine."""

from __future__ import annotations

import glob
import os

from gluonize.diagnostics import nearest


def near_file(path: str) -> str:
    """`did you mean kernels/matmul.py?` for a path without a file; empty where no name in its folder is near."""
    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or os.curdir)
    except OSError:
        return f"there is no folder {os.path.relpath(folder)}"
    if glob.has_magic(name):
        return ""
    near = nearest(name, (n for n in names if n.endswith(os.path.splitext(name)[1])))
    return f"did you mean {os.path.join(folder, near)}?" if near else ""
