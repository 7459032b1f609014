"""Values of constants and run-time numbers that no host code shows, from their use and their names."""

from __future__ import annotations

import re
from typing import Any

from gluonize.read.launches.derive.evidence import Evidence
from gluonize.read.launches.derive.kernel.roles import is_dtype, is_flag, is_float, is_multiple, is_tile, size_role
from gluonize.read.launches.derive.proposal.guess import Guess
from gluonize.triton_api.language import tl

# A tile of one dimension covers a row; those of several, and of a dot, are small enough for registers and LDS together.
_ROW_TILE, _TILE, _DOT_TILE, _DOT_DEPTH = 1024, 32, 64, 32
# The greatest side of a dot that is guessed by its name: a result of 512 x 512 in fp32 is 1 MiB, twice the vector registers of a compute unit.
_DOT_SIDE = 256

# The largest number of float8_e4m3fn (OCP 8-bit floating point specification).
_FP8_MAX = 448.0


def constant_by_use(name: str, evidence: Evidence) -> Guess:
    """A `tl.constexpr` that nothing gives a value."""
    use, plain = evidence.uses.arguments[name], name.lower()
    if use.any("called"):
        return _function(name, evidence)
    if (compared := constant_by_comparison(name, evidence)) is not None:
        return compared
    if use.options:
        return Guess.constant(use.options[0], "an option of a builtin, which is a text", "use")
    if use.any("dtype") and not use.any("tile", "offset"):
        return Guess.constant(tl.float32, "it is used as a type", "use")
    if use.any("tile"):
        return _tile(name, evidence)
    counted = use.any("offset", "stride", "bound", "integer", "static", "shift")
    if use.any("tested") and not counted and not use.any("float"):
        return Guess.constant(False, "a flag: it is only tested", "use")
    if use.any("is-none") and not counted:
        return Guess.constant(None, "it may be None", "use")
    if use.numbers and not counted and not use.any("float"):
        numbers = [n for n in use.numbers if type(n) is int]
        if numbers and not is_flag(name):
            return Guess.constant(numbers[0], f"it is compared with {', '.join(map(str, use.numbers))}", "use")
        if use.numbers and all(isinstance(n, bool) for n in use.numbers):
            return Guess.constant(False, "a flag: it is compared with truths", "use")
    if not counted and (is_float(name) or use.any("float", "cast:fp32") and size_role(name) is None):
        return Guess.constant(_float_value(plain), "a floating-point number", "use" if use.any("float") else "name")
    if use.any("static"):
        return Guess.constant(4, "the count of a loop that is unrolled", "use")
    if "stride" in plain:
        return Guess.constant(_stride_number(name, evidence), "a stride", "name")
    if not counted and is_dtype(name) and not use.numbers:
        return Guess.constant(tl.float32, "a type by its name", "name")
    if not counted and is_flag(name):
        return Guess.constant(False, "a flag by its name", "name")
    if "group_size_m" in plain or plain in ("group_m", "group_size_n"):
        return Guess.constant(8, "how many tiles are visited together", "name")
    if "split" in plain:
        return Guess.constant(1, "nothing is split", "name")
    if plain in ("num_warps", "num_stages"):
        return Guess.constant({"num_warps": 4, "num_stages": 2}[plain], "Triton's default on AMD", "name")
    if is_tile(name):
        return _tile(name, evidence)
    role = size_role(name)
    if role is not None:
        return Guess.constant(role.value, f"a size: {role.what}", "name")
    return Guess.constant(16 if counted else 0 if use.kinds else 1, "an integer", "name")


def constant_by_comparison(name: str, evidence: Evidence) -> Guess | None:
    """A constant that the kernel compares with texts, or asks whether it is some integer: one of these. Of integers none for the size of a
    tile, and neither 0 nor 1, which are special cases as a rule."""
    use = evidence.uses.arguments[name]
    if use.texts:
        return Guess.constant(use.texts[0], f"it is compared with {', '.join(map(repr, use.texts))}", "use")
    numbers = [number for number in use.equal if number > 1]
    if numbers and not use.any("tile"):
        return Guess.constant(numbers[0], f"it is compared with {', '.join(map(str, use.equal))}", "use")
    return None


def number_by_use(name: str, evidence: Evidence) -> Guess:
    """An argument of the launch that is no pointer and no constant."""
    use, plain = evidence.uses.arguments[name], name.lower()
    counted = use.any("offset", "stride", "bound", "integer", "shift", "bits", "tile")
    # What is compared may be counted, or a probability: `keep = random > p` beside `1 / (1 - p)`.
    floating = any(type(n) is float for n in use.numbers) or is_float(name) and use.any("float")
    if (
        floating
        or not counted
        and (is_float(name) or use.any("float", "cast:fp32", "cast:other", "with-loads") and size_role(name) is None)
    ):
        return Guess(
            "fp32",
            why="a floating-point number",
            confidence="use" if use.any("float") else "name",
            number=_float_value(plain),
        )
    if not counted and use.any("tested") and is_flag(name):
        return Guess("u1", why="a flag that is tested", confidence="use", number=False)
    if "stride" in plain:
        return Guess.integer(_stride_number(name, evidence), "a stride", "use" if use.any("stride") else "name")
    if (role := size_role(name)) is not None:
        return Guess.integer(role.value, f"a size: {role.what}", "use" if counted else "name")
    number = 1024 if is_multiple(name) else 100
    return Guess.integer(number, "an integer", "use" if counted else "name")


def _function(name: str, evidence: Evidence) -> Guess:
    """A function to call: the first one of the file that takes as many arguments and gives something back; else there is no value."""
    for candidate in evidence.functions_for(name):
        why = "the first function of the file that can be called so"
        return Guess.constant(evidence.function(candidate), why, "use")
    return Guess.constant(None, "a function that is called", "use")


def _tile(name: str, evidence: Evidence) -> Guess:
    plain, tiles = name.lower(), evidence.tiles
    role = size_role(name) if not is_tile(name) else None
    if role is not None and role.what != "batch" and not (evidence.has_dot and role.value > _DOT_SIDE):
        return Guess.constant(role.value, f"a power of two: {role.what}", "use")
    if evidence.has_dot:
        depth = plain.endswith(("_k", "bk", "k_size", "size_k")) and len(tiles) > 1
        value = _DOT_DEPTH if depth else _DOT_TILE
        return Guess.constant(value, "the tile of a dot", "use")
    value = _ROW_TILE if evidence.is_flat else _TILE
    return Guess.constant(value, "the size of a tile", "use")


def _stride_number(name: str, evidence: Evidence) -> int:
    """Rows of 1024, batches of 512 rows: strides fall from the first to the last argument."""
    for strides in evidence.strides.values():
        if name in strides:
            behind = len(strides) - 1 - strides.index(name)
            return 1024 * 512 ** min(max(behind - 1, 0), 1) if len(strides) > 1 else 1024
    return 1024


def _float_value(plain: str) -> Any:
    if "eps" in plain:
        return 1e-6
    if found := re.search(r"(?:fp|float)8_?(min|max)", plain):
        return _FP8_MAX if found[1] == "max" else -_FP8_MAX
    return 0.5 if plain in ("p", "beta", "alpha", "momentum") or "drop" in plain or "prob" in plain else 1.0
