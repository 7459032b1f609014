"""Kernels of whole-program structure: persistent loops, locks and atomics between programs, updates in place, modes, early returns."""

from __future__ import annotations

from kernelgen.draw import Draw, RandomKernel
from kernelgen.scalars import Arguments

ROW = 64


def _tiles(draw: Draw) -> tuple[Arguments, str, int]:
    """Arguments for tiles of B x B, the element type and B."""
    size = draw.pick(16, 32)
    arguments = Arguments(draw, size)
    arguments.fixed("B", size)
    return arguments, draw.pick("*fp16", "*fp16", "*bf16", "*fp32"), size


def persistent(draw: Draw) -> RandomKernel:
    """Programs that go from tile to tile, each with a loop over K whose pointers are rewound or set anew."""
    arguments, kind, _ = _tiles(draw)
    a, b = arguments.pointer("a_ptr", kind), arguments.pointer("b_ptr", kind)
    c = arguments.pointer("c_ptr", "*fp32")
    k, tiles = arguments.scalar("K"), arguments.scalar("tiles")
    row = draw.pick("ROW", "ROW", arguments.scalar("S"))
    if row == "ROW":
        arguments.fixed("ROW", ROW)
    rewound = draw.chance(0.6)
    start = [f"ap = {a} + (r[:, None] * {row} + r[None, :])", f"bp = {b} + (r[:, None] * B + r[None, :])"]
    loads = ["a = tl.load(ap)", "b = tl.load(bp)", "acc = tl.dot(a, b, acc)"]
    walk = [draw.pick("ap += B", "ap = ap + B"), "bp += B * B"]
    loop = draw.pick(
        f"for kk in range(0, {k}, B):",
        f"for t in range(tl.cdiv({k}, B)):",
        f"for kk in tl.range(0, {k}, B, num_stages=3):",
    )
    back = draw.pick(f"tl.cdiv({k}, B) * B", f"tl.cdiv({k}, B) * B", "n_done", f"{k}")
    behind = [f"ap -= {back}", f"bp -= {back} * B"]
    extra = draw.pick("ap += 1", "bp += B", "ap += B // 2", "seen += 1", "ap += tile % 2")
    count = ["n_done += B"] if back == "n_done" else []
    place = draw.pick("tile * B * B", "(tile % 3) * B * B + tile // 3 * 4096")
    store = f"tl.store({c} + {place} + (r[:, None] * B + r[None, :]), acc + seen)"
    body: list = ["r = tl.arange(0, B)", "pid = tl.program_id(0)", "seen = 0"]
    body += start if rewound else []
    inner: list = ["acc = tl.zeros((B, B), dtype=tl.float32)", *(["n_done = 0"] if count else [])]
    inner += (
        []
        if rewound
        else [line.replace("ap =", "ap = tile * 8 +").replace("bp =", "bp = tile * 4 +") for line in start]
    )
    inner += [(loop, draw.pick([*loads, *walk, *count], [*loads[:1], walk[0], *loads[1:], walk[1], *count]))]
    inner += [*behind, extra] if rewound else draw.pick([], behind + ["acc += tl.load(ap)"])
    if draw.chance(0.3):
        inner += [
            (
                f"if {arguments.scalar('mode')} > 0:",
                [draw.pick("acc = acc * 2.0", "seen += 2", "ap += 4" if rewound else "seen += 1")],
            )
        ]
    inner += [store]
    outer = draw.pick(
        f"for tile in range(pid, {tiles}, tl.num_programs(0)):",
        f"for tile in tl.range(pid, {tiles}, tl.num_programs(0), flatten=False):",
        f"for tile in range(pid * {tiles}, (pid + 1) * {tiles}):",
    )
    body += [(outer, inner)]
    return arguments.kernel(body, "persistent", [(draw.pick(1, 2),), (1,), (2,), (3,)])


