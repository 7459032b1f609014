"""Decisions that nothing forces: each has a name, a few values, and a default with its reason.

A search, or the user (`--choose slot-form=told-apart`), overrides one by its name. What is forced by the source, by the target or
by Triton's own passes is not here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gluonize.rules.targets import Target

MOST_BUFFERS = 16


def _everywhere(target: Target) -> bool:
    return True


@dataclass(frozen=True)
class Default:
    """The value on targets for which `when` holds, by their capabilities. why: the reason, in the hardware or in Triton's passes."""

    value: str
    why: str
    when: Callable[[Target], bool] = _everywhere


@dataclass(frozen=True)
class LaunchOption:
    """An option of launches that a choice decides where they say nothing of it. spelled: its value, `{}` for that of the choice;
    unsaid: what it is for a launch that does not say it."""

    name: str
    unsaid: int | str
    spelled: str = "{}"

    def value(self, chosen: str) -> int | str:
        made = self.spelled.format(chosen)
        return int(made) if made.isdigit() else made


@dataclass(frozen=True)
class Choice:
    """One decision.

    what: what is decided. values: with what each means. defaults: the first that holds for a target. word: what names another
    value than the default in the name of a candidate, `{}` for the value; "" for nothing. reshapes: whether another value than
    the default changes the shape of a loop, so that it is no longer written out or split as Triton's passes would; plain: one that
    does not. option: of launches, that another value than the default gives them.
    """

    name: str
    what: str
    values: dict[str, str]
    defaults: tuple[Default, ...]
    word: str = ""
    reshapes: bool = True
    option: LaunchOption | None = None
    plain: str = ""

    def __post_init__(self):
        assert {d.value for d in self.defaults} <= set(
            self.values
        ), f"choice {self.name}: a default is none of its values"
        assert self.defaults[-1].when is _everywhere, f"choice {self.name}: the last default is for every target"

    def default(self, target: Target) -> Default:
        return next(d for d in self.defaults if d.when(target))


