"""Write the reference pages that are made from tables: builtins, choices, errors and targets.

    python docs/generate_reference.py

A test fails while the pages differ from what this writes.
"""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "reference"
sys.path.insert(0, str(FOLDER.parents[1]))

from gluonize.rules.builtins import ROWS  # noqa: E402
from gluonize.rules.errors import ERRORS  # noqa: E402
from gluonize.rules.nvidia import NVIDIA, NvidiaRow  # noqa: E402
from gluonize.rules.rows import KINDS, LAYOUTS, Row  # noqa: E402
from gluonize.rules.choices import CHOICES, Choice  # noqa: E402
from gluonize.rules.targets import DEFAULT_TARGETS, TARGETS, Target  # noqa: E402
from gluonize.product.cli.review.targets import mapping  # noqa: E402

KIND_TEXTS = {
    "elementwise": "Every tensor argument has the layout of the result.",
    "creator": "The result gets a layout argument.",
    "load": "Address, mask and value share one layout; a buffer load, direct-to-LDS copy or TDM load where that is safe.",
    "store": "Address, mask and value share one layout; a buffer store where that is safe.",
    "atomic": "Address, mask and value share one layout; a buffer atomic where Triton makes one.",
    "reduce": "Along an axis of the operand's layout; the result has a slice of it.",
    "scan": "Along an axis of the operand's layout.",
    "shape": "The result's layout follows from the operand's.",
    "dot": "A matrix instruction with its operand layouts, or FMAs where the target has none for the type.",
    "dot_scaled": "A scaled matrix instruction.",
    "gather": "From a tensor, along an axis.",
    "histogram": "Through shared memory.",
    "descriptor": "TDM where the target has it, else masked tile accesses.",
    "helper": "Triton's own library source is translated like a helper of yours.",
    "same": "Nothing in it depends on layouts.",
    "refuse": "Refused by name.",
}

NVIDIA_HEAD = """
A kernel that is Gluon already, for an NVIDIA GPU or another AMD one, is lifted: what it computes is told as a Triton kernel, without
layouts, buffers, barriers and partitions, and that is translated like any other source. `gluonize translate SOURCE -l LAUNCHES -t gfx950`
does both; `--emit lifted` writes the Triton kernel. Its launches are given, with the GPU that it is written for (`target`, or `--from sm_90`).

The lifter runs programs of the launch, and of other sizes, with tensors as expressions. Slots become the loads that filled them, told by
the loops that read them; sums of products become loops; iterations that were peeled go back into them. What differs between sizes,
programs or iterations, is never reached, or waits for ever is refused at its line. `gluonize validate` then runs source and translation
against each other.

`--keep-structure` lifts nothing: on a target with the same machine (a tensor data mover, barriers in LDS, partitions of warps: gfx1250) the kernel
keeps its own text, and each call becomes its counterpart. Copies with a barrier arrive by themselves, once for each warp that issues them, and
an `arrive` once for each thread; how many arrivals end a phase is counted by running a program. Products read their operands into registers,
accumulators get WMMA's layout, slots rows with padding; kernels take descriptors as `(base, shape, strides)`. What has no counterpart is refused
at its line, with what a port by hand does.
""".strip().splitlines()

GIVEN = """
## Functions of your own

`gluonize translate --rules FILE` adds rows for functions that the file names, or for every `.toml` file of a folder. Where a kernel
calls one, under whatever name it was imported, the template is written instead of a call of the translated function:

```toml
[[rule]]
callee = "mylib.fast_exp"                      # module and name of the function
becomes = "gl.exp2({x} * 1.4426950408889634)"  # holes are its parameters, or {...} for the arguments as they are
layouts = "same"                               # of tensor arguments and result; or "none", where no tensor is involved
cost = "heavy"                                 # computing it twice costs more than moving it to another layout
needs = "supports_tdm"                         # a field of the target's row in rules/targets.py; all targets when left out
takes = ["x"]                                  # a call that gives other parameters is translated as if there were no row
example = ["y = fast_exp(x)", "y = gl.exp2(x * 1.4426950408889634)"]
near_miss = ["y = fast_exp(x, 2)", "y = fast_exp(x, 2)"]
```

Without `layouts`, `cost`, `needs` and `takes` a row is for all targets, cheap, and takes all parameters. `gluonize validate` compares
what comes out with the source, so a template that means something else is found.""".splitlines()


