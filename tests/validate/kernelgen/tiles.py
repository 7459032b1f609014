"""Tiles without matrix products: elementwise chains, rows that are reduced and scanned, control that depends on data."""

from __future__ import annotations

from kernelgen.draw import Draw, Launch, RandomKernel, divisible_by_16, kernel_text, launch_spec, tensor
from gluonize.read.spec.launch import LaunchSpec

FLOATS = ("*bf16", "*fp16", "*fp32")
UNARY = (
    "tl.exp(-tl.abs({0}))",
    "tl.abs({0})",
    "-{0}",
    "tl.sqrt(tl.abs({0}))",
    "{0} * 0.5",
    "tl.sigmoid({0})",
    "tl.maximum({0}, 0.0)",
)
BINARY = (
    "{0} + {1}",
    "{0} - {1}",
    "{0} * {1}",
    "tl.where({0} > {1}, {0}, {1} * 2.0)",
    "tl.minimum({0}, {1})",
    "{0} / (tl.abs({1}) + 1.0)",
)
REDUCE = ("tl.sum({0}, {axis})", "tl.max({0}, {axis})", "tl.min({0}, {axis})")
INTEGER = (
    "{0} + {1}",
    "{0} * {1}",
    "{0} ^ {1}",
    "{0} & {1}",
    "{0} >> 2",
    "tl.where({0} < {1}, {0}, {1})",
    "{0} % 7",
    "({0} + 3) // 2",
)


def specified(
    signature: dict, constexprs: dict, values: dict, grid: tuple[int, ...], warps: int, stages: int = 2
) -> LaunchSpec:
    """A launch whose scalars are compiled as multiples of 16 where they are."""
    return launch_spec(signature, constexprs, values, grid, divisible_by_16(values, signature), warps, stages)


