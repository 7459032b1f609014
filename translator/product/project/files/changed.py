"""What a branch changed, as git tells it."""

from __future__ import annotations

import os
import subprocess

from gluonize.diagnostics import Diagnostic, TranslationError


def changed_since(revision: str, folder: str = os.curdir) -> tuple[str, ...]:
    """Paths, relative to the working folder, that differ from where the branch left `revision`: commits, edits, new files.

    Files that went are among them. Raises: TranslationError `no-revision` where git cannot tell.
    """
    root = _git(folder, revision, "rev-parse", "--show-toplevel").decode().rstrip("\n")
    base = _git(folder, revision, "merge-base", revision, "HEAD").decode().strip()
    differing = _git(root, revision, "diff", "--name-only", "--no-renames", "-z", base)
    new = _git(root, revision, "ls-files", "--others", "--exclude-standard", "-z")
    names = sorted({os.fsdecode(name) for name in (differing + new).split(b"\0") if name})
    return tuple(os.path.relpath(os.path.join(root, name)) for name in names)


def _git(folder: str, revision: str, *arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, check=False, timeout=60)
        why = done.stderr.decode(errors="replace").strip() or f"git {arguments[0]} found nothing"
    except (OSError, subprocess.TimeoutExpired) as error:
        done, why = None, str(error)
    if done is None or done.returncode != 0:
        help = "fetch it with the history between (fetch-depth: 0 where actions/checkout does)"
        raise TranslationError(Diagnostic("no-revision", f"git knows no changes since {revision}", why=why, help=help))
    return done.stdout
