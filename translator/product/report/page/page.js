"use strict";
(function () {
  const panes = document.querySelector(".panes");
  const all = (selector, root) => Array.from((root || document).querySelectorAll(selector));

  // Source and result in step: a line and what it is linked to light up together; a click keeps them lit.
  if (panes) {
    const bySource = new Map(), byResult = new Map();
    const add = (map, key, cell) => map.set(key, (map.get(key) || []).concat(cell));
    all("code[data-source]", panes).forEach((cell) => add(bySource, cell.dataset.source, cell));
    all("code[data-from]", panes).forEach((cell) =>
      cell.dataset.from.split(" ").filter(Boolean).forEach((line) => add(byResult, line, cell)));
    const family = (cell) => {
      const lines = cell.dataset.source ? [cell.dataset.source] : (cell.dataset.from || "").split(" ").filter(Boolean);
      const cells = new Set([cell]);
      lines.forEach((line) => (bySource.get(line) || []).concat(byResult.get(line) || []).forEach((c) => cells.add(c)));
      return cells;
    };
    const clear = (name) => all("code." + name, panes).forEach((cell) => cell.classList.remove(name));
    const cellOf = (event) => event.target.closest("code[data-source], code[data-from]");
    panes.addEventListener("mouseover", (event) => {
      const cell = cellOf(event);
      clear("hot");
      if (cell) family(cell).forEach((c) => c.classList.add("hot"));
    });
    panes.addEventListener("mouseleave", () => clear("hot"));
    panes.addEventListener("click", (event) => {
      const cell = cellOf(event);
      if (!cell || event.target.closest("a")) return;
      const was = cell.classList.contains("pinned");
      clear("pinned");
      if (!was) family(cell).forEach((c) => c.classList.add("pinned"));
    });
    const fold = document.getElementById("fold");
    if (fold) {
      const apply = () => all("details.fold", panes).forEach((d) => { d.open = !fold.checked; });
      fold.addEventListener("change", apply);
    }
    all(".legend button").forEach((button) =>
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        all(".legend button").forEach((b) => b.setAttribute("aria-pressed", "false"));
        button.setAttribute("aria-pressed", String(on));
        all(".row[data-why]", panes).forEach((row) => row.classList.toggle("dim", on && row.dataset.why !== button.dataset.why));
      }));
  }

  // Drawings: everything that one lane holds, or that happens to one tile, stands out together.
  const together = (svg, selector, key) => {
    svg.addEventListener("mouseover", (event) => {
      const box = event.target.closest(selector);
      all(selector, svg).forEach((b) => b.classList.toggle("same", !!box && b.dataset[key] === box.dataset[key]));
    });
    svg.addEventListener("mouseleave", () => all(selector, svg).forEach((b) => b.classList.remove("same")));
  };
  all("svg.detail").forEach((svg) => together(svg, ".box", "holder"));
  all("svg.timeline").forEach((svg) => together(svg, ".bar", "tile"));
})();
