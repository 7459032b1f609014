"""What operations mean that take elements from other places: constants, numbers of programs, shapes."""

from __future__ import annotations

from gluonize.judge.prove.op_table import row
from gluonize.judge.prove.proof_values import Access, NotProved, Tensor, again_shaped, indices, like, moved, wrap
from gluonize.judge.prove.symbolic_program import Machine
from gluonize.judge.prove.terms.elements import Term, Terms, bits, is_integer
from gluonize.trace.model.op import Op
from gluonize.trace.model.types import Type

AXES = {"x": 0, "y": 1, "z": 2}


# --- constants, numbers of programs, shapes


@row("arith.constant")
def constant(m: Machine, op: Op, given: list) -> list:
    kind, said, t = op.type, op.constant, m.terms
    if said.raw or not said.only:
        return [like(_table(m, op, kind), kind)]
    return [like(_scalar(t, said.only, kind.element), kind)]


def _scalar(t: Terms, text: str, element: str) -> Term:
    if element == "i1":
        return t.true if text in ("true", "1", "-1") else t.false
    if is_integer(element):
        return wrap(t, t.integer(int(text, 0)), element)
    return t.node("float", text, (), element)


def _table(m: Machine, op: Op, kind: Type) -> Term:
    t, at, number = m.terms, indices(m.terms, kind.shape), m.terms.integer(0)
    for x, n in zip(at, kind.shape):
        number = t.add(t.scaled(number, n), x)
    made = t.node("table", (op.constant.raw, op.constant.elements), (number,), kind.element)
    return t.integer_of(made) if is_integer(kind.element) else made


@row("ub.poison", "llvm.mlir.undef", "llvm.mlir.poison")
def poison(m: Machine, op: Op, given: list) -> list:
    return [like(m.unset(op.type.element, op.type.shape), op.type)]


@row("tt.get_program_id")
def program_id(m: Machine, op: Op, given: list) -> list:
    axis = AXES[op.word]
    own = m.tiles is not None and axis == 0
    return [Tensor(m.tiles[0] if own else m.terms.program(axis), (), "i32")]


@row("tt.get_num_programs")
def num_programs(m: Machine, op: Op, given: list) -> list:
    axis = AXES[op.word]
    own = m.tiles is not None and axis == 0
    return [Tensor(m.tiles[1] if own else m.terms.number_of_programs(axis), (), "i32")]


@row("tt.make_range")
def make_range(m: Machine, op: Op, given: list) -> list:
    start, end = op.attribute("start"), op.attribute("end")
    return [like(m.terms.add(m.terms.index(0, end - start), m.terms.integer(start)), op.type)]


@row("tt.splat", "tt.unsplat", "ttg.convert_layout", "amdg.in_thread_transpose", "gluon.set_auto_layout")
def same(m: Machine, op: Op, given: list) -> list:
    (x,) = given
    term = again_shaped(m.terms, x.term, x.shape, op.type.shape or ()) if op.name == "tt.unsplat" else x.term
    return [like(term, op.type)]


@row("tt.expand_dims")
def expand_dims(m: Machine, op: Op, given: list) -> list:
    (x,), shape = given, op.type.shape
    axis = op.attribute("axis")
    at = [m.terms.index(d + (d >= axis), n) for d, n in enumerate(x.shape)]
    assert shape is not None
    return [like(moved(m.terms, x.term, x.shape, at), op.type)]


@row("tt.broadcast")
def broadcast(m: Machine, op: Op, given: list) -> list:
    return [like(given[0].term, op.type)]  # an index of one element is 0 already


@row("tt.reshape")
def reshape(m: Machine, op: Op, given: list) -> list:
    (x,) = given
    if "allow_reorder" in op.body and m.side == 1:
        raise NotProved(
            "a reshape may order its elements anyhow", op
        )  # the source's does it as it suits: in row-major order
    return [like(again_shaped(m.terms, m.applied(x), x.shape, op.type.shape), op.type)]


