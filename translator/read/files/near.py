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
        there = _near_folder(folder)
        near = os.path.join(there, name) if there else ""
        if near and (glob.has_magic(name) or os.path.exists(near)):
            return f"did you mean {os.path.relpath(near)}?"
        return f"there is no folder {os.path.relpath(folder)}" + (f": did you mean {there}?" if there else "")
    if glob.has_magic(name):
        return ""
    near = nearest(name, (n for n in names if n.endswith(os.path.splitext(name)[1])))
    return f"did you mean {os.path.join(folder, near)}?" if near else ""


def _near_folder(folder: str) -> str:
    """A folder that is there, for one that is not; empty where none beside it has a near name."""
    above, name = os.path.split(os.path.normpath(folder))
    try:
        names = [n for n in os.listdir(above or os.curdir) if os.path.isdir(os.path.join(above, n))]
    except OSError:
        return ""
    near = nearest(name, names)
    return os.path.join(above, near) if near else ""
