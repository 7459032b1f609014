"""Operations that a template does not spell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

from gluonize.gluon import own_builtins
from gluonize.gluon.own_builtins import MFMA_TF32
from gluonize.raised import control
from gluonize.raised.libdevice import function_of
from gluonize.raised.specialized import specialize
from gluonize.raised.table import ROWS
from gluonize.raised.text import ATOM, UNARY, Written, number
from gluonize.raised.writer import Writer
from gluonize.rules import ptx
from gluonize.rules.targets import target
from gluonize.trace.model.language import COMPARISONS, UNSIGNED_COMPARISONS
from gluonize.trace.model.layouts import Mfma, Slice, Wmma
from gluonize.trace.model.op import Op
from gluonize.trace.model.op_text import VALUES
from gluonize.trace.model.types import Type

Handler = Callable[[Writer, Op], None]
_NOT_FLOATS = {"ult": ">=", "ule": ">", "ugt": "<=", "uge": "<"}
_POLICY = re.compile(r"cache_modifier = (\w+), eviction_policy = (\w+)")
_ATOMICS = {"fadd": "add", "exch": "xchg"} | {kind: kind for kind in ("add", "max", "min", "and", "or", "xor")}
_TDM = "gl.amd.cdna5.tdm"
_BARRIER = "gl.amd.cdna5.mbarrier"


def constant(w: Writer, op: Op) -> None:
    kind, found = op.type, op.constant
    if not found.only:
        raise w.refuse(op, "a tensor of different numbers")
    text = number(found.only, kind)
    form, element = "", w.dtype(op, kind)
    if text == "-0.0":  # a number that is 0 has no sign in Triton's language
        form, text = "(-{})", "0.0"
    elif text is None and kind.element.startswith("f8"):
        form, text, element = f"{{}}.to({element}, bitcast=True)", str(int(found.only, 16)), "gl.uint8"
    if form:
        value = Written(form.format(f"gl.full([], {text}, {element})"), kind)
        if kind.shape is not None:
            full = f"gl.full({w.shape(op, kind)}, {text}, {element}, {w.layout(op, kind)})"
            value = replace(value, full=form.replace("{}", full), shape=())
        w.values[op.results[0]] = value
        return
    if text is None:
        raise w.refuse(op, f"no literal gives {found.only}")
    level = UNARY if text.startswith("-") else ATOM
    value = Written(text, kind, level, literal=True)
    if kind.shape is not None:
        value = replace(value, full=_full(w, op, kind), shape=())
    w.values[op.results[0]] = value


def _full(w: Writer, op: Op, kind: Type) -> str:
    """A tensor of equal numbers."""
    return f"gl.full({w.shape(op, kind)}, {{}}, {w.dtype(op, kind)}, {w.layout(op, kind)})"


def splat(w: Writer, op: Op) -> None:
    source, kind = w.read(op.operands[0]), op.type
    w.always(op.results[0], replace(source, type=kind, full=_full(w, op, kind), shape=()), op)


def broadcast(w: Writer, op: Op) -> None:
    source, kind = w.read(op.operands[0]), op.type
    if source.shape == ():
        w.always(op.results[0], replace(source, type=kind, full=_full(w, op, kind)), op)
        return
    source = source.whole
    wanted = w.layout_of(op, kind)
    if w.layout_of(op, source.type) != wanted:
        source = Written(f"gl.convert_layout({source.text}, {w.spell(wanted, op)})", source.type)
    full = f"{{}}.broadcast_to({w.shape(op, kind)})"
    w.always(op.results[0], replace(source, type=kind, full=full, shape=source.type.shape), op)


def expand_dims(w: Writer, op: Op) -> None:
    source, kind, axis = w.read(op.operands[0]).whole, op.type, op.attribute("axis")
    wanted = Slice(axis, w.layout_of(op, kind))
    if w.layout_of(op, source.type) != wanted:
        layout = w.spell(wanted, op)
        source = Written(f"gl.convert_layout({source.text}, {layout})", source.type)
    index = ", ".join("None" if d == axis else ":" for d in range(len(kind.shape or ())))
    w.always(op.results[0], Written(f"{source.at(ATOM)}[{index}]", kind), op)


def compare(w: Writer, op: Op) -> None:
    kind, word = op.type, op.word
    operands = w.broadcast([w.read(value) for value in op.operands], kind.shape)
    if op.name == "arith.cmpi" and word in UNSIGNED_COMPARISONS:
        operands = [w.without_sign(operand) for operand in operands]
        sign = UNSIGNED_COMPARISONS[word]
    elif word in COMPARISONS:
        sign = COMPARISONS[word]
    elif word in _NOT_FLOATS:
        made = w.operator(f"{{0}} {_NOT_FLOATS[word]} {{1}}", operands)
        w.keep(op, Written(f"~({made.text})", kind, UNARY), True)
        return
    elif word == "uno" and op.operands[0] == op.operands[1]:
        sign = "!="
    elif word == "ord" and op.operands[0] == op.operands[1]:
        sign = "=="
    else:
        raise w.refuse(op, f"no operator compares like {word}")
    w.keep(op, replace(w.operator(f"{{0}} {sign} {{1}}", operands), type=kind), True)


def divide(w: Writer, op: Op) -> None:
    """A quotient, or a number of tiles: what is added to round up is one less than what it is divided by."""
    more, by = (w.called.origins.made.get(value) for value in op.operands)
    rest = w.called.origins.made.get(more.operands[1]) if more is not None and more.name == "arith.addi" else None
    if (
        by is None
        or rest is None
        or by.name != "arith.constant"
        or rest.name != "arith.constant"
        or w.uses[op.operands[0]] > 1
    ):
        return w.by_row(op, ROWS[op.name])
    number, up = by.constant.integer, rest.constant.integer
    sum_ = w.read(op.operands[0])
    if number is None or number != (up or 0) + 1 or not sum_.text.endswith(f" + {up}"):
        return w.by_row(op, ROWS[op.name], (sum_, w.read(op.operands[1])))
    text = f"gl.cdiv({sum_.text.removesuffix(f' + {up}')}, {w.read(op.operands[1]).text})"
    w.keep(op, Written(text, op.type), True)


def xor(w: Writer, op: Op) -> None:
    right = w.values.get(op.operands[1])
    if right is not None and right.literal and right.text in ("True", "-1"):
        source = w.read(op.operands[0]).whole
        w.keep(op, Written(f"~{source.at(UNARY)}", op.type, UNARY), True)
    else:
        w.by_row(op, ROWS[op.name])


def extended(w: Writer, op: Op) -> None:
    """Types without a sign."""
    source, kind = w.read(op.operands[0]).whole, op.type
    text = source.at(ATOM)
    if source.type.element != "i1":
        text += f".to({w.unsigned(op, source.type)})"
    w.keep(op, Written(f"{text}.to({w.dtype(op, kind)})", kind), True)


def signed(w: Writer, op: Op) -> None:
    source, kind = w.read(op.operands[0]).whole, op.type
    made = f"{source.at(ATOM)}.to({w.dtype(op, kind)})"
    level = ATOM
    if source.type.element == "i1":
        made, level = (f"0 - {made}", 6) if op.name == "arith.extsi" else (f"-{made}", UNARY)
    w.keep(op, Written(made, kind, level), True)


def truncated(w: Writer, op: Op) -> None:
    source, kind = w.read(op.operands[0]).whole, op.type
    if kind.element == "i1":
        w.keep(op, Written(f"({source.at(5)} & 1) != 0", kind, 1), True)
    else:
        w.keep(op, Written(f"{source.at(ATOM)}.to({w.dtype(op, kind)})", kind), True)


def converted_float(w: Writer, op: Op) -> None:
    source, kind = w.read(op.operands[0]).whole, op.type
    rounding = op.attribute("rounding") or "rtne"
    more = "" if rounding == "rtne" else f', fp_downcast_rounding="{rounding}"'
    w.keep(op, Written(f"{source.at(ATOM)}.to({w.dtype(op, kind)}{more})", kind), True)


def add_pointer(w: Writer, op: Op) -> None:
    base, offset = (w.read(value) for value in op.operands[:2])
    kind = op.type
    if offset.literal and offset.type.element != "i32":
        offset = offset.whole if offset.full else w.typed(offset)
    base, offset = w.broadcast([base, offset], kind.shape)
    w.keep(op, replace(w.operator("{0} + {1}", [base, offset]), type=kind), True)


# Memory


def _arguments(*parts: str | None, **named: str | None) -> str:
    """The arguments of a call; None: the default. A default in the middle makes what follows named."""
    out = [part for part in parts if part is not None]
    out += [f"{name}={text}" for name, text in named.items() if text is not None]
    return ", ".join(out)


def _mask(w: Writer, value: str | None) -> str | None:
    """A mask, None of one that is always true."""
    if value is None:
        return None
    mask = w.read(value)
    return None if mask.literal and mask.text == "True" else (mask.whole if mask.literal else mask).text


def _other(w: Writer, value: str | None) -> str | None:
    return None if value is None else w.read(value).text


def _policy(w: Writer, op: Op) -> dict[str, str | None]:
    found = _POLICY.search(op.text)
    modifier, eviction = found.groups() if found else ("none", "evict_normal")
    eviction = "" if eviction in ("evict_normal", "none") else eviction
    return {
        "cache_modifier": f'".{modifier}"' if modifier != "none" else None,
        "eviction_policy": f'"{eviction}"' if eviction else None,
        "volatile": "True" if op.attribute("isVolatile") else None,
    }


def load(w: Writer, op: Op) -> None:
    pointer = w.read(op.operands[0]).whole
    mask, other = (op.operands[1:] + (None, None))[:2]
    text = _arguments(pointer.text, mask=_mask(w, mask), other=_other(w, other), **_policy(w, op))
    w.keep(op, Written(f"gl.load({text})", op.type), False)


def store(w: Writer, op: Op) -> None:
    pointer, value = (w.read(operand).whole for operand in op.operands[:2])
    mask = op.operands[2] if len(op.operands) > 2 else None
    text = _arguments(pointer.text, value.text, mask=_mask(w, mask), **_policy(w, op))
    w.statement(op, f"gl.store({text})")


def _cache(op: Op) -> str | None:
    policy = _POLICY.search(op.text)
    found = policy[1] if policy else op.attribute("cacheModifier") or op.attribute("cache")
    return f'".{found}"' if found and found != "none" else None


def buffer_load(w: Writer, op: Op) -> None:
    base, offsets, mask, other = op.buffer
    pointer, offset = w.read(base), w.read(offsets).whole
    masked = _mask(w, mask)
    filled = None if masked is None else _other(w, other)
    text = _arguments(pointer.text, offset.text, mask=masked, other=filled, cache=_cache(op))
    w.keep(op, Written(f"{w.buffers}.buffer_load({text})", op.type), False)


def buffer_store(w: Writer, op: Op) -> None:
    value = w.read(op.operands[0]).whole
    base, offsets = op.operands[1:3]
    rest = [v for i, v in enumerate(op.operands[3:], 3) if i != op.keyword("stride")]
    pointer, offset = w.read(base), w.read(offsets).whole
    mask = _mask(w, rest[0] if rest else None)
    text = _arguments(value.text, pointer.text, offset.text, mask=mask, cache=_cache(op))
    w.statement(op, f"{w.buffers}.buffer_store({text})")


def buffer_copy(w: Writer, op: Op) -> None:
    base, offsets, mask, other = op.buffer
    into = w.read(op.operands[op.keyword("into")])
    pointer, offset = w.read(base), w.read(offsets).whole
    text = _arguments(
        into.text, pointer.text, offset.text, mask=_mask(w, mask), other=_other(w, other), cache_modifier=_cache(op)
    )
    w.statement(op, f"{w.copies}.buffer_load_to_shared({text})")


def global_copy(w: Writer, op: Op) -> None:
    pointer, into = w.read(op.operands[0]).whole, w.read(op.operands[1])
    mask, other = op.keyword("mask"), op.keyword("other")
    found = _POLICY.search(op.text)
    text = _arguments(
        into.text,
        pointer.text,
        mask=_mask(w, None if mask is None else op.operands[mask]),
        other=_other(w, None if other is None else op.operands[other]),
        cache_modifier=f'".{found.group(1)}"' if found and found.group(1) != "none" else None,
    )
    name = "global_load_to_shared" if target(w.shared.target).copies_take_buffers else "global_to_shared"
    w.statement(op, f"{w.copies}.{name}({text})")


def wait(w: Writer, op: Op) -> None:
    count = w.groups_since("ttg.async_commit_group", op) if op.operands else op.attribute("num")
    w.statement(op, f"{w.copies}.wait_group({count})")


def local_alloc(w: Writer, op: Op) -> None:
    kind = op.type
    tile = kind.shape
    attribute = w.module.attribute(kind)
    bases = attribute.get("offset")
    rank = len(attribute.get("order") or (bases[0] if bases else tile))
    tile = tile[len(tile) - rank :]
    layout = f"{_BARRIER}.MBarrierLayout()" if _is_barrier(w, kind) else w.shared_layout(op, kind, tile)
    parts = [w.dtype(op, kind), w.shape(op, kind), layout]
    if op.operands:
        parts.append(w.read(op.operands[0]).whole.text)
    w.flush()
    w.assign(op.results[0], Written(f"gl.allocate_shared_memory({', '.join(parts)})", kind), op)


def _is_barrier(w: Writer, kind: Type) -> bool:
    """Whether memory is for barriers, of which nothing but the type tells."""
    return w.module.has("amdg.init_barrier") and kind.element == "i64" and kind.shape[-1] == 1


def reshape(w: Writer, op: Op) -> None:
    """A change of shape. Where Triton leaves elements in their place because what comes next is a reduction, to which order is nothing,
    the reduction is written of what there is: Gluon has no such reshape."""
    if not w.is_reduced(op):
        w.by_row(op, ROWS["tt.reshape"])
        return
    source, kind = w.read(op.operands[0]).whole, op.type
    if source.type.shape != kind.shape:
        source = Written(f"{source.at(ATOM)}.reshape({w.shape(op, kind)})", kind)
    w.keep(op, replace(source, type=kind), True)


def subslice(w: Writer, op: Op) -> None:
    source, kind = w.read(op.operands[0]), op.type
    text = source.text
    for dim, (first, size, whole) in enumerate(zip(op.indices, kind.shape, source.type.shape)):
        if size != whole:
            text += f".slice({first}, {size}, {dim})"
    w.keep(op, Written(text, kind), True)


def local_load(w: Writer, op: Op) -> None:
    source, kind = w.read(op.operands[0]), op.type
    layout = w.layout(op, kind)
    token = op.keyword("token")
    waited = token is not None and w.groups("ttg.async_commit_group").origin(op.operands[token]) == "ttg.async_wait"
    waited |= bool(op.attribute("ttg.amdg.syncedViaAsyncWait"))  # what Gluon's own relaxed load leaves in a module
    if waited and target(w.shared.target).relaxed_lds_reads:
        text = f"{w.copies}.load_shared_relaxed({source.text}, {layout})"
    else:
        text = f"{source.at(ATOM)}.load({layout})"
    w.keep(op, Written(text, kind), False)


def dot(w: Writer, op: Op) -> None:
    a, b, acc = (w.read(value).whole for value in op.operands[:3])
    layout = w.module.layout(op.type)
    precision = op.attribute("inputPrecision") or "ieee"
    if a.type.element == "f32" and precision != "ieee" and isinstance(layout, (Mfma, Wmma)):
        if precision != "tf32" or isinstance(layout, Wmma):
            raise w.refuse(op, f"a product of fp32 in {precision}")
        w.keep(op, Written(f"{w.builtin('mfma_tf32', MFMA_TF32)}({a.text}, {b.text}, {acc.text})", op.type), False)
        return
    if isinstance(layout, Mfma):
        name = f"amd.cdna{4 if layout.version == 4 else 3}.mfma"
    elif isinstance(layout, Wmma):
        name = {1: "amd.rdna3.wmma", 2: "amd.rdna4.wmma", 3: "amd.cdna5.wmma"}[layout.version]
    else:
        name = "dot_fma"
    w.keep(op, Written(f"gl.{name}({a.text}, {b.text}, {acc.text}{_registers(op)})", op.type), False)


def _registers(op: Op) -> str:
    """In which registers the instruction sums."""
    chosen = op.attribute("amdg.cd_regclass")
    return f', cd_regclass="{chosen}"' if chosen else ""


def scaled_dot(w: Writer, op: Op) -> None:
    layout = w.module.layout(op.type)
    scaled = op.keywords("scale")
    operands = [i for i in range(len(op.operands)) if i not in scaled]
    scales: list[str] = ["None", "None"]
    for at in scaled:
        scales[operands.index(at - 1)] = w.read(op.operands[at]).whole.text
    a, b, acc = (w.read(op.operands[i]).whole for i in operands[:3])
    if op.attribute("lhs_k_pack") is False or op.attribute("rhs_k_pack") is False:
        raise w.refuse(op, "operands that are packed along another dimension than K")
    left, right = op.attribute("lhs"), op.attribute("rhs")
    a, b = (w.without_sign(x) if form == "e2m1" else x for x, form in ((a, left), (b, right)))
    name = "amd.cdna4.mfma_scaled" if isinstance(layout, Mfma) else "amd.cdna5.wmma_scaled"
    text = f'gl.{name}({a.text}, {scales[0]}, "{left}", {b.text}, {scales[1]}, "{right}", {acc.text}{_registers(op)})'
    if scales == ["None", "None"]:
        own = w.builtin(*own_builtins.unscaled(left, right, name.rpartition(".")[2]))
        text = f"{own}({a.text}, {b.text}, {acc.text})"
    w.keep(op, Written(text, op.type), False)


def scaled_upcast(w: Writer, op: Op) -> None:
    x, scale = (w.read(value).whole for value in op.operands)
    kind, axis = op.type, op.attribute("axis")
    if scale.type.element == "i8":
        along = "" if axis is None else f", {axis}"
        text = f"{w.buffers}.scaled_upcast({x.text}, {scale.text}, {w.dtype(op, kind)}{along})"
    else:
        name = w.builtin(*own_builtins.scaled_upcast(op.name[-3:], w.dtype(op, kind), axis))
        text = f"{name}({x.text}, {scale.text})"
    w.keep(op, Written(text, kind), True)


def call(w: Writer, op: Op) -> None:
    operands = ", ".join(w.read(value).whole.text for value in op.operands)
    text = f"{w.shared.functions[op.callee]}({operands})"
    if not op.results:
        w.statement(op, text)
    elif len(op.results) == 1:
        w.keep(op, Written(text, op.type), False)
    else:
        w.several(op, text)


def histogram(w: Writer, op: Op) -> None:
    source = w.read(op.operands[0]).whole
    mask = _mask(w, op.operands[1] if len(op.operands) > 1 else None)
    kind = op.type
    text = _arguments(source.text, str(kind.shape[0]), mask=mask, layout=w.layout(op, kind))
    w.keep(op, Written(f"gl.histogram({text})", kind), False)


def index(w: Writer, op: Op) -> None:
    source, kind = w.read(op.operands[0]), op.type
    one = bool(source.type.shape) and source.type.shape[0] == 1
    slot = "0" if one else w.read(op.operands[1]).text
    w.keep(op, Written(f"{source.at(ATOM)}.index({slot})", kind), True)


def _atomic_name(w: Writer, op: Op) -> str:
    if op.words[0] not in _ATOMICS:
        raise w.refuse(op, f"an atomic {op.words[0]}")
    return f"atomic_{_ATOMICS[op.words[0]]}"


def atomic(w: Writer, op: Op) -> None:
    sem, scope = op.words[1:3]
    pointer, value = (w.read(operand).whole for operand in op.operands[:2])
    mask = _mask(w, op.operands[2] if len(op.operands) > 2 else None)
    text = _arguments(pointer.text, value.text, mask=mask, sem=f'"{sem}"', scope=f'"{scope}"')
    w.keep_or_say(op, Written(f"gl.{_atomic_name(w, op)}({text})", op.type))


def buffer_atomic(w: Writer, op: Op) -> None:
    kind, sem, scope = op.words[:3]
    value, base, offsets = op.operands[:3]
    made, pointer, offset = w.read(value).whole, w.read(base), w.read(offsets).whole
    mask = _mask(w, op.operands[3] if len(op.operands) > 3 else None)
    text = pointer.text
    if kind == "add":
        signless = w.unsigned(op, made.type)
        text = f"{pointer.at(ATOM)}.to(gl.pointer_type({signless}))"
        made = w.without_sign(made)
    family = "cdna4" if made.type.element == "bf16" else "cdna3"
    parts = _arguments(text, offset.text, made.text, mask=mask, sem=f'"{sem}"', scope=f'"{scope}"')
    text = f"gl.amd.{family}.buffer_{_atomic_name(w, op)}({parts})"
    if kind == "add" and op.results and w.uses[op.results[0]]:
        text += f".to({w.dtype(op, op.type)})"  # of the type of the pointer, which has no sign here
    w.keep_or_say(op, Written(text, op.type))


def atomic_access(w: Writer, op: Op) -> None:
    """A load or a store, or a poll: no mask is one that is always true."""
    sem, scope = op.words[:2]
    stores, polls = op.name == "tt.atomic_store", op.name == "tt.atomic_poll"
    count = 1 + (stores or polls)
    parts = [w.read(value).whole.text for value in op.operands[:count]]
    rest = op.operands[count] if len(op.operands) > count else None
    named = {"timeout_ns": rest and w.read(rest).text} if polls else {"mask": _mask(w, rest)}
    text = _arguments(*parts, **named, sem=f'"{sem}"', scope=f'"{scope}"')
    w.keep_or_say(op, Written(f"gl.{op.name.removeprefix('tt.')}({text})", op.type if op.results else Type("none")))


def device_print(w: Writer, op: Op) -> None:
    signed = op.integers("isSigned")
    values = [w.read(value).whole for value in VALUES.findall(op.text)]
    values = [
        w.without_sign(value) if value.type.kind == "int" and not sign else value for value, sign in zip(values, signed)
    ]
    hexadecimal = "True" if op.attribute("hex") else None
    text = _arguments(json.dumps(op.string), *(value.text for value in values), hex=hexadecimal)
    w.statement(op, f"gl.device_print({text})")


def inline_asm(w: Writer, op: Op) -> None:
    if ptx.is_dropped(op.string):
        raise w.refuse(
            op, "this is PTX, which the compiler for AMD GPUs leaves out: what the module computes is undefined"
        )
    asm, constraints = json.dumps(op.string), json.dumps(op.attribute("constraints"))
    operands = ", ".join(w.read(value).whole.text for value in VALUES.findall(op.body.rpartition("}")[2]))
    kinds = [w.dtype(op, kind) for kind in op.result_types]
    types = kinds[0] if len(kinds) == 1 else f"({', '.join(kinds)})"
    pure, pack = bool(op.attribute("pure")), op.attribute("packed_element")
    text = f"gl.inline_asm_elementwise({asm}, {constraints}, [{operands}], {types}, {pure}, {pack})"
    if len(kinds) == 1:
        w.keep(op, Written(text, op.type), pure)
    else:
        w.several(op, text)


def asm_of_threads(w: Writer, op: Op) -> None:
    """Assembly that each thread runs once, with what it gives."""
    operands = ", ".join(w.read(value).whole.text for value in op.operands)
    if op.results:
        raise w.refuse(op, "Gluon's form of it names the layouts of what it gives, which is not known here")
    given = _arguments(
        json.dumps(op.string), *([json.dumps(op.attribute("constraints")), f"[{operands}]"] if operands else [])
    )
    w.statement(op, f"gl.inline_asm({given})")


def external(w: Writer, op: Op) -> None:
    symbol = op.attribute("symbol")
    name = function_of(symbol)
    if name is None:
        raise w.refuse(op, f"no function of libdevice calls {symbol}")
    operands = ", ".join(w.read(value).whole.text for value in op.operands)
    w.keep(op, Written(f"gl.extra.libdevice.{name}({operands})", op.type), True)


def sched_barrier(w: Writer, op: Op) -> None:
    if op.word == "none":
        w.statement(op, "gl.amd.hint.sched_barrier()")
    elif op.word in own_builtins.CROSSING:
        w.statement(op, f"{w.builtin(*own_builtins.sched_barrier(op.word))}()")
    else:
        raise w.refuse(op, f"a barrier that {op.word} may cross")


# Tensor data mover


def descriptor(w: Writer, op: Op) -> None:
    base = w.read(op.operands[0])
    lists_of = []
    for which in range(2):
        first, last = op.bracket(which)
        lists_of.append(f"[{', '.join(w.read(v).text for v in op.operands[first:last])}]")
    kind = op.type
    tile = f"{w.shape(op, kind)}, {w.shared_layout(op, kind, kind.shape)}"
    text = f"{_TDM}.make_tensor_descriptor({base.text}, {', '.join(lists_of)}, {tile})"
    w.keep(op, Written(text, kind), True)


def update_descriptor(w: Writer, op: Op) -> None:
    source = w.read(op.operands[0])
    named: dict[str, str | None] = {}
    for name in ("add_offsets", "set_bounds"):
        values = op.listed(name)
        named[name] = f"[{', '.join(w.read(v).text for v in values)}]" if values else None
    pred = op.keyword("pred")
    named["pred"] = None if pred is None else w.read(op.operands[pred]).text
    named["clamp_bounds"] = "True" if "clamp_bounds" in op.text else None
    text = _arguments(source.text, **named)
    kind = source.type
    w.keep(op, Written(f"{_TDM}.update_tensor_descriptor({text})", kind), True)


def _of_copy(w: Writer, op: Op) -> dict[str, str | None]:
    """What a copy of the data mover is given by name."""
    barrier, hint, cache = op.keyword("barrier"), op.attribute("warp_used_hint"), _cache(op)
    return {
        "mbarrier": None if barrier is None else w.read(op.operands[barrier]).text,
        "warp_used_hint": None if hint is None else bin(hint),
        "cache_modifier": cache,
    }


def tdm_copy(w: Writer, op: Op) -> None:
    loads = op.name.endswith("to_local")
    desc, tile = (w.read(op.operands[at]).text for at in (0, op.keyword("into" if loads else "from")))
    text = _arguments(desc, **{"dest" if loads else "src": tile}, **_of_copy(w, op))
    w.statement(op, f"{_TDM}.async_{'load' if loads else 'store'}({text})")


def tdm_rows(w: Writer, op: Op) -> None:
    """Rows that a tensor names."""
    descriptor, rows, tile = (w.read(value).whole for value in op.operands[:3])
    text = _arguments(descriptor.text, rows.text, tile.text, mbarrier=_of_copy(w, op)["mbarrier"])
    w.statement(op, f"{_TDM}.async_{op.name.rpartition('_')[2]}({text})")


def tdm_wait(w: Writer, op: Op) -> None:
    if op.operands:
        count = w.groups_since("amdg.async_tdm_copy_global_to_local", op)
    else:
        count = op.attribute("num")
    w.statement(op, f"{_TDM}.async_wait({count})")


# Barriers in LDS


HANDLERS: dict[str, Handler] = {
    "arith.constant": constant,
    "tt.splat": splat,
    "tt.broadcast": broadcast,
    "tt.reshape": reshape,
    "tt.expand_dims": expand_dims,
    "arith.cmpi": compare,
    "arith.cmpf": compare,
    "arith.divsi": divide,
    "arith.xori": xor,
    "arith.extui": extended,
    "arith.uitofp": extended,
    "arith.extsi": signed,
    "arith.sitofp": signed,
    "arith.trunci": truncated,
    "tt.fp_to_fp": converted_float,
    "tt.addptr": add_pointer,
    "tt.load": load,
    "tt.store": store,
    "amdg.buffer_load": buffer_load,
    "amdg.buffer_store": buffer_store,
    "amdg.buffer_load_to_local": buffer_copy,
    "ttg.async_copy_global_to_local": global_copy,
    "ttg.async_wait": wait,
    "ttg.local_alloc": local_alloc,
    "ttg.local_load": local_load,
    "ttg.memdesc_subslice": subslice,
    "ttg.memdesc_index": index,
    "tt.dot": dot,
    "tt.dot_scaled": scaled_dot,
    "amdg.scaled_upcast_fp4": scaled_upcast,
    "amdg.scaled_upcast_fp8": scaled_upcast,
    "tt.call": call,
    "tt.histogram": histogram,
    "tt.atomic_rmw": atomic,
    "amdg.buffer_atomic_rmw": buffer_atomic,
    **dict.fromkeys(("tt.atomic_load", "tt.atomic_store", "tt.atomic_poll"), atomic_access),
    "tt.print": device_print,
    "tt.elementwise_inline_asm": inline_asm,
    "ttg.inline_asm": asm_of_threads,
    "tt.extern_elementwise": external,
    "rocdl.sched.barrier": sched_barrier,
    "tt.make_tensor_descriptor": descriptor,
    "amdg.update_tensor_descriptor": update_descriptor,
    "amdg.async_tdm_copy_global_to_local": tdm_copy,
    "amdg.async_tdm_copy_local_to_global": tdm_copy,
    "amdg.async_tdm_gather": tdm_rows,
    "amdg.async_tdm_scatter": tdm_rows,
    "amdg.async_tdm_wait": tdm_wait,
    "ttg.warp_specialize": specialize,
    "scf.for": control.for_loop,
    "scf.while": control.while_loop,
    "scf.if": control.branch,
    "tt.map_elementwise": control.elementwise,
    "tt.reduce": control.reduction,
    "tt.scan": control.reduction,
    "tt.return": control.leave,
}
