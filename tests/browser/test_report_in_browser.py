"""The report and the diff page in a real browser: no errors, links light up, drawings react, readable in light and dark."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import chromium
import png
import pytest
from slow_rows import slow_but

from gluonize.product.cli.edge import run

ROOT = Path(__file__).resolve().parents[2]
needs_browser = pytest.mark.skipif(
    chromium.find() is None,
    reason=f"no browser: none of {', '.join(chromium.NAMES)} is on PATH (apt-get install chromium)",
)
pytestmark = needs_browser
FIXTURES = {"matmul": "gfx950", "flash_attention": "gfx950"}


@pytest.fixture(scope="module", params=slow_but(FIXTURES))
def page(request, tmp_path_factory) -> str:
    """The report of a fixture as `gluonize report` writes it."""
    folder = ROOT / "fixtures" / request.param
    output = tmp_path_factory.mktemp(request.param) / "report.html"
    source, launches = str(folder / "kernel.py"), str(folder / "launches.json")
    status = run(
        ["-q", "report", source, "-t", FIXTURES[request.param], "-l", launches, "--no-validate", "-o", str(output)]
    )
    assert status == 0
    return output.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def answer(page, tmp_path_factory) -> chromium.Answer:
    """What every script of SCRIPTS finds in one page, one after the other."""
    return chromium.ask(page, _one_after_the_other(SCRIPTS), tmp_path_factory.mktemp("page"), LIGHT)


def _one_after_the_other(scripts: dict[str, str]) -> str:
    """One script that has what each of some finds, by name."""
    calls = "".join(f"found[{name!r}] = await (async () => {{{script}}})();\n" for name, script in scripts.items())
    return f"const found = {{}};\n{calls}return found;"


LIGHT, DARK = (f"--blink-settings=preferredColorScheme={n}" for n in (1, 0))
HOVER = """
const hover = (cell) => cell.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
const panes = document.querySelector(".panes");
const cells = (name) => Array.from(panes.querySelectorAll("code." + name));
const numbers = (list) => ({
  source: list.filter((c) => c.dataset.source).map((c) => Number(c.dataset.source)).sort((a, b) => a - b),
  result: list.filter((c) => c.dataset.result).map((c) => Number(c.dataset.result)).sort((a, b) => a - b),
});
"""
READABLE = """
    const brush = document.createElement("canvas").getContext("2d", {willReadFrequently: true}), seen = new Map();
    const drawn = (text) => { brush.clearRect(0, 0, 1, 1); brush.fillStyle = text; brush.fillRect(0, 0, 1, 1);
      return Array.from(brush.getImageData(0, 0, 1, 1).data); };
    const rgb = (text) => { if (!seen.has(text)) seen.set(text, drawn(text)); return seen.get(text); };
    const light = ([r, g, b]) => { const f = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
      return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
    const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 200) return c; }
      return [255, 255, 255, 255]; };
    const out = [];
    await opened();
    for (const e of document.querySelectorAll("h1, h2, h3, p, nav a, .chip, .legend button, .why, code i, td, th, .spelled, figcaption, .facts li, summary, .soft")) {
      if (!e.textContent.trim()) continue;
      const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e));
      const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (contrast < 3) out.push([e.tagName, e.className, contrast.toFixed(2), e.textContent.slice(0, 30)]);
    }
    return {low: out.slice(0, 5), dark: matchMedia("(prefers-color-scheme: dark)").matches};
