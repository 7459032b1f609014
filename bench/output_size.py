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
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "golden")]

import fixture_set  # noqa: E402
from output_rules import contracts  # noqa: E402


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
        asked = [len(found) for found in contracts(text).values() if found]
        shares.append(output / lines)
        conditions += asked
        print(f"| {fixture.name} | {lines} | {output} | {output / lines:.2f} | {', '.join(map(str, asked))} |")
    print(f"| mean of {len(shares)} | | | {statistics.mean(shares):.2f} | {statistics.mean(conditions):.1f} |")
    print(f"| median | | | {statistics.median(shares):.2f} | {statistics.median(conditions)} |")
    print(f"| most | | | {max(shares):.2f} | {max(conditions)} |")


if __name__ == "__main__":
    main()
