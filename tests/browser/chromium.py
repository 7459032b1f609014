"""A headless Chromium for tests: load a page, run a script on it, give back what it found and what went wrong."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
LIMIT_S = 120
# Before anything of the page runs: keep every error where the DOM that is dumped at the end shows it.
_CAPTURE = """<script>
window.__errors = [];
window.addEventListener("error", (e) => window.__errors.push(String(e.message || (e.target && e.target.outerHTML))), true);
window.addEventListener("unhandledrejection", (e) => window.__errors.push(String(e.reason)));
for (const name of ["error", "warn"]) {
  const plain = console[name];
  console[name] = (...words) => { window.__errors.push(words.join(" ")); plain.apply(console, words); };
}
</script>"""
_ANSWER = """<script>
window.addEventListener("load", async () => {
  let found = null;
  const opened = async () => {  // everything on demand is there
    for (let left; (left = document.querySelectorAll("details[data-packed]")).length;) {
      left.forEach((d) => { d.open = true; });
      await new Promise((then) => setTimeout(then, 20));
    }
    document.querySelectorAll("details").forEach((d) => { d.open = true; });
  };
  try { found = await (async function () { %s })(); } catch (error) { window.__errors.push("script: " + error); }
  const pre = document.createElement("pre");
  pre.id = "answer";
  pre.textContent = JSON.stringify({found, errors: window.__errors});
  document.body.appendChild(pre);
});
</script>"""


def find() -> str | None:
    """The browser's path, None when there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass(frozen=True)
class Answer:
    """found: what the script returned. errors: of the page, of the console, and what the browser logged about it."""

    found: object
    errors: tuple[str, ...]


def _command(profile: Path, *more: str) -> list[str]:
    browser = find()
    assert browser, "no browser"
    return [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--enable-logging=stderr",
        f"--user-data-dir={profile}",
        *more,
    ]


def ask(page: str, script: str, folder: Path, *options: str) -> Answer:
    """Load `page` from a file and run `script` (the body of an asynchronous function) when it is complete; `opened()` opens all of it."""
    path = folder / "page.html"
    instrumented = page.replace("<head>", "<head>" + _CAPTURE, 1).replace("</body>", _ANSWER % script + "</body>", 1)
    path.write_text(instrumented, encoding="utf-8")
    size = "--window-size=1400,1000"
    command = _command(folder / "profile", size, *options, "--virtual-time-budget=60000", "--dump-dom", path.as_uri())
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    found = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, f"the page did not answer; the browser said {done.stderr[-2000:]}"
    answer = json.loads(html.unescape(found.group(1)))
    logged = re.findall(r"CONSOLE.*", done.stderr)
    return Answer(answer["found"], (*answer["errors"], *logged))


def screenshot(page: str, path: Path, folder: Path, *options: str) -> bytes:
    """A picture of the top of the page as PNG."""
    source = folder / "shown.html"
    source.write_text(page, encoding="utf-8")
    command = _command(
        folder / "profile", "--hide-scrollbars", "--window-size=1400,1000", *options, f"--screenshot={path}"
    )
    subprocess.run([*command, source.as_uri()], capture_output=True, timeout=LIMIT_S, check=True)
    return path.read_bytes()
