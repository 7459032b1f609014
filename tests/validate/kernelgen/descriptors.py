"""Tensor descriptors made in the kernel: tiles that hang over every edge, corners below 0, loops of loads and stores."""

from __future__ import annotations

from kernelgen.draw import Draw, RandomKernel
from kernelgen.scalars import Arguments

WIDTH = 96


def descriptors(draw: Draw) -> RandomKernel:
    """Loads, stores or products of tiles of a descriptor."""
    size = draw.pick(16, 32)
    arguments = Arguments(draw, size)
    arguments.fixed("B", size)
    kind = draw.pick("*fp16", "*fp16", "*bf16", "*fp32")
    a = arguments.pointer("a_ptr", kind)
    c = arguments.pointer("c_ptr", "*fp32")
    k, rows = arguments.scalar("K"), draw.pick("K", arguments.scalar("n"), "40")
    rows = f"tl.maximum({rows}, 1)" if draw.chance(0.5) or rows == "n" else rows
    body: list = ["pid = tl.program_id(0)", "r = tl.arange(0, B)", "acc = tl.zeros((B, B), tl.float32)", "y = 0"]
    body += [
        f"a_desc = tl.make_tensor_descriptor({a}, shape=[{rows}, {WIDTH}], strides=[{WIDTH}, 1], block_shape=[B, B])"
    ]
    corner = draw.pick(
        "0", "pid * B", "pid * B - 8", f"-{arguments.scalar('sh')}", arguments.scalar("sh"), "-B // 2", "y"
    )
    product = draw.chance(0.6)
    head, place = draw.pick(
        (f"for k0 in range(0, {k}, B):", "k0"),
        (f"for k0 in range(-B, {k}, B):", "k0"),
        (f"for k0 in tl.range({k}, -B, -B):", "k0"),
        (f"for t in range({arguments.scalar('trips')}):", "t * B - 8"),
        (f"for t in tl.range({arguments.scalar('trips')}, num_stages=3):", "y"),
    )
    at = draw.pick(f"[{corner}, {place}]", f"[{place}, {corner}]", f"[{corner}, {place} - {corner}]")
    inner: list = [f"a = a_desc.load({at})"]
    if product:
        other = draw.pick("a", "tl.trans(a)", "b")
        if other == "b":
            b = arguments.pointer("b_ptr", kind)
            body += [
                f"b_desc = tl.make_tensor_descriptor({b}, shape=[{k} + 1, B], strides=[{WIDTH}, 1], block_shape=[B, B])"
            ]
            inner += [f"b = b_desc.load([{place}, 0])"]
        inner += [f"acc = tl.dot(a, {other}, acc)"]
    else:
        inner += ["acc = acc * 0.5 + a.to(tl.float32)"]
    inner += draw.pick([], ["y += B"], ["y += 8"], ["y -= 4"])
    body += [(head, inner)] if draw.chance(0.85) else [line.replace("k0", "0").replace("t *", "2 *") for line in inner]
    body += draw.pick([], ["y += 1"], ["y //= 2"])
    if draw.chance(0.4):
        out = arguments.pointer("o_ptr", "*fp32")
        # Rows of the programs lie apart.
        body += [
            f"o_desc = tl.make_tensor_descriptor({out} + pid * 8192, shape=[40, {WIDTH}], strides=[{WIDTH}, 1], block_shape=[B, B])"
        ]
        body += [f"o_desc.store([{draw.pick('y', corner, '-4', '24')}, {draw.pick('0', '-8', '88', 'y')}], acc)"]
    body += [f"tl.store({c} + pid * 2048 + r[:, None] * B + r[None, :], acc + y)"]
    return arguments.kernel(body, "descriptors", [(2,), (1,), (3,)], per_target=True)
