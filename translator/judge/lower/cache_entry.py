"""Entries of Triton's own cache that cannot be used: which folder, and what to do, in the place of what Triton raises.

Triton reads an entry without looking at what is in it: `'list' object has no attribute 'items'`, or an empty text taken for code.
Uses the names of its private `runtime.cache` and `CompiledKernel`.
"""

from __future__ import annotations

import os
import traceback
from typing import Any

from gluonize.diagnostics import Diagnostic

CODE = "compiler-cache"
_ELF = b"\x7fELF"
_END = ".end_amdgpu_metadata"  # of every AMDGCN text


def unusable_cache(error: BaseException, what: str) -> Diagnostic | None:
    """What to say of an exception that came from reading or writing Triton's cache; None for any other."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        found, name = frame.f_locals, frame.f_code.co_name
        file = os.path.normpath(frame.f_code.co_filename)
        if file.endswith(os.path.join("triton", "runtime", "cache.py")) and "self" in found:
            return _said(getattr(found["self"], "cache_dir", "") or "", error, what)
        if file.endswith(os.path.join("triton", "compiler", "compiler.py")) and name == "__init__":
            if isinstance(group := found.get("metadata_group"), dict) and group:
                found["self"].module = None  # its `__del__` asks for it, and may run anywhere
                return _said(_folder(group), error, what)
    return None


def incomplete_entry(compiled: Any, what: str) -> Diagnostic | None:
    """What to say of a compiled kernel that was read from an entry of which a part is missing; None for a whole one."""
    texts = compiled.asm
    wrong = [stage for stage, text in texts.items() if not text]
    wrong += ["amdgcn"] * (_END not in texts.get("amdgcn", ""))
    wrong += ["hsaco"] * (not texts.get("hsaco", b"").startswith(_ELF))
    if not wrong:
        return None
    return _unusable(_folder(compiled.metadata_group), f"its {wrong[0]} is not whole", what)


def _folder(group: dict[str, str]) -> str:
    return os.path.dirname(str(next(iter(group.values()))))


def _said(folder: str, error: BaseException, what: str) -> Diagnostic:
    if isinstance(error, OSError):
        message = f"{what}: Triton's cache cannot be used"
        help = "free space there or make it writable, or set TRITON_CACHE_DIR to another folder"
        return Diagnostic("compiler-cache", message, folder, why=error.strerror or str(error), help=help)
    return _unusable(folder, f"{type(error).__name__}: {error}", what)


def _unusable(folder: str, why: str, what: str) -> Diagnostic:
    message = f"{what}: this entry of Triton's own cache is damaged"
    return Diagnostic("compiler-cache", message, folder, why=why, help="delete that folder; it is made again")