def locks(draw: Draw) -> RandomKernel:
    """Programs that add to one tile in turn, behind a lock, a counter or atomics."""
    arguments, kind, size = _tiles(draw)
    a, b = arguments.pointer("a_ptr", kind), arguments.pointer("b_ptr", kind)
    c = arguments.pointer("c_ptr", "*fp32", -3, 3)
    whole = arguments.pointer("i_ptr", "*i32", 0, 20)
    lock = arguments.pointer("lock_ptr", "*i32", 0, 0)
    k = arguments.scalar("K")
    body: list = ["pid = tl.program_id(0)", "r = tl.arange(0, B)", "m = r", "acc = tl.zeros((B, B), tl.float32)"]
    step = draw.pick("m = kk + r", "m = kk + r", "m += B")
    at = "kk + r" if draw.chance(0.3) else "m"
    loads = [
        step,
        f"a = tl.load({a} + r[:, None] * 256 + ({at})[None, :])",
        f"b = tl.load({b} + ({at})[:, None] * B + r[None, :])",
    ]
    if draw.chance(0.3):
        loads = [*loads[1:], loads[0]]
    head = draw.pick(f"for kk in range(pid * B, {k}, tl.num_programs(0) * B):", f"for kk in range(0, {k}, B):")
    body += [(head, [*loads, "acc = tl.dot(a, b, acc)"])]
    body += draw.pick(["m += 1"], ["m -= 3"], ["m = m + 2"], [])
    cp = f"cp = {c} + (r[:, None] * B + r[None, :])"
    add = [
        cp,
        "acc += m[None, :]",
        draw.pick(("if pid > 0:", ["acc += tl.load(cp)"]), "acc += tl.load(cp)"),
        "tl.store(cp, acc)",
    ]
    form = draw.pick("turns", "spin", "ticket", "atomics", "counter")
    if form == "turns":
        body += [
            f"lp = {lock}",
            ("while tl.atomic_cas(lp, pid, pid) != pid:", ["pass"]),
            *add,
            "tl.debug_barrier()",
            "tl.atomic_xchg(lp, pid + 1)",
        ]
    elif form == "spin":
        body += [
            f"lp = {lock}",
            ("while tl.atomic_cas(lp, 0, 1) == 1:", ["pass"]),
            *add,
            "tl.debug_barrier()",
            "tl.atomic_xchg(lp, 0)",
        ]
    elif form == "ticket":
        body += [
            f"turn = tl.atomic_add({lock}, 1)",
            f"tl.store({c} + turn * {size * size} + (r[:, None] * B + r[None, :]), acc + m[:, None])",
        ]
    elif form == "atomics":
        body += [
            f"tl.atomic_add({c} + (r[:, None] * B + r[None, :]), acc + m[None, :])",
            f"tl.atomic_max({whole} + r, m)",
        ]
    else:
        body += [
            f"tl.store({c} + pid * {size * size} + (r[:, None] * B + r[None, :]), acc + m[None, :])",
            f"done = tl.atomic_add({lock}, 1)",
        ]
        body += [("if done == tl.num_programs(0) - 1:", [f"tl.store({whole} + r, m + done)"])]
    if draw.chance(0.3):
        body += [
            f"tl.atomic_{draw.pick('add', 'max', 'min', 'xor')}({whole} + 64 + (r % 8), m, mask=r < {arguments.scalar('n')})"
        ]
    return arguments.kernel(body, "locks", [(2,), (1,), (3,)])


