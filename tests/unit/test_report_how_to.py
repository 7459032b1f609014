"""What docs/how-to/review.md lists; its commands run in `tests/integration/test_docs.py`."""

import re
from pathlib import Path

from gluonize.product.report.review.reasons import REASONS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/how-to/review.md").read_text()


def test_the_page_explains_every_reason():
    explained = set(re.findall(r"^\| (\w+) \|", PAGE, re.MULTILINE))
    assert explained >= set(REASONS) - {"same", "spelling", "host"}
