"""What the compiler says about a layout, and what our maps say: run by a child, since some layouts end the process."""

from gluonize.decide.layouts.inferred import to_gluon
from gluonize.product.report.layouts.job import LayoutAsker
from gluonize.product.report.layouts.linear_map import DistributedMap
from gluonize.trace.model.layouts import Layout


def both(target: str, num_warps: int, layout: Layout, shape: tuple[int, ...]) -> tuple[str, DistributedMap]:
    """The compiler's tensor view (`T<thread>:<register>` per element), and our map."""
    return to_gluon(layout).format_tensor_view(list(shape)), LayoutAsker(target, num_warps).distributed(layout, shape)


def shared(target: str, layout, shape: tuple[int, ...], bits: int):
    return LayoutAsker(target, 4).shared(layout, shape, bits)