@row("tt.trans")
def trans(m: Machine, op: Op, given: list) -> list:
    (x,) = given
    order = op.integers("order")
    at = [m.terms.integer(0)] * len(order)
    for d, source in enumerate(order):
        at[source] = m.terms.index(d, op.type.shape[d])
    return [like(moved(m.terms, x.term, x.shape, at), op.type)]


@row("tt.join")
def join(m: Machine, op: Op, given: list) -> list:
    a, b = given
    last = m.terms.index(len(a.shape), 2)
    return [like(m.terms.select(m.terms.is_zero(last), a.term, b.term), op.type)]


@row("tt.split")
def split(m: Machine, op: Op, given: list) -> list:
    (x,) = given
    front = indices(m.terms, x.shape)[:-1]
    return [
        like(moved(m.terms, x.term, x.shape, [*front, m.terms.integer(n)]), kind)
        for n, kind in enumerate(op.result_types)
    ]


@row("tt.cat")
def cat(m: Machine, op: Op, given: list) -> list:
    a, b = given
    t, at = m.terms, indices(m.terms, op.type.shape)
    first, n = t.less(at[0], t.integer(a.shape[0])), a.shape[0]
    left = t.assuming(a.term, []) if a.shape == op.type.shape else moved(t, a.term, a.shape, at)
    return [like(t.select(first, left, moved(t, b.term, b.shape, [t.add(at[0], t.integer(-n)), *at[1:]])), op.type)]


@row("amdg.extract_slice")
def extract_slice(m: Machine, op: Op, given: list) -> list:
    (x,) = given
    at = [
        m.terms.add(m.terms.index(d, n), m.terms.integer(s)) for d, (n, s) in enumerate(zip(op.type.shape, op.indices))
    ]
    return [like(moved(m.terms, x.term, x.shape, at), op.type)]


@row("amdg.concat")
def concat(m: Machine, op: Op, given: list) -> list:
    t, shape, tile = m.terms, op.type.shape, given[0].shape
    counts = [n // p for n, p in zip(shape, tile)]
    at = indices(t, shape)
    inner = [t.rem(x, t.integer(p)) for x, p in zip(at, tile)]
    which = t.integer(0)
    for x, p, n in zip(at, tile, counts):
        which = t.add(t.scaled(which, n), t.div(x, t.integer(p)))
    out = None
    for number in reversed(range(len(given))):
        part = moved(t, given[number].term, tile, inner)
        out = part if out is None else t.select(t.is_zero(t.add(which, t.integer(-number))), part, out)
    return [like(out, op.type)]


@row("tt.gather")
def gather(m: Machine, op: Op, given: list) -> list:
    source, where = given
    axis = op.attribute("axis")
    at = indices(m.terms, where.shape)
    at[axis] = m.terms.value(where.term, bits(where.element))
    return [like(moved(m.terms, source.term, source.shape, at), op.type)]


# --- no effect


@row(
    "rocdl.sched.barrier", "rocdl.s.setprio", "rocdl.iglp.opt", "rocdl.sched.group.barrier", "ttg.local_dealloc"
)  # fmt: skip
def no_effect(m: Machine, op: Op, given: list) -> list:
    return []


@row("llvm.intr.assume")
def assume(m: Machine, op: Op, given: list) -> list:
    """What a kernel promises has to hold, or the compiler may do anything: the source's promises are taken as kept, others are checked."""
    (condition,) = given
    loops = tuple(trips for _, trips in m.inside())
    if m.side == 0:
        m.promises.append((condition.term, tuple(m.conditions), loops))
    elif not any(
        term is condition.term and {*needs} <= {*m.conditions} and within == loops[: len(within)]
        for term, needs, within in m.promises
    ):
        t = m.terms  # asked when the loops around it are understood
        broken = t.no(m.decided(condition.term))
        m.accesses.append(
            Access(t.pointer(t.node("null", (), (), "ptr"), t.integer(0)), broken, 0, "assume", op, m.inside())
        )
    return []
