"""How each builtin of `triton.language` is written in Gluon: one row per name.

`kind` says how layouts flow through the call, and so which code of `translator/rewrite` writes it:

* `elementwise`: every tensor argument has the layout of the result;
* `creator`: the result gets a layout argument;
* `load`, `store`, `atomic`: addresses, masks and values share one layout;
* `reduce`, `scan`: along an axis of the operand's layout;
* `shape`: the result's layout follows from the operand's;
* `dot`, `gather`, `histogram`, `descriptor`: as named;
* `helper`: Triton's own library source is translated like a user's helper;
* `same`: nothing depends on layouts;
* `refuse`: has no meaning on these targets; `note` says what to do.

`gluon` is the Gluon spelling where it differs from `gl.<name>`; names that `gl` lacks but that Gluon accepts through
`triton.language` are spelled `tl.<name>`. Verified on Triton 3.9.0.
"""

from __future__ import annotations

from dataclasses import dataclass

KINDS = (
    "elementwise creator load store atomic reduce scan shape dot dot_scaled gather histogram descriptor helper same refuse"
).split()


@dataclass(frozen=True)
class Row:
    name: str
    kind: str
    gluon: str = ""
    cost: str = "cheap"  # `heavy`: recomputing it in a second layout costs more than a conversion
    note: str = ""

    def __post_init__(self):
        assert self.kind in KINDS, f"row {self.name}: unknown kind {self.kind}"
        assert self.cost in ("cheap", "heavy"), f"row {self.name}: unknown cost {self.cost}"


def _rows(names: str, kind: str, **fields) -> list[Row]:
    return [Row(name, kind, **fields) for name in names.split()]


ROWS: tuple[Row, ...] = (
    *_rows("program_id num_programs static_assert static_print assume device_assert", "same"),
    *_rows("expect_zero to_tensor constexpr static_range range item", "same"),
    Row("debug_barrier", "same", "gl.barrier"),
    *_rows(
        "add sub mul where maximum minimum clamp abs cast multiple_of max_contiguous max_constancy umulhi mulhi"
        " cdiv ravel_index logical_and logical_or to fma",
        "elementwise",
    ),
    *_rows(
        "exp exp2 log log2 sin cos sqrt sqrt_rn rsqrt floor ceil erf fdiv div_rn sigmoid pow tanh",
        "elementwise",
        cost="heavy",
    ),
    *_rows(
        "rand randn randint randint4x rand4x randn4x philox philox_impl pair_uniform_to_normal"
        " uint_to_uniform_float map_elementwise inline_asm_elementwise",
        "elementwise",
        cost="heavy",
    ),
    Row("swizzle2d", "elementwise"),
    Row("device_print", "elementwise", cost="heavy"),
    *_rows("arange full zeros zeros_like", "creator"),
    Row("load", "load", cost="heavy"),
    Row("store", "store", cost="heavy"),
    *_rows(
        "atomic_add atomic_and atomic_or atomic_xor atomic_max atomic_min atomic_xchg atomic_cas atomic_load"
        " atomic_store atomic_poll",
        "atomic",
        cost="heavy",
    ),
    *_rows("sum max min xor_sum reduce_or reduce argmax argmin", "reduce", cost="heavy"),
    *_rows("cumsum cumprod associative_scan", "scan", cost="heavy"),
    *_rows("expand_dims broadcast_to broadcast", "shape"),
    *_rows("reshape view ravel trans permute join split interleave cat squeeze unsqueeze", "shape", cost="heavy"),
    *_rows("flip sort topk bitonic_merge softmax", "helper", cost="heavy"),
    Row("gather", "gather", cost="heavy"),
    Row("histogram", "histogram", cost="heavy"),
    Row("dot", "dot", cost="heavy"),
    Row("dot_scaled", "dot_scaled", cost="heavy"),
    *_rows("make_tensor_descriptor load_tensor_descriptor store_tensor_descriptor", "descriptor", cost="heavy"),
    *_rows(
        "make_block_ptr advance", "refuse", note="block pointers were removed in Triton 3.9; use a tensor descriptor"
    ),
)

BY_NAME: dict[str, Row] = {}
for _row in ROWS:
    assert _row.name not in BY_NAME, f"two rows for {_row.name}"
    BY_NAME[_row.name] = _row
