"""What every module of the translator keeps: it asks for capabilities, not for families."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(path for folder in ("translator", "rules") for path in (ROOT / folder).rglob("*.py"))


def test_code_asks_for_capabilities():
    asked = [
        str(path) for path in MODULES if path.relative_to(ROOT).parts[0] != "rules" and ".family" in path.read_text()
    ]
    assert [path for path in asked if "/lift/" not in path and "/cli/" not in path] == []
