"""A text of the translator that is exchanged for another one while a test runs: in the code of its functions, or in its constants."""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType


@contextlib.contextmanager
def planted(module: str, before: str, after: str) -> Iterator[None]:
    """`after` stands in `module` where `before` does: in its functions, wherever they have been imported to, and in what it assigns to
    its own names. Raises: AssertionError where the text is not there once, or nothing comes of it."""
    owner = importlib.import_module(module)
    path, names = owner.__file__, vars(owner)
    text = Path(path).read_text()
    assert text.count(before) == 1, f"{module} has this {text.count(before)} times: {before}"
    old, new = (_codes(compile(t, path, "exec")) for t in (text, text.replace(before, after)))
    changed = {old[name]: new[name] for name in old.keys() & new.keys() if old[name] != new[name]}
    gc.unfreeze()  # what is frozen is not listed
    functions = [f for f in gc.get_objects() if type(f) is FunctionType and f.__code__ in changed]
    constants = _constants(text).items() ^ _constants(text.replace(before, after)).items()
    assert functions or constants, f"nothing of {module} comes of this: {before}"
    saved = [(f, f.__code__) for f in functions]
    kept = {name: names[name] for name, _ in constants}
    try:
        for f, code in saved:
            f.__code__ = changed[code]
        names |= {
            name: eval(value, names) for name, value in _constants(text.replace(before, after)).items() if name in kept
        }
        yield
    finally:
        for f, code in saved:
            f.__code__ = code
        names |= kept


def _constants(text: str) -> dict[str, str]:
    """What a module assigns to its names, as expressions."""
    assigned = [s for s in ast.parse(text).body if isinstance(s, ast.Assign | ast.AnnAssign) and s.value is not None]
    targets = [s.targets[0] if isinstance(s, ast.Assign) else s.target for s in assigned]
    return {t.id: ast.unparse(s.value) for t, s in zip(targets, assigned) if isinstance(t, ast.Name)}


def _codes(code: CodeType, around: tuple = ()) -> dict[tuple, CodeType]:
    """The code of functions by name and number among those of a name; what stands in a function comes with it."""
    found: dict[tuple, CodeType] = {}
    for inner in (c for c in code.co_consts if isinstance(c, CodeType)):
        name = (*around, inner.co_name)
        key = next((*name, n) for n in range(len(code.co_consts)) if (*name, n) not in found)
        found[key] = inner
        found |= _codes(inner, key)
    return found


__all__ = ["planted"]
