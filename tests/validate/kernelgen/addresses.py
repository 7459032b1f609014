"""Addresses from integers of every width and sign: chains of conversions, steps down, helpers that are named as builtins are.

Each kernel loads through a chain of integer operations on lanes, loop variables and scalars; the numbers stay small, their signs
do not. The indices that come out are stored, too.
"""

from __future__ import annotations

from kernelgen.draw import Draw, RandomKernel
from kernelgen.scalars import Arguments

# On an int32 value between about -2000 and 2000; every result is an int32 in that range. {e} is the value, {s} a scalar
# argument, {k} an index loaded from memory.
SIGNED = (
    "({e}) - {s}",
    "({e}) + {s}",
    "-({e})",
    "({e}) - 5",
    "({e}) * 2 - {s}",
    "({e}) ^ -1",
    "~({e})",
    "({e}) & 127",
    "({e}) & -8",
    "({e}) | 3",
    "({e}) >> 1",
    "({e}) << 1",
    "({e}) % 7",
    "({e}) // 3",
    "tl.where(({e}) % 2 == 0, {e}, -({e}))",
    "tl.where({s} > 0, {e}, {e} - 9)",
    "tl.minimum({e}, {s})",
    "tl.maximum({e}, -5)",
    "tl.maximum({e}, 0)",
    "tl.abs({e})",
    "tl.cdiv({e}, 3)",
    "({e}) - tl.max({e}, 0)",
    "({e}) - tl.min({e}, 0)",
    "({e}) - tl.sum((o < 4).to(tl.int32), 0)",
    "tl.cumsum((o % 3).to(tl.int32), 0) - ({e})",
    "({e}) - {k}",
    "({e}) + {k}",
    "({e}) + tl.program_id(0) - 1",
    "({e}) - tl.num_programs(0)",
    "({e}) - tl.program_id(0) * 3",
    "({e}) - (({e}) > 3).to(tl.int32) * 7",
    "({e}) + ((({e}) > 3).to(tl.int8) * -3).to(tl.int32)",
    "tl.flip({e})",
)
CONVERSIONS = (
    "({e}).to(tl.int64).to(tl.int32)",
    "(({e}).to(tl.int64) - {s}).to(tl.int32)",
    "({e}).to(tl.uint32).to(tl.int32)",
    "(({e}).to(tl.uint32) - ({s}).to(tl.uint32)).to(tl.int32)",
    "(({e}).to(tl.uint32) - 5).to(tl.int32)",
    "({e}).to(tl.int16).to(tl.int32)",
    "({e}).to(tl.int8).to(tl.int32)",
    "({e}).to(tl.uint8).to(tl.int32)",
    "({e}).to(tl.uint8).to(tl.int8).to(tl.int32)",
    "({e}).to(tl.uint8).to(tl.int8, bitcast=True).to(tl.int32)",
    "({e}).to(tl.int8).to(tl.uint8, bitcast=True).to(tl.int32)",
    "({e}).to(tl.uint16).to(tl.int16).to(tl.int32)",
    "({e}).to(tl.uint16).to(tl.int32) % 512",
    "({e}).to(tl.uint32, bitcast=True).to(tl.int32, bitcast=True)",
    "(({e}).to(tl.uint32, bitcast=True) + 3).to(tl.int32, bitcast=True)",
    "(({e}).to(tl.uint64) - ({s}).to(tl.uint64)).to(tl.int64).to(tl.int32)",
    "({e}).to(tl.float32).to(tl.int32)",
    "(({e}).to(tl.float32) - 4.0).to(tl.int32)",
    "tl.minimum(({e}).to(tl.uint32), 40).to(tl.int32)",
    "(({e}).to(tl.uint32) >> 1).to(tl.int32) % 1000",
    "(({e}).to(tl.uint8) >> 2).to(tl.int32)",
    "((({e}).to(tl.uint8)).to(tl.int8) >> 1).to(tl.int32)",
    "(({e}) > 2).to(tl.int32) - 1",
)
INDICES = {"*i8": (-128, 127), "*u8": (0, 255), "*i16": (-300, 300), "*i32": (-200, 200), "*i64": (-200, 200)}
# Helpers whose names are those of builtins; what they do is not.
NAMED = {
    "arange": ("lo, n: tl.constexpr", "return tl.arange(0, n) - lo", "arange({s}, B)"),
    "abs": ("x", "return x - 4", "abs({e})"),
    "maximum": ("x, y", "return tl.minimum(x, y)", "maximum({e}, 9)"),
    "cdiv": ("x, y", "return x - y", "cdiv({e}, 6)"),
    "zeros": ("x", "return x - 11", "zeros({e})"),
    "program_id": ("axis: tl.constexpr", "return tl.program_id(axis) - 2", "({e}) + program_id(0)"),
    "where": ("c, x, y", "return tl.where(c, y, x)", "where(({e}) > 5, {e}, -3 - ({e}))"),
    "load": ("p, i", "return tl.load(p + i).to(tl.int32) - i", "load({p}, o)"),
    "cumsum": ("x", "return -x", "cumsum({e})"),
    "minimum": ("x, n: tl.constexpr", "for i in range(n):\n        x -= i\n    return x", "minimum({e}, 3)"),
}


