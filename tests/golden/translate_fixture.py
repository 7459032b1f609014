"""Translate one file of fixtures/ for one target.

    python translate_fixture.py SOURCE TARGET [LAUNCH_ID | --strategy=NAME | --num-ctas=N | --programs=WHAT | --keep-structure]...

A process of its own, because a fault in the compiler's passes can abort it. Runs in the repository root with relative
paths, so that what is printed does not depend on the machine; loops are verified, and expressions parsed. Prints one JSON line: status,
text, diagnostics (rendered) and the lines they point to.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from parsed_expressions import parsed  # noqa: E402
from verified_loops import verified  # noqa: E402

from gluonize.decide.choices.chosen import Choices, choices_of  # noqa: E402
from gluonize.request import TranslateRequest  # noqa: E402
from gluonize.read.spec.launch import read_launches  # noqa: E402
from gluonize.translation import translate_kernel  # noqa: E402


def main(source: str, target: str, *words: str) -> None:
    ids = [word for word in words if not word.startswith("--")]
    strategy = next((word.partition("=")[2] for word in words if word.startswith("--strategy=")), None)
    ctas = next((word.partition("=")[2] for word in words if word.startswith("--num-ctas=")), "")
    programs = next((word.partition("=")[2] for word in words if word.startswith("--programs=")), "")
    launches = read_launches(str(Path(source).parent / "launches.json"))
    chosen = tuple(launch for launch in launches if not ids or launch.id in ids)
    choices = choices_of(num_ctas=ctas) if ctas else Choices()
    choices = choices.replacing(programs=programs) if programs else choices
    asked = {"strategy": strategy, "choices": choices, "keep_structure": "--keep-structure" in words}
    request = TranslateRequest(source=source, target=target, launches=chosen, **asked)
    with verified(), parsed():
        result = translate_kernel(request)
    found = [*result.diagnostics, *(d for outcome in result.outcomes for d in outcome.diagnostics)]
    text = Path(source).read_text()
    answer = {
        "status": result.status,
        "text": result.text,
        "diagnostics": list(dict.fromkeys(d.render(text) for d in found)),
        "lines": sorted({d.line for d in found}),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
