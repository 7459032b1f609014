"""What is said of tests that were skipped because a tool is missing."""

import missing_tools

REASONS = [
    *["Skipped: no browser: none of chromium, chrome is on PATH (apt-get install chromium)"] * 2,
    "Skipped: could not import 'distributed': No module named 'distributed'",
    "Skipped: needs git",
    "Skipped: astor does not run on Python 3.14",
]


def test_a_line_says_what_would_bring_the_tools():
    assert missing_tools.line(REASONS) == (
        "4 tests were skipped for want of a tool: 2 apt-get install chromium, 1 pip install -e '.[dev]' (distributed), "
        "1 apt-get install git"
    )
    assert missing_tools.line(REASONS[-1:]) == ""