"""
# In this order: the last ones open all of the page.
SCRIPTS = {
    "loaded": "return performance.getEntriesByType('resource').map((r) => r.name).filter((n) => !n.startsWith('data:'));",
    "first": """
        const height = document.documentElement.scrollHeight, nodes = document.querySelectorAll("*").length;
        return [height, nodes, document.querySelector("section").id];
    """,
    "resting on a result": HOVER
    + """
        const out = {};
        for (const cell of Array.from(panes.querySelectorAll("code[data-result]")).filter((c) => c.dataset.from)) {
          hover(cell);
          out[cell.dataset.result] = numbers(cells("hot"));
        }
        return out;
    """,
    "resting on a source": HOVER
    + """
        const out = {};
        for (const cell of panes.querySelectorAll("code[data-source]")) { hover(cell); out[cell.dataset.source] = numbers(cells("hot")); }
        return out;
    """,
    "click": HOVER
    + """
        const cell = panes.querySelector('code[data-from]:not([data-from=""])');
        cell.click(); const kept = cells("pinned").length; cell.click();
        return [kept, cells("pinned").length];
    """,
    "fold": """
        const box = document.getElementById("fold"), panes = document.querySelector(".panes");
        const at = (folded) => { if (box.checked !== folded) box.click(); return panes.scrollHeight; };
        const found = [box.checked, at(false), at(true), at(false)];
        at(true);
        return found;
    """,
    "link": """
        const link = document.querySelector('.panes a[href^="#layout-"]'), card = document.getElementById(link.hash.slice(1));
        const before = card.open;
        link.click();
        for (let n = 0; n < 100 && !card.querySelector("svg"); n++) await new Promise((then) => setTimeout(then, 20));
        return [before, card.open, !!card.querySelector("svg")];
    """,
    "reason": """
        const button = document.querySelector('.legend button[data-why="layout"]'); button.click();
        const rows = Array.from(document.querySelectorAll(".panes .row[data-why]"));
        const wrong = rows.filter((r) => r.classList.contains("dim") === (r.dataset.why === "layout")).length;
        button.click();
        return [rows.length, wrong, rows.filter((r) => r.classList.contains("dim")).length];
    """,
    "boxes": """
        await opened();
        return Array.from(document.querySelectorAll("svg.detail")).map((svg) => {
          const box = svg.querySelector(".box");
          box.querySelector("rect").dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
          const same = Array.from(svg.querySelectorAll(".box.same"));
          const all = Array.from(svg.querySelectorAll(".box")).filter((b) => b.dataset.holder === box.dataset.holder);
          return [same.length, all.length, same.every((b) => b.dataset.holder === box.dataset.holder)];
        });
    """,
    "all": """
        await opened();
        const missing = Array.from(document.querySelectorAll('a[href^="#"]')).map((a) => a.getAttribute("href").slice(1))
          .filter((id) => !document.getElementById(id));
        const ids = Array.from(document.querySelectorAll("[id]")).map((e) => e.id).filter((id) => id !== "answer");
        const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
        return {missing, sections: Array.from(document.querySelectorAll("section")).map((s) => s.id), wide, twice: ids.length - new Set(ids).size,
          height: document.documentElement.scrollHeight};
    """,
    "readable": READABLE,
}


def links(page: str) -> dict[int, set[int]]:
    """Line of the result -> source lines, as the markup says."""
    found = re.findall(r'data-result="(\d+)" data-from="([\d ]*)"', page)
    return {int(line): {int(n) for n in origin.split()} for line, origin in found}


def test_no_errors_and_nothing_loaded_from_elsewhere(answer):
    """Whatever is done with the page."""
    assert answer.errors == () and answer.found["loaded"] == []


def test_an_error_would_be_noticed(tmp_path):
    """The check above can fail: a planted exception, a console message and a missing picture are all reported."""
    planted = '<script>console.error("planted one"); undefinedFunction();</script><img src="file:///nowhere.png">'
    page = f"<!DOCTYPE html><html><head></head><body><main>{planted}</main></body></html>"
    answer = chromium.ask(page, "return 1;", tmp_path)
    said = "\n".join(answer.errors)
    assert "planted one" in said and "undefinedFunction" in said and "nowhere.png" in said


def test_resting_on_a_result_lights_its_source(page, answer):
    """For every linked line of the result: what lights up is what the correspondence says, on both sides."""
    found = answer.found["resting on a result"]
    expected = {line: origin for line, origin in links(page).items() if origin}
    assert len(expected) > 30 and {int(k) for k in found} == set(expected)
    for line, origin in expected.items():
        lit = found[str(line)]
        assert set(lit["source"]) == origin
        assert set(lit["result"]) == {k for k, other in expected.items() if other & origin}


def test_resting_on_a_source_lights_its_results(page, answer):
    by_source: dict[int, set[int]] = {}
    for line, origin in links(page).items():
        for number in origin:
            by_source.setdefault(number, set()).add(line)
    assert by_source
    for line, lit in answer.found["resting on a source"].items():
        assert set(lit["source"]) == {int(line)} and set(lit["result"]) == by_source.get(int(line), set())


def test_a_click_keeps_lines_and_a_second_one_lets_go(answer):
    kept, after = answer.found["click"]
    assert kept >= 2 and after == 0


def test_unchanged_lines_fold(answer):
    first, open, folded, again = answer.found["fold"]
    assert first and folded < open == again


def test_a_page_is_small_and_short_before_anything_is_opened(page, answer):
    height, nodes, first = answer.found["first"]
    assert height < 6_000 < answer.found["all"]["height"] and nodes < 12_000 and len(page.encode()) < 1_000_000
    assert first == "verdict"


def test_a_link_to_a_layout_opens_its_card(answer):
    assert answer.found["link"] == [False, True, True]


def test_a_reason_dims_the_other_lines(answer):
    rows, wrong, left = answer.found["reason"]
    assert rows > 50 and wrong == 0 and left == 0


def test_resting_on_a_box_shows_all_that_its_lane_holds(answer):
    found = answer.found["boxes"]
    assert len(found) >= 4
    assert all(shown == wanted and right for shown, wanted, right in found)


def test_every_section_and_link_is_there(answer):
    found = answer.found["all"]
    assert found["missing"] == [] and found["twice"] == 0
    assert {"verdict", "code", "layouts", "pipeline", "parity"} <= set(found["sections"])
    assert found["wide"] <= 0, "the page is wider than its window"


def test_readable_in_light_and_dark(page, answer, tmp_path):
    """Text against what is behind it, for every visible kind of text: a contrast of at least 3 (WCAG, large text)."""
    light, dark = answer.found["readable"], chromium.ask(page, READABLE, tmp_path, DARK).found
    assert not light["dark"] and dark["dark"]
    assert light["low"] == dark["low"] == []


@pytest.mark.parametrize("page", ["matmul"], indirect=True)
def test_screenshots_show_a_light_and_a_dark_page(page, tmp_path):
    light, dark = (chromium.screenshot(page, tmp_path / "page.png", tmp_path, scheme) for scheme in (LIGHT, DARK))
    bright, dim = (png.pixels(data) for data in (light, dark))
    assert len(bright) == len(dim) == 1000 and len(bright[0]) == 1400
    assert png.brightness(bright) > 200 and png.brightness(dim) < 60
    assert len({pixel for row in bright[::4] for pixel in row[::4]}) > 60, "next to nothing is drawn"


def test_diff_page(tmp_path, capsys):
    folder = ROOT / "fixtures" / "matmul"
    status = run(
        ["diff", str(folder / "kernel.py"), "-t", "gfx942", "-l", str(folder / "launches.json"), "--format", "html"]
    )
    text = capsys.readouterr().out
    assert status == 0
    folds = "return Array.from(document.querySelectorAll('details.fold')).map((d) => d.open);"
    answer = chromium.ask(text, folds, tmp_path)
    assert answer.errors == () and answer.found and not any(answer.found)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