def builtins_page() -> str:
    """One section per kind, one line per builtin."""
    out = [
        "# Builtins",
        "",
        "What becomes of each function of `triton.language`, from the rows of `rules/builtins.py`. In a template `{...}` stands for",
        "your arguments as they are, `{name}` for what the row is about; where there is none, code writes the call. *heavy* results are",
        "not computed a second time in another layout: they are converted. A builtin that a newer Triton adds makes a test fail by its",
        "name.",
        "",
        "This page is generated by `docs/generate_reference.py`.",
        *GIVEN,
    ]
    assert set(KIND_TEXTS) == set(KINDS), sorted(set(KIND_TEXTS) ^ set(KINDS))
    for kind in KINDS:
        rows = sorted((row for row in ROWS if row.kind == kind), key=lambda row: row.name)
        if rows:
            out += [
                "",
                f"## {kind}",
                "",
                KIND_TEXTS[kind],
                "",
                "| Triton | template | layouts | cost | example | note |",
            ]
            out += ["|---|---|---|---|---|---|", *map(_builtin, rows)]
    out += ["", "## Layouts", "", "| word | what it says |", "|---|---|"]
    out += [f"| {name} | {text} |" for name, text in LAYOUTS.items()]
    return "\n".join(out) + "\n"


def _builtin(row: Row) -> str:
    becomes = f"`{row.becomes}`" if row.becomes else ""
    example = f"`{row.example.before}` becomes `{row.example.after}`" if row.example else ""
    cells = (
        f"`{row.name}`",
        becomes,
        ", ".join(row.layouts),
        row.cost if row.cost != "cheap" else "",
        example,
        row.note,
    )
    return f"| {' | '.join(cells)} |"