class Chain:
    """Integer expressions, and the statements that name their parts."""

    def __init__(self, draw: Draw):
        self.draw = draw
        self.size = draw.pick(32, 64, 128)
        self.arguments = Arguments(draw, self.size)
        self.arguments.fixed("B", self.size)
        self.kind = draw.pick(*INDICES)
        self.helpers: dict[str, str] = {}
        self.unknown = draw.chance(0.3)  # loads of indices

    def step(self, value: str) -> str:
        draw = self.draw
        forms = CONVERSIONS if draw.chance(0.5) else SIGNED
        form = draw.pick(*forms)
        if draw.chance(0.15):
            name = draw.pick(*NAMED)
            parameters, text, form = NAMED[name]
            self.helpers[name] = f"@triton.jit\ndef {name}({parameters}):\n    {text}\n\n\n"
        filled = {"e": value, "s": "", "k": "", "p": ""}
        if "{s}" in form:
            filled["s"] = self.arguments.scalar("sh")
        if "{k}" in form or "{p}" in form:
            pointer = self.arguments.pointer("k_ptr", self.kind, *INDICES[self.kind])
            filled["k"], filled["p"] = f"tl.load({pointer} + o).to(tl.int32)", pointer
        return form.format(**filled)

    def chain(self, start: str, name: str, low: int, high: int) -> list[str]:
        """`name` from `start`, in one to three statements."""
        lines, value = [], start
        for _ in range(self.draw.number(low, high)):
            value = self.step(value)
            if self.draw.chance(0.5) or len(value) > 90:
                lines.append(f"{name} = {value}")
                value = name
        return lines + ([f"{name} = {value}"] if value != name else [])


LOOPS = (
    ("for i in tl.range(2, {n}, step=-1):", "i * (o + 1)"),
    ("for i in range(4, {n}, -1):", "o + i * 8"),
    ("for i in tl.range(2, sh, step=-1):", "o + i"),
    ("for i in tl.range(step=-3, arg1=4, arg2=sh):", "o * 2 + i"),
    ("for i in tl.range(0, {n}):", "o - i"),
    ("for i in range({n}):", "o * 2 - i * 3"),
    ("for i in tl.range({n}, -3, -1):", "o + i"),
    ("for i in tl.range(-4, {n}, step=2):", "i + o"),
    ("for i in range(3, -3, -1):", "o + i"),
    ("for i in tl.range(start, {n}, num_stages=2):", "o + i"),
    ("for i in tl.static_range(3, -1, -1):", "o - i * 4"),
    ("for i in range(sh, sh + 3):", "o + i"),
    ("for i in range(0, {n}, 2):", "(o - i).to(tl.int32)"),
)


def addresses(draw: Draw) -> RandomKernel:
    """Loads at what a chain of operations gives."""
    chain = Chain(draw)
    arguments = chain.arguments
    x = arguments.pointer("x_ptr", draw.pick("*fp32", "*fp16", "*i32", "*u8"), 0, 99)
    out = arguments.pointer("y_ptr", "*fp32")
    whole = arguments.pointer("i_ptr", "*i32", -100, 100)
    body: list = ["pid = tl.program_id(0)", "o = tl.arange(0, B)", "acc = tl.zeros((B,), tl.float32)"]
    row = draw.pick("pid * 256", f"(pid + 1) * {arguments.scalar('S')}", "0") if draw.chance(0.7) else "pid"
    body.append(f"p = {x} + {row}")
    start = draw.pick("o", "o", "o + pid", "o * 2", "o // 4", f"o + {arguments.scalar('sh')}", "o * 2 + sh")
    body += chain.chain(start, "at", draw.pick(0, 1, 1), 3) or [f"at = {start} + 0"]
    mask = draw.pick("", "", f", mask=at < {arguments.scalar('n')}, other=0", ", mask=o != 3, other=0")
    load = draw.pick(f"tl.load(p + at{mask})", f"tl.load(p + at{mask})", f"tl.load((p + at.to(tl.int64)){mask})")
    body.append(f"acc += {load}.to(tl.float32)")
    if draw.chance(0.6):
        body += _loop(draw, chain)
    default = draw.chance(0.4)
    if default:
        body.append(f"acc += tl.load({x} + (o + {arguments.scalar('sh')})).to(tl.float32)")
    if draw.chance(0.3):
        body += [f"q = {out} + pid * 4096 + 2048", "tl.store(q - o * 2, acc)"]
    if draw.chance(0.25):
        sums = arguments.pointer("s_ptr", draw.pick("*i32", "*i32", "*u32"), 0, 50)
        how = draw.pick("atomic_add", "atomic_max", "atomic_min", "atomic_xor", "atomic_or")
        body.append(f"tl.{how}({sums} + at, o)")
    body += [f"tl.store({out} + pid * 4096 + o, acc)", f"tl.store({whole} + pid * B + o, at)"]
    if default:
        _give_default(draw, arguments)
    grids = [(2,), (1,), (3,)]
    return arguments.kernel(body, "addresses", grids, "".join(chain.helpers.values()))


def _loop(draw: Draw, chain: Chain) -> list:
    head, index = draw.pick(*LOOPS)
    before = ["start = pid - 2"] if "start" in head else []
    if "sh" in head:
        chain.arguments.scalar("sh")
    head = head.format(n=chain.arguments.scalar("trips")) if "{n}" in head else head
    body = chain.chain(f"({index})", "j", 0, 1) or [f"j = {index}"]
    mask = draw.pick("", "", f", mask=j > {chain.arguments.scalar('sh')}, other=0")
    body.append(f"acc = acc * 0.5 + tl.load(p + j{mask}).to(tl.float32)")
    if draw.chance(0.3):
        body.append("p += 8")
    if draw.chance(0.2):
        body.append("p -= i")
    after = [draw.pick("p -= 16", "p += 1")] if draw.chance(0.3) else []
    return [*before, (head, body), *after, *(["acc += tl.load(p + o).to(tl.float32)"] if after else [])]


def _give_default(draw: Draw, arguments: Arguments) -> None:
    """`sh` last, with a default; some launches leave it out."""
    arguments.signature["sh"] = arguments.signature.pop("sh")
    arguments.defaults["sh"] = draw.pick("-5", "-16", "5", "0", "-1")
