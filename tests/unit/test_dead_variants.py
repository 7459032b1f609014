"""Variants of a variable that nothing reads any more are left out, and nothing else is."""

import pytest
from gluonize.gluon.layout_names import Variant
from gluonize.gluon.trees.references import References
from gluonize.trace.model.layouts import Blocked
from gluonize.write.function.dead_variants import without_dead_variants

ROOT, OTHER = Blocked((1,), (64,), (4,), (0,)), Blocked((2,), (64,), (4,), (0,))
TREES = References()
V, W, OF_Q = map(
    TREES.identifier, (Variant("p", ROOT, "full"), Variant("p", OTHER, "full"), Variant("q", ROOT, "full"))
)
CASES = {
    "the author's layout": (["p = a + b", f"{V} = a + c", f"use({V})"], [0]),
    "another layout": (["p = a + b", f"{V} = a + c", "use(p)"], [1]),
    "two of three": (["p = a + b", f"{V} = a + c", f"{W} = a", f"use({V})"], [0, 2]),
    "both are used": (["p = a + b", f"{V} = a + c", f"use({V}, p)"], []),
    "one always stays": (["p = a + b", f"{V} = a + c", "use(a)"], [1]),
    "alone, as the author wrote it": (["p = a + b", "q = a", "use(q)"], []),
    "read in the next iteration": (
        ["p = a", "for i in range(n):", "    use(p)", "    p = a + i", f"    {V} = b + i"],
        [4],
    ),
    "redefined before it is read": (
        ["p = a", f"{V} = b", "use(p)", "for i in range(n):", f"    {V} = b + i", f"    use({V})"],
        [1],
    ),
    "read after a branch": (["p = a", f"{V} = b", "if c:", f"    {V} = a", f"use({V}, p)"], []),
    "assigned in each branch": (
        ["p = a", f"{V} = b", "if c:", f"    {V} = a", "else:", f"    {V} = c", f"use({V}, p)"],
        [1],
    ),
    "may do something": (["p = a", f"{V} = atomic_add(a, b)", "use(p)"], []),
    "a comment beside it": (["p = a", f"{V} = b  # kept", "use(p)"], []),
    "several lines": (["p = a", f"{V} = (b", "    + c)", "use(p)"], [1, 2]),
    "changed in place": (["p = a", f"{V} = b", f"{V} += a", "use(p)"], []),
    "what only it needed": (
        ["q = a", f"{OF_Q} = b", "p = q + 1", f"{V} = {OF_Q} + 1", "use(p)"],
        [1, 3],
    ),
}


@pytest.mark.parametrize("lines, gone", CASES.values(), ids=CASES)
def test_dead_variants(lines, gone):
    text = "def f(a, b, c, n):\n" + "".join(f"    {line}\n" for line in lines)
    kept = [line for i, line in enumerate(lines) if i not in gone]
    left = without_dead_variants(TREES.function(text))
    assert left.text == "def f(a, b, c, n):\n" + "".join(f"    {line}\n" for line in kept)