def in_place(draw: Draw) -> RandomKernel:
    """What an iteration stores, a later one loads: rows, tiles, with products or without."""
    arguments, kind, size = _tiles(draw)
    trips = arguments.scalar("trips")
    product = draw.chance(0.5)
    x = arguments.pointer("x_ptr", kind, -1.0, 1.0)
    step, ahead = draw.pick(("B * B", 1), ("B * B", 2), ("B", 1)) if not product else ("B * B", draw.pick(1, 1, 2, -1))
    tile = "r[:, None] * B + r[None, :]" if step == "B * B" else "r"
    body: list = ["pid = tl.program_id(0)", "r = tl.arange(0, B)", f"base = {x} + pid * 10240", f"o = {tile}"]
    head = draw.pick(
        f"for i in range({trips}):", f"for i in tl.range(0, {trips}, num_stages=3):", f"for i in range({trips}, 0, -1):"
    )
    walked = draw.chance(0.4)
    here, there = f"base + i * {step} + o", f"base + (i + {ahead}) * {step} + o"
    if walked:
        body += ["p = base + o"]
        here, there = "p", f"p + {ahead} * {step}"
    to = kind.replace("*fp", "tl.float").replace("*bf", "tl.bfloat")
    if product:
        w = arguments.pointer("w_ptr", kind, -0.2, 0.2)
        fixed = draw.chance(0.6)
        weight = f"w = tl.load({w} + o)" if fixed else f"w = tl.load({w} + i * B * B + o)"
        body += [weight] if fixed else []
        inner = [f"a = tl.load({here})", *([] if fixed else [weight]), "c = tl.dot(a, w)"]
        if draw.chance(0.3):
            inner.insert(0, inner.pop(1)) if not fixed else None
    else:
        other = draw.pick(f"tl.load({there})", "a", "i")
        inner = [f"a = tl.load({here}).to(tl.float32)", f"c = a * 0.5 + {other} + 1.0"]
    inner += [f"tl.store({there}, c.to({to}))"]
    inner += ["p += " + step] if walked else []
    if draw.chance(0.2):
        inner = [inner[0], (f"if {arguments.scalar('mode')} != 2:", inner[1:-1] + inner[-1:])] if not walked else inner
    body += [(head, inner)]
    if walked and draw.chance(0.5):
        body += [
            f"p -= {step}",
            f"tl.store({arguments.pointer('y_ptr', '*fp32')} + pid * 2048 + o, tl.load(p).to(tl.float32))",
        ]
    return arguments.kernel(body, "in place", [(1,), (2,)])


def modes(draw: Draw) -> RandomKernel:
    """Branches on run-time scalars and on constants, early returns, `while`; each branch changes what follows."""
    arguments, kind, _ = _tiles(draw)
    a, c = arguments.pointer("a_ptr", kind), arguments.pointer("c_ptr", "*fp32")
    mode, k = arguments.scalar("mode"), arguments.scalar("K")
    arguments.fixed("FLAG", draw.pick(0, 1, 2))
    body: list = ["pid = tl.program_id(0)", "r = tl.arange(0, B)", "o = r[:, None] * B + r[None, :]"]
    body += ["acc = tl.zeros((B, B), tl.float32)", "step = B", "m = r", f"p = {a} + o"]
    if draw.chance(0.3):
        body += [(f"if pid >= {arguments.scalar('tiles')}:", ["return"])]
    loops = [
        (
            f"for kk in range(0, {k}, B):",
            ["m = kk + r", f"x = tl.load({a} + r[:, None] * 128 + m[None, :])", "acc = tl.dot(x, x, acc)"],
        ),
        (f"for kk in range(0, {k}, B):", ["x = tl.load(p)", "acc = tl.dot(x, x, acc)", "p += step"]),
        (f"for kk in range({k}, 0, -B):", ["x = tl.load(p)", "p += step * B", "acc = tl.dot(x, tl.trans(x), acc)"]),
        ("while step > 2:", ["acc += tl.load(p).to(tl.float32)", "step //= 2", "p += step"]),
    ]
    changes = [
        "m += 1",
        "step = 2 * B",
        "p -= B",
        "acc = acc * 0.5",
        "p += step",
        "m = m - step",
        "acc += m[None, :]",
        "step -= 3",
    ]
    tests = [
        f"{mode} == 2",
        f"{mode} > 0",
        f"{mode} == 0",
        "pid % 2 == 1",
        "FLAG == 1",
        "FLAG != 0",
        f"{k} > 2 * B",
        f"({mode} == 2) & (pid == 0)",
    ]
    for _ in range(draw.number(2, 4)):
        test = draw.pick(*tests)
        first = [*([draw.pick(*loops)] if draw.chance(0.5) else []), *draw.some(changes, 0, 2)]
        second = [*([draw.pick(*loops)] if draw.chance(0.3) else []), *draw.some(changes, 0, 2)]
        shape = draw.number(0, 3)
        if shape == 0:
            body += first
        elif shape == 1:
            body += [(f"if {test}:", first)]
        elif shape == 2:
            body += [(f"if {test}:", first, "else:", second)]
        else:
            body += [(f"if {test}:", first, f"elif {draw.pick(*tests)}:", second, "else:", draw.some(changes, 0, 1))]
    body += [f"tl.store({c} + pid * 2048 + o, acc + m[:, None] + step + tl.load(p))"]
    return arguments.kernel(body, "modes", [(2,), (1,), (3,)])