def targets_page() -> str:
    """What each target has, what constructs become there, and where the numbers are from."""
    out = [
        "# Targets",
        "",
        f"`-t all` means {', '.join(DEFAULT_TARGETS)}. An unknown target is refused; nothing falls back to a neighbour. The numbers are",
        "those of `rules/targets.py`; `gluonize -v targets` prints them, `gluonize targets --json` has all of them.",
        "",
        "This page is generated by `docs/generate_reference.py`.",
        "",
        "| target | product | family | lanes per warp | LDS of a workgroup | LDS banks | VGPRs of a wave | waves per SIMD |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in TARGETS.values():
        cells = (row.product, row.family.upper(), row.warp_size, f"{row.lds_bytes // 1024} KiB", row.lds_banks, row.vgpr_limit, row.max_waves)  # fmt: skip
        out.append(f"| {row.name} | {' | '.join(map(str, cells))} |")
    for row in TARGETS.values():
        out += ["", f"## {row.name}", "", "| Triton | becomes |", "|---|---|"]
        out += [f"| {label} | {text} |" for label, text in mapping(row)]
        out += ["", *_matrix(row), "", "Sources:", ""]
        out += [f"- {label}: {source}" for label, source in row.sources.items()]
    return "\n".join(out) + "\n"


def _matrix(row: Target) -> list[str]:
    out = [
        "| instruction | M x N x K | operands | accumulator | k_width | cycles | source |",
        "|---|---|---|---|---|---|---|",
    ]
    for m in row.matrix:
        cells = (m.kind, " x ".join(map(str, m.shape)), ", ".join(m.dtypes), ", ".join(m.accumulators), m.k_width,
                 "not published" if m.cycles is None else m.cycles, m.source)  # fmt: skip
        out.append(f"| {' | '.join(map(str, cells))} |")
    return out


def choices_page() -> str:
    """One section per choice: its values and defaults."""
    out = [
        "# Choices",
        "",
        "What nothing forces is a named choice with a default, from the rows of `rules/choices.py`. `gluonize translate --choose NAME=VALUE`",
        "takes another value; it is recorded in the output, and `gluonize tune` tries some of them. A value that a loop cannot have",
        "leaves the loop as it is.",
        "",
        "This page is generated by `docs/generate_reference.py`.",
    ]
    for choice in CHOICES:
        out += ["", f"## {choice.name}", "", f"{choice.what[0].upper()}{choice.what[1:]}.", "", *_values(choice)]
    return "\n".join(out) + "\n"


def _values(choice: Choice) -> list[str]:
    reasons = {d.value: d.why for d in choice.defaults}
    numbers = [value for value, meaning in choice.values.items() if value == meaning]
    out = ["| value | meaning | default |", "|---|---|---|"]
    out += [
        f"| `{value}` | {meaning} | {reasons.get(value, '')} |"
        for value, meaning in choice.values.items()
        if value not in numbers
    ]
    return out + ([f"| `{numbers[0]}` to `{numbers[-1]}` | so many | |"] if numbers else [])


def nvidia_page() -> str:
    """What becomes of NVIDIA's operations, a table and the details of each."""
    lines = [
        "# Kernels written for NVIDIA GPUs",
        "",
        *NVIDIA_HEAD,
        "",
        "| operation | Gluon | in the lifted kernel | with `--keep-structure` |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{r.op}` | {_code(r.gluon)} | {r.lifted or 'nothing: it says how or when'} | {_kept(r)} |" for r in NVIDIA
    ]
    for row in NVIDIA:
        lines += ["", f"## {row.op}", "", row.does]
        lines += [row.conditions] if row.conditions else []
        lines += [f"{row.why_none}."] if row.why_none else []
        lines += ["", f"Not kept: {row.why_not}."] if row.why_not else []
        for kept in row.counterparts:
            only = "".join(f"; `{name}` has to be {value!r}" for name, value in kept.only)
            lines += ["", f"Kept: `{kept.function}` becomes {_code(kept.text) if kept.text else 'nothing'}{only}."]
        lines += [
            "",
            f"By hand, keeping the structure: with a tensor data mover (gfx1250) {row.data_mover}; elsewhere {row.other}.",
        ]
    return "\n".join(lines) + "\n"


def _kept(row: NvidiaRow) -> str:
    """What stands for an operation where the structure is kept."""
    if not row.counterparts:
        return "refused" if row.why_not else "-"
    return ", ".join(_code(c.text) if c.text else "nothing" for c in row.counterparts)


def _code(name: str) -> str:
    return f"`{name}`" if name else "-"


ERRORS_HEAD = """
# Error codes

A message ends with its code in brackets: `matmul.py:12:9: ... [ptx-asm]`; in JSON it is `diagnostics[].code`. Each says where, why, and
what to do; this table is for looking one up. [Exit status](cli.md#exit-status).
"""

ERRORS_END = """
`gluonize check` reports files that are not current under `generated-` and their state; the reference machine's findings have the kind of the
hazard ([validation](../explanation/reference-machine.md)).
"""


def errors_page() -> str:
    """A row per code, with an anchor that code scanning links to."""
    rows = [f'| <a id="{code}"></a>`{code}` | {text} |' for code, text in ERRORS.items()]
    return "\n".join(
        [ERRORS_HEAD.strip(), "", "| code | what it says |", "|---|---|", *rows, "", ERRORS_END.strip(), ""]
    )


PAGES = {
    "builtins.md": builtins_page,
    "choices.md": choices_page,
    "errors.md": errors_page,
    "nvidia.md": nvidia_page,
    "targets.md": targets_page,
}


def main() -> None:
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
