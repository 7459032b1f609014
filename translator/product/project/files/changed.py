"""What a branch changed, as git tells it."""

from __future__ import annotations

import os
import subprocess
import tomllib

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


def settings_changed(config: str, revision: str, folder: str = os.curdir) -> bool:
    """Whether a configuration says another thing of gluonize than where the branch left `revision`; what it says of others is theirs."""
    base = _git(folder, revision, "merge-base", revision, "HEAD").decode().strip()
    name = f"{base}:./{os.path.relpath(config, folder)}"
    try:
        before = _git(folder, revision, "show", name).decode("utf-8")
        with open(config, encoding="utf-8") as file:
            return _settings(before, config) != _settings(file.read(), config)
    except (TranslationError, OSError, ValueError):
        return True  # a new configuration, or one that cannot be read


def _settings(text: str, config: str) -> object:
    """Of a configuration what gluonize reads: all of gluonize.toml, and its table of pyproject.toml."""
    data = tomllib.loads(text)
    if os.path.basename(config) != "pyproject.toml":
        return data
    return data.get("tool", {}).get("gluonize")


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
