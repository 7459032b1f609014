"""`gluonize layout`: a Gluon layout, drawn."""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, rich_console
from gluonize.product.project.output.file import check_destination, write_whole
from gluonize.product.project.output.overwrite import check_result
from gluonize.product.report.layouts.expression import LayoutView, Pieces
from gluonize.product.report.layouts.linear_map import DistributedMap, SharedMap
from gluonize.rules.targets import target as target_row

VIEW = "gluonize.product.report.layouts.expression:view_layout"
VIEWS = ("drawing", "tensor", "hardware")
MAX_ELEMENTS = 1 << 18
_COLORS = ("blue", "yellow", "green", "magenta", "cyan", "red", "bright_blue", "bright_yellow")


@dataclass(frozen=True)
class LayoutOptions:
    """The options of `gluonize layout`, as given. access: a distributed layout that reads or writes the tile in LDS."""

    expression: str
    shape: str
    target: str = "gfx950"
    bits: int = 16
    access: str | None = None
    view: str = "drawing"
    output: str | None = None
    timeout: float = 60.0


def run_layout(options: LayoutOptions, verbosity: Verbosity) -> int:
    """Print the drawing, or one of Gluon's own views; write the SVG that `-o` names."""
    row = target_row(options.target)
    shape = _shape(options.shape)
    if options.view not in VIEWS:
        raise _usage(f"--view {options.view}: no such view", f"one of {', '.join(VIEWS)}")
    if options.output:
        check_destination(options.output)
        check_result(options.output, (), _is_svg)
    with WorkerPool(1, timeout=options.timeout) as pool:
        view = pool.call(VIEW, options.expression, shape, options.bits, what=options.expression)
        access = pool.call(VIEW, options.access, shape, options.bits, what=options.access) if options.access else None
    accesses = _accesses(view, access, options, row.warp_size)
    if not verbosity.quiet:
        _print(view, accesses, options.view, row.lds_banks, verbosity)
    if options.output:
        from gluonize.product.report.layouts.picture import layout_picture

        write_whole(options.output, layout_picture(view, accesses, row.lds_banks))
    return exit_status.DONE


def _print(view: LayoutView, accesses, which: str, banks: int, verbosity: Verbosity) -> None:
    from rich.text import Text

    from gluonize.product.report.layouts.terminal import conflict_lines, layout_lines

    console = rich_console(verbosity)
    if which != "drawing":
        text = view.tensor if which == "tensor" else view.hardware
        if not text:
            raise _usage(f"Gluon has no {which} view of this layout", "leave --view out")
        console.print(text.rstrip("\n"), markup=False, soft_wrap=True)
        return
    lines = list(layout_lines(view, banks))
    for name, held in accesses:
        lines += [[("", None)], [(f"{name}:", None)], *conflict_lines(held, _stored(view), banks)]
    for line in lines:
        pieces = [(text, "" if color is None else _COLORS[color % len(_COLORS)]) for text, color in line]
        console.print(Text.assemble(*pieces), soft_wrap=True)


def _stored(view: LayoutView) -> SharedMap:
    return view.placed.piece if isinstance(view.placed, Pieces) else view.placed


def _accesses(
    view: LayoutView, access: LayoutView | None, options: LayoutOptions, lanes: int
) -> list[tuple[str, DistributedMap]]:
    """The access that was asked for, else the common ones; none for a layout of registers."""
    if isinstance(view.placed, DistributedMap):
        if access is not None:
            raise _usage("--access is for layouts of LDS", "leave it out")
        return []
    if access is None:
        from gluonize.product.report.layouts.terminal import common_accesses

        return list(common_accesses(_stored(view), lanes).items())
    if not isinstance(access.placed, DistributedMap):
        raise _usage(f"--access {options.access}: it is no layout of registers", "such as a BlockedLayout")
    if isinstance(view.placed, Pieces):
        raise _usage("--access needs one map of the whole tile", "draw the layout of one piece")
    return [(options.access or "", access.placed)]


def _shape(text: str) -> tuple[int, ...]:
    """`128,64` or `128x64`. Raises: TranslationError `usage`."""
    try:
        shape = tuple(int(word) for word in text.replace("x", ",").split(","))
    except ValueError:
        shape = ()
    if not shape or any(size < 1 or size & (size - 1) for size in shape):
        raise _usage(f"--shape {text}: not a tile", "powers of two, such as 128,64")
    elements = 1
    for size in shape:
        elements *= size
    if elements > MAX_ELEMENTS:
        raise _usage(f"--shape {text}: {elements} elements are too many to draw", f"at most {MAX_ELEMENTS}")
    return shape


def _is_svg(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(5) == b"<svg "


def _usage(message: str, help: str) -> TranslationError:
    return TranslationError(Diagnostic("usage", message, help=help))
