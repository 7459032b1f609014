"""Rewrite the goldens and print what changed: `make golden`.

    python refresh.py [FIXTURE | refused]...

With no names: all of them, and goldens that belong to nothing are removed. Ends with 1 if a fixture is not translated or a
case is not refused; its golden is left as it is. Under another Triton than that of the common goldens, what differs goes into a folder of
its release.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from child_process import ChildFailed  # noqa: E402
from golden_set import (
    REPOSITORY,
    Golden,
    Unexpected,
    difference,
    orphans,
    produce,
    refusals,
    translations,
)  # noqa: E402

from gluonize.rules.gluon import VOCABULARY  # noqa: E402
from gluonize.versions import release_of, triton_version  # noqa: E402


def refresh(golden: Golden) -> tuple[str, str]:
    """Write one golden; -> (what changed, what went wrong)."""
    try:
        text = produce(golden)
    except (Unexpected, ChildFailed) as error:
        return "", str(error)
    changed = difference(golden, text)
    if changed:
        release = release_of(triton_version())
        own = release != VOCABULARY and golden.path.parent.name != release
        path = golden.path.parent / release / golden.path.name if own else golden.path
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return changed, ""


def main(names: list[str]) -> int:
    everything = [*translations(), *refusals()]
    unknown = set(names) - {golden.source.parent.name for golden in everything}
    if unknown:
        print(f"no such fixture: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    goldens = [golden for golden in everything if not names or golden.source.parent.name in names]
    # The work is done in child processes, two at a time.
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(refresh, goldens))
    for changed, _ in results:
        print(changed, end="")
    for path in orphans() if not names else []:
        path.unlink()
        print(f"removed {path.relative_to(REPOSITORY).as_posix()}")
    failures = [wrong for _, wrong in results if wrong]
    for wrong in failures:
        print(wrong, file=sys.stderr)
    done = sum(1 for changed, wrong in results if changed and not wrong)
    print(f"{len(goldens)} goldens: {done} rewritten, {len(failures)} not produced")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
