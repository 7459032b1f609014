"""Lines of generated files over lines of their sources, and conditions of their launch checks, for the fixtures.

    python bench/output_size.py [-t gfx950] [--goldens FOLDER]

Every line of a file counts, blank ones and comments too. FOLDER has FIXTURE/golden/TARGET.py instead of the repository's own, such as those of
an earlier commit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import fixture_set  # noqa: E402


def assumptions(text: str) -> list[int]:
    """How many conditions the header of a generated file states for each of its kernels that has any; lines that go on are one."""
    counts: list[int] = []
    kernel = ""
    for line in text.splitlines():
        if line.startswith("# ") and ": " in line and line[2].isidentifier():
            name = line[2:].partition(":")[0]
            if name != kernel and name.isidentifier():
                kernel = name
                counts.append(0)
        elif line.startswith("#   assumes "):
            counts[-1] += 1
        elif counts and not line.startswith("#"):
            break
    return [count for count in counts if count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-t", "--target", default="gfx950", choices=fixture_set.TARGETS)
    parser.add_argument("--goldens", type=Path, help="a folder of earlier outputs")
    given = parser.parse_args()
    shares, conditions = [], []
    print("| fixture | source | output | times | conditions |\n|---|---|---|---|---|")
    for fixture in fixture_set.fixtures():
        own = fixture.golden_file(given.target)
        golden = own if given.goldens is None else given.goldens / fixture.name / own.relative_to(fixture.folder)
        if not golden.exists():
            continue
        text = golden.read_text()
        lines, output = (len(x.splitlines()) for x in (fixture.kernel_file.read_text(), text))
        asked = assumptions(text)
        shares.append(output / lines)
        conditions += asked
        print(f"| {fixture.name} | {lines} | {output} | {output / lines:.2f} | {', '.join(map(str, asked))} |")
    print(f"| mean of {len(shares)} | | | {statistics.mean(shares):.2f} | {statistics.mean(conditions):.1f} |")
    print(f"| median | | | {statistics.median(shares):.2f} | {statistics.median(conditions)} |")
    print(f"| most | | | {max(shares):.2f} | {max(conditions)} |")


if __name__ == "__main__":
    main()