def smaller(draw: Draw, text: str, spec: LaunchSpec) -> RandomKernel:
    """The kernel on the launch it is made for, and with smaller sizes; its masks are for any size up to that."""
    numbers = {name: value for name, value in spec.values.items() if isinstance(value, int)}
    numbers = {name: value for name, value in numbers.items() if spec.signature[name] == "i32"}
    launches = [Launch(numbers, spec.grid)]
    for _ in range(2):
        scalars = {}
        for name, value in numbers.items():
            least = 1 if name in ("M", "N") else 0
            options = [x for x in (value, value, least, value // 2, value - 1, 3) if least <= x <= value]
            divisible = "D" in spec.attrs.get(name, "")
            scalars[name] = draw.pick(*(x for x in options if not divisible or x % 16 == 0))
        launches.append(Launch(scalars, spec.grid))
    return RandomKernel(text, spec, tuple(launches))


def chains(
    draw: Draw, names: list[str], ops: tuple[tuple[str, ...], ...], length: int, prefix: str = "v"
) -> tuple[list[str], str]:
    """Assignments `v0 = ...` on earlier values; -> lines and the last name."""
    lines, known = [], list(names)
    for i in range(length):
        form = draw.pick(*draw.pick(*ops))
        lines.append(f"{prefix}{i} = {form.format(known[-1], draw.pick(*known))}")
        known.append(f"{prefix}{i}")
    return lines, known[-1]


def elementwise(draw: Draw) -> RandomKernel:
    """One dimension, a tail, optionally an integer input, a loop and a branch on a scalar."""
    kind, block, warps = (draw.pick(*FLOATS), draw.pick(64, 256, 1024), draw.pick(1, 4))
    n = draw.number(1, 3) * block + draw.pick(0, 2, 16, block // 2 + 3)
    body = [
        "i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
        "mask = i < n",
        f"x = tl.load(x_ptr + i, mask=mask, other={draw.pick('0.0', '1.0')}).to(tl.float32)",
    ]
    body += [
        "y = tl.load(y_ptr + i, mask=mask, other=0.0).to(tl.float32)",
        "k = tl.load(k_ptr + i, mask=mask, other=0)",
    ]
    lines, last = chains(draw, ["x", "y"], (UNARY, BINARY), draw.number(1, 6))
    if draw.chance(0.5):
        trips = draw.pick("3", "n % 5", "trips")
        body += [f"for j in range({trips}):", "    x = x * 0.5 + y * j"]
    if draw.chance(0.5):
        body += ["if trips > 2:", "    y = y + 1.0", "else:", "    x = x - y"]
    body += lines
    integers, whole = chains(draw, ["k", "i"], (INTEGER,), draw.number(1, 4), "w")
    body += integers
    body += [f"tl.store(out_ptr + i, {last}, mask=mask)", f"tl.store(int_ptr + i, {whole}, mask=mask)"]
    signature = {
        "x_ptr": kind,
        "y_ptr": kind,
        "k_ptr": "*i32",
        "out_ptr": kind,
        "int_ptr": "*i32",
        "n": "i32",
        "trips": "i32",
        "BLOCK": "constexpr",
    }
    floats = {name: tensor(kind, n) for name in ("x_ptr", "y_ptr", "out_ptr")}
    values = floats | {"k_ptr": tensor("*i32", n, low=-100, high=100), "int_ptr": tensor("*i32", n, low=0, high=0)}
    values |= {"n": n, "trips": draw.pick(0, 2, 4)}
    return smaller(
        draw, kernel_text(signature, body), specified(signature, {"BLOCK": block}, values, (-(-n // block),), warps)
    )


def rows(draw: Draw) -> RandomKernel:
    """A tile of rows and columns, reduced along one axis and broadcast back, columns masked."""
    kind, warps = (draw.pick(*FLOATS), draw.pick(1, 4, 8))
    r, c = (draw.pick(1, 4, 16), draw.pick(32, 128, 512))
    m, n = (draw.number(1, 2) * r + draw.pick(0, 3), c - draw.pick(0, 1, 16))
    axis = draw.pick(0, 1)
    expand = "[None, :]" if axis == 0 else "[:, None]"
    body = [
        "r = tl.program_id(0) * R + tl.arange(0, R)",
        "c = tl.arange(0, C)",
        "mask = (r[:, None] < m) & (c[None, :] < n)",
    ]
    body += ["x = tl.load(x_ptr + r[:, None] * n + c[None, :], mask=mask, other=0.0).to(tl.float32)"]
    before, last = chains(draw, ["x"], (UNARY, BINARY), draw.number(0, 3))
    reduced = draw.pick(*REDUCE).format(last, axis=axis)
    body += before + [f"s = {reduced}", f"b = s{expand}"]
    after, out = chains(draw, [last, "b"], (UNARY, BINARY), draw.number(1, 3), "u")
    body += after
    if draw.chance(0.5):
        body += [f"out = tl.cumsum(tl.broadcast_to({out}, (R, C)), 1)"]
        out = "out"
    body += [f"tl.store(out_ptr + r[:, None] * n + c[None, :], {out}, mask=mask)"]
    signature = {"x_ptr": kind, "out_ptr": kind, "m": "i32", "n": "i32", "R": "constexpr", "C": "constexpr"}
    values = {"x_ptr": tensor(kind, m, n), "out_ptr": tensor(kind, m, n), "m": m, "n": n}
    spec = specified(signature, {"R": r, "C": c}, values, (-(-m // r),), warps)
    return smaller(draw, kernel_text(signature, body), spec)


def scans(draw: Draw) -> RandomKernel:
    """Rows scanned, reduced with an index, sorted or flipped, over several types."""
    kind = draw.pick("*fp32", "*fp16", "*i32", "*i16")
    whole = kind.startswith("*i")
    r, c = (draw.pick(1, 2, 8), draw.pick(16, 64, 256))
    m, n = (r + draw.pick(0, 1), c - draw.pick(0, 3))
    wide = "tl.int32" if whole else "tl.float32"
    body = [
        "r = tl.program_id(0) * R + tl.arange(0, R)",
        "c = tl.arange(0, C)",
        "mask = (r[:, None] < m) & (c[None, :] < n)",
    ]
    body += [f"x = tl.load(x_ptr + r[:, None] * n + c[None, :], mask=mask, other=0).to({wide})"]
    forms = [
        "tl.cumsum(x, 1)",
        "tl.cumsum(x, 1, reverse=True)",
        "x - tl.max(x, 1)[:, None]",
        "x + tl.argmax(x, 1)[:, None]",
        "x * tl.argmin(x, 1, tie_break_left=True)[:, None]",
        "tl.sort(x, 1)",
        "tl.flip(x, 1)",
        "tl.gather(x, tl.broadcast_to(((c * 5 + 3) % C)[None, :], (R, C)), 1)",
        "tl.associative_scan(x, 1, _larger)",
        "x + tl.reduce(x, 1, _larger)[:, None]",
    ]
    for step in range(draw.number(1, 2)):
        body += [f"x = {draw.pick(*forms)}"]
    if draw.chance(0.5):
        body += ["s = tl.sum(x, 0)", "x = x + s[None, :]"]
    body += ["tl.store(out_ptr + r[:, None] * n + c[None, :], x, mask=mask)"]
    out = "*i32" if whole else "*fp32"
    signature = {"x_ptr": kind, "out_ptr": out, "m": "i32", "n": "i32", "R": "constexpr", "C": "constexpr"}
    span = {"low": -50, "high": 50} if whole else {}
    values = {
        "x_ptr": tensor(kind, m, n, **span),
        "out_ptr": tensor(out, m, n, **{"low": 0, "high": 0} if whole else {}),
        "m": m,
        "n": n,
    }
    spec = specified(signature, {"R": r, "C": c}, values, (-(-m // r),), draw.pick(1, 4))
    helper = "@triton.jit\ndef _larger(a, b):\n    return tl.maximum(a, b)\n\n\n"
    return smaller(draw, kernel_text(signature, body, helper), spec)


def control(draw: Draw) -> RandomKernel:
    """Loads that feed loads, loops in branches in loops, `while` on a loaded value, early return, narrow integers and fp8."""
    kind = draw.pick("*fp32", "*fp16", "*fp8e5", "*i8", "*u8", "*i64")
    block, warps = (draw.pick(64, 128), draw.pick(1, 2, 4))
    n = draw.number(1, 3) * block - draw.pick(0, 1, 7)
    whole = kind[1] in "iu"
    wide = "tl.int64" if kind == "*i64" else "tl.int32" if whole else "tl.float32"
    zero = "0" if whole else "0.0"
    body = ["pid = tl.program_id(0)", "i = pid * BLOCK + tl.arange(0, BLOCK)", "mask = i < n"]
    if draw.chance(0.5):
        body += ["if pid * BLOCK >= limit:", "    return"]
    body += [
        "k = tl.load(k_ptr + i, mask=mask, other=0)",
        f"x = tl.load(x_ptr + k, mask=mask, other={zero}).to({wide})",
        f"acc = tl.zeros((BLOCK,), {wide})",
    ]
    ops = (INTEGER,) if whole else (UNARY, BINARY)
    inner, last = chains(draw, ["acc", "x"], ops, draw.number(1, 2), "t")
    update = [*inner, f"acc = ({last}).to({wide})"]
    form = draw.pick("for-if", "if-for", "while", "for-for", "chase")
    if form == "for-if":
        body += [
            "for t in range(0, trips):",
            "    if t % 2 == 0:",
            *(f"        {line}" for line in update),
            "    else:",
            "        acc = acc + x",
        ]
    elif form == "if-for":
        body += [
            "if trips > 1:",
            "    for t in range(0, trips):",
            *(f"        {line}" for line in update),
            "else:",
            "    acc = acc - x",
        ]
    elif form == "while":
        body += ["left = tl.load(k_ptr) % 4", "while left > 0:", *(f"    {line}" for line in update), "    left -= 1"]
    elif form == "for-for":
        body += ["for t in range(0, trips):", "    for u in range(t, 3):", *(f"        {line}" for line in update)]
    else:
        body += [
            "at = k",
            "for t in range(0, trips):",
            f"    acc += tl.load(x_ptr + at, mask=mask & (at < n), other={zero}).to({wide})",
            "    at = tl.load(k_ptr + at, mask=mask & (at < n), other=0)",
        ]
    body += ["tl.store(out_ptr + i, acc, mask=mask)"]
    out = "*i64" if kind == "*i64" else "*i32" if whole else "*fp32"
    signature = {
        "x_ptr": kind,
        "k_ptr": "*i32",
        "out_ptr": out,
        "n": "i32",
        "trips": "i32",
        "limit": "i32",
        "BLOCK": "constexpr",
    }
    span = {"low": 0 if kind == "*u8" else -20, "high": 20} if whole else {}
    values = {"x_ptr": tensor(kind, n, **span), "k_ptr": tensor("*i32", n, low=0, high=n - 1)}
    values |= {"out_ptr": tensor(out, n, **{"low": 0, "high": 0} if whole else {}), "n": n}
    values |= {"trips": draw.pick(0, 2, 3), "limit": draw.pick(2, 64, 1024)}
    return smaller(
        draw, kernel_text(signature, body), specified(signature, {"BLOCK": block}, values, (-(-n // block),), warps)
    )