CHOICES = (
    Choice(
        "depth",
        "slots of a loop's ring in LDS",
        {
            "as-fits": "as `launch`; but one tile ahead where others wait in registers, and as many as LDS holds, up to 4, of the one loop of a"
            " kernel which adds up one product of copied tiles, where a compute unit holds one workgroup in any case, the data mover copies"
            " or groups of warps alternate, and nothing else is asked for",
            "launch": "as num_stages and the room in LDS give",
            **{str(n): f"{n}" for n in range(1, MOST_BUFFERS + 1)},
        },
        (
            Default(
                "as-fits",
                "num_stages is what the author tuned; where it leaves LDS that no other workgroup can have, tiles further ahead hide"
                " more of the latency of memory",
            ),
        ),
        word="{}-buffers",
        reshapes=False,
        plain="launch",
    ),
    Choice(
        "matrix-size",
        "rows and columns of the matrix instruction",
        {"triton": "as accelerate-matmul chooses", "16": "16 x 16", "32": "32 x 32"},
        (Default("triton", "Triton's pass weighs the tile and the warps"),),
        word="{0}x{0}",
    ),
    Choice(
        "operand-width",
        "what a lane has of an operand side by side",
        {"launch": "as the launch's kpack says", "two": "its parts for two matrix instructions, read from LDS at once"},
        (Default("launch", "one instruction's part lets the compiler begin with less of the tile"),),
        word="wide-operands",
        reshapes=False,
    ),
    Choice(
        "transposed-operands",
        "how an operand is transposed that another product takes from LDS as it is",
        {"read": "by a second read of the same tile in LDS", "converted": "in registers, by a conversion of its own"},
        (Default("read", "nothing is stored twice, and no barrier is added"),),
        word="converted",
        reshapes=False,
    ),
    Choice(
        "scale-reads",
        "how a lane reads the scales of a product",
        {
            "single": "one for each matrix instruction",
            "words": "those for several instructions side by side: groups along K are multiplied in another order, and sums round"
            " differently",
        },
        (Default("single", "sums are made in the order of K, as Triton's are"),),
        word="packed-scales",
        reshapes=False,
    ),
    Choice(
        "accumulator-slices",
        "parts of M and N in which the accumulator of a loop is kept, operands read when a part needs them",
        {name: f"{name[0]} of M, {name[2]} of N" for name in ("1x1", "2x1", "4x1", "1x2", "2x2", "4x2")},
        (Default("1x1", "whole operands let the compiler order the products"),),
        word="{}-slices",
    ),
    Choice(
        "accumulator-registers",
        "the registers of what MFMA adds up",
        {
            "compiler": "as the compiler finds",
            "agprs": "accumulation registers, where products are not read before the last one",
            "vgprs": "those of vector instructions, where they are read between products",
        },
        (Default("compiler", "it knows what else is held; on CDNA3 and later both kinds are one file"),),
        word="{}",
        reshapes=False,
    ),
    Choice(
        "slot-indices",
        "how a loop names the slot of its tile",
        {"run-time": "a variable that goes round", "literal": "one copy of the body per slot"},
        (Default("run-time", "the code of the loop stays in the instruction cache"),),
        word="unrolled",
    ),
    Choice(
        "operand-reads",
        "when operands are read from LDS",
        {"own-iteration": "in the iteration that multiplies them", "one-ahead": "in the iteration before"},
        (Default("own-iteration", "a second set of operands takes registers"),),
        word="prefetch",
    ),
    Choice(
        "warp-groups",
        "whether two groups of warps take turns",
        {
            "as-fits": "`alternating` of such a loop (see `depth`) where matrix instructions run beside others and each SIMD has two waves"
            " of the workgroup: the accumulator is kept in parts of its longer side until it and live operands fit, and of two slots one"
            " is filled again once it is read. Else `together`",
            "together": "all warps do the same",
            "alternating": "one group moves data while the other multiplies",
        },
        (
            Default(
                "as-fits",
                "in step, all waves fill the queues of memory and LDS together while matrix cores idle; several workgroups take turns by"
                " themselves, and a data mover has no queue that waves would fill",
            ),
        ),
        word="ping-pong",
        plain="together",
    ),
    Choice(
        "tile-copies",
        "what copies the tiles of a loop that the tensor data mover could",
        {"mover": "the tensor data mover", "lanes": "each lane its part, as Triton's passes have it, where they copy at all"},
        (Default("mover", "one instruction for a whole tile, and no addresses in registers"),),
        word="lane-copies",
    ),
    Choice(
        "copy-order",
        "where the copies of a tile ahead stand",
        {
            "before-reads": "before the reads of the tile that is multiplied",
            "after-reads": "behind these reads",
        },
        (Default("before-reads", "the earlier a copy is asked for, the sooner it lands"),),
        word="late-copies",
    ),
    Choice(
        "copies-past-end",
        "what copies of tiles ahead do behind the last tile of a loop",
        {"masked": "nothing", "repeated": "they fetch the last tile once more, as pointers stay there"},
        (Default("masked", "nothing is fetched twice"),),
        word="repeated",
    ),
    Choice(
        "load-order",
        "where loads of a tile ahead stand that go through registers",
        {
            "after-reads": "behind the reads of the tile that is multiplied",
            "before-reads": "before these reads",
        },
        (Default("after-reads", "operands are on their way to the matrix cores by then, which leaves registers"),),
        word="early-loads",
    ),
    Choice(
        "waiting-loads",
        "when loads are made whose values would wait in registers for the next iteration",
        {
            "as-fits": "`ahead`; but in loops in which no tile goes through registers to LDS, beside other loads, `own-iteration` of a vector"
            " of which each lane has several elements, where matrix instructions run beside others and no data mover fetches tiles",
            "ahead": "an iteration ahead, as Triton's pipeliner has them",
            "own-iteration": "in the iteration that uses them",
        },
        (
            Default(
                "as-fits",
                "all lanes repeat such a vector, twice while it waits for the next iteration: registers that another wave could have,"
                " which hides more than the latency of a few bytes in a cache",
            ),
        ),
        word="{}-loads",
        reshapes=False,
    ),
    Choice(
        "tile-stores",
        "where the compiler may put what it makes of tiles that go through registers, on their way to LDS",
        {
            "anywhere": "between any instructions of the loop",
            "fenced": "at the end of the loop, behind a scheduling barrier: nothing waits for a tile before that",
        },
        (Default("anywhere", "between matrix instructions it costs nothing, where nothing waits for the tile"),),
        word="fenced-stores",
    ),
    Choice(
        "refill",
        "when groups of warps which alternate fill the slots of an accumulator's operands in slices again",
        {
            "next-tile": "while the next tile is read",
            "after-read": "when both groups have read them: an operand that is copied, and read in full before the other one; tiles"
            " that travel through registers, for which one slot is then enough",
        },
        (Default("next-tile", "what is filled early is more under way, which registers pay for"),),
        word="refilled",
    ),
    Choice(
        "maxima",
        "what a maximum or minimum of scaled products is taken of",
        {"scaled": "of what is scaled, as the source has it", "unscaled": "of the products: it is scaled then, by what is positive"},
        (Default("unscaled", "what is left of the scaling is part of the subtraction behind it, one instruction for each element"),),
        word="unscaled-maxima",
        reshapes=False,
    ),
    Choice(
        "loop-masks",
        "when a loop makes a mask by which it selects, and which is true for all of a block but at a border, as on the diagonal of"
        " causal attention",
        {
            "always": "in every iteration",
            "where-needed": "behind a branch, in iterations in which it leaves something out",
            "peeled": "in a loop of its own for these iterations, where they come last",
        },
        (Default("always", "one block without branches lets the compiler mix the selection with matrix instructions"),),
        word="{}-masks",
        reshapes=False,
    ),
    Choice(
        "rescaling",
        "when a loop multiplies what it has summed by a factor for each row, as attention does",
        {
            "always": "in every iteration",
            "lazy": "where one of the factors is not 1, which all warps find out together",
        },
        (Default("always", "warps that own different rows need not wait for each other to multiply them"),),
        word="lazy-rescaling",
        reshapes=False,
    ),
    Choice(
        "stores",
        "how products leave",
        {"direct": "from registers", "copied": "through LDS, by asynchronous copies of whole rows"},
        (Default("direct", "what goes through LDS first is stored later"),),
        word="copied-stores",
    ),
    Choice(
        "store-cache",
        "what stores say to the caches where the source says nothing",
        {"kept": "nothing", "streamed": "that what is stored is not read again (`.cs`)"},
        (Default("kept", "the kernel that runs next may read it, which the source does not show"),),
        word="streamed",
        reshapes=False,
    ),
    Choice(
        "load-cache",
        "what loads say to the caches where the source says nothing",
        {
            "kept": "nothing",
            "streamed": "that what is loaded is not read again (`.cs`), where each program and each iteration has elements of its own",
        },
        (Default("kept", "the kernel that ran before may have left them in a cache, and the one that runs next may read them"),),
        word="streamed-loads",
        reshapes=False,
    ),
    Choice(
        "program-order",
        "which program does what, of a kernel that asks for its number along the first axis of the grid alone",
        {
            "launch": "the one that the launch gives the number to",
            "per-xcd": "neighbours are on one XCD, whose L2 cache then has what they share; programs are dealt to XCDs in turn",
        },
        (Default("launch", "whether neighbours share anything is the author's order, which may deal with XCDs already"),),
        word="per-xcd",
        reshapes=False,
    ),
    Choice(
        "programs",
        "what a program does, of a kernel that asks for its number along the first axis of the grid",
        {
            "tile": "one tile: the work of one number",
            "persistent": "one tile after another: at most one program for each compute unit is launched",
            "persistent-2": "the same, with two programs for each compute unit",
            "stream-k": "as many steps of the loop as any other program, of all tiles together: sums are made in another order; one program "
            "for each compute unit is launched",
            "stream-k-2": "the same, with two programs for each compute unit",
        },
        (Default("tile", "the hardware gives the next tile to the first compute unit that is free"),),
        word="{}",
        reshapes=False,
    ),
    Choice(
        "lds-partitions",
        "where tiles lie in an LDS with partitions",
        {"one": "as Triton's layouts have it", "two": "halves in two partitions, for warps that issue together"},
        (Default("one", "Triton's passes make no such layouts"),),
        word="partitioned",
    ),
    Choice(
        "num-ctas",
        "workgroups of a program, a cluster of which each has its part of a tile; of launches that say nothing of it",
        {"launch": "one", "2": "two", "4": "four", "8": "eight", "16": "sixteen"},
        (Default("launch", "the tile is the author's, and a part of it may be too small to be worth a workgroup"),),
        word="{}-ctas",
        option=LaunchOption("num_ctas", 1),
    ),
    Choice(
        "waves-per-eu",
        "waves of a SIMD that registers are allocated for; of launches that say nothing of it",
        {
            "launch": "as the compiler finds", "1": "one", "2": "two", "3": "three", "4": "four", "6": "six", "8": "eight",
        },
        (Default("launch", "what the compiler finds spills least"),),
        word="{}-waves",
        reshapes=False,
        option=LaunchOption("waves_per_eu", 0),
    ),
    Choice(
        "scheduler",
        "how LLVM orders instructions; of launches that say nothing of it",
        {
            "launch": "for many waves on a SIMD",
            "max-ilp": "for a wave whose instructions wait for each other least",
            "iterative-ilp": "the same, and once more where registers do not suffice",
        },
        (Default("launch", "it is what the compiler is tuned for"),),
        word="{}",
        reshapes=False,
        option=LaunchOption("llvm_fn_attrs", "", "amdgpu-sched-strategy={}"),
    ),
    Choice(
        "l2-prefetch",
        "tiles beyond the ring that the data mover asks for in the L2 cache",
        {"0": "none", "2": "two"},
        (Default("0", "it pays only where a tile is not in L2 yet, which the source does not show"),),
        word="l2-{}-ahead",
    ),
    Choice(
        "slot-form",
        "how the slot that is filled is computed",
        {
            "as-triton": "from the slot before, by a comparison",
            "told-apart": "by a remainder, so that the compiler sees that it is not the one read; a loop that runs at most"
            " once becomes a branch",
        },
        (Default("as-triton", "a comparison is one scalar instruction, a remainder several"),),
    ),
    Choice(
        "fp64-extremes",
        "atomic minimum and maximum of fp64 in memory",
        {
            "exact": "as Triton has them: by the bits, so that a NaN counts as beyond all numbers and -0.0 as less than 0.0",
            "instruction": "buffer operations, where the target has them: a NaN in memory gives way to a number, and zeros of both"
            " signs are equal",
        },
        (Default("exact", "whether memory holds a NaN or zeros of both signs is not known"),),
        word="fp64-extremes",
        reshapes=False,
    ),
)  # fmt: skip
BY_NAME = {choice.name: choice for choice in CHOICES}
