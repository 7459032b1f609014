"""Where the emulator is: a checkout of tinygrad (https://github.com/tinygrad/tinygrad), named by an environment variable.

Of it `test/mockgpu/amd/emu.py` and what that imports are used, in a process of its own, and nothing is copied.
"""

from __future__ import annotations

import os

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.rules.targets import TARGETS
from gluonize.rules.targets import target as target_row

VARIABLE = "GLUONIZE_EMULATOR"
TRIED = "a9069c177a9da9cca18593edf55acd2e6073cca6"  # the commit with which the interface was tried
NEEDED = ("test/mockgpu/amd/emu.py", "test/mockgpu/amd/pcode.py", "tinygrad/renderer/amd/__init__.py")


def find_checkout() -> str:
    """The folder that the environment variable names. Raises: TranslationError `no-emulator`."""
    folder = os.environ.get(VARIABLE, "")
    if not folder:
        raise _none(f"{VARIABLE} is not set")
    path = os.path.abspath(os.path.expanduser(folder))
    if not os.path.isdir(path):
        raise _none(f"{VARIABLE} names {folder}, which is no folder")
    missing = [name for name in NEEDED if not os.path.isfile(os.path.join(path, name))]
    if missing:
        raise _none(f"{VARIABLE} names {folder}, which has no {missing[0]}")
    return path


def check_target(target: str) -> None:
    """Raises: TranslationError `emulator-target` for an architecture that the emulator does not know."""
    if not target_row(target).emulated_as:
        why = f"the emulator knows {', '.join(t.name for t in TARGETS.values() if t.emulated_as)}"
        raise TranslationError(
            Diagnostic("emulator-target", f"no emulator for {target}", why=why, help="leave --emulator out")
        )


def _none(why: str) -> TranslationError:
    help = f"set {VARIABLE} to a checkout of github.com/tinygrad/tinygrad (tried with commit {TRIED[:12]})"
    return TranslationError(Diagnostic("no-emulator", "no emulator for --emulator", why=why, help=help))
