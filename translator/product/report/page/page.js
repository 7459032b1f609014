"use strict";
(function () {
  const panes = document.querySelector(".panes");
  const all = (selector, root) => Array.from((root || document).querySelectorAll(selector));

  let index = () => {};
  const dim = () => {
    const button = document.querySelector('.legend button[aria-pressed="true"]');
    all(".row[data-why]", panes).forEach((row) => row.classList.toggle("dim", !!button && row.dataset.why !== button.dataset.why));
  };

  // Source and result in step: a line and what it is linked to light up together; a click keeps them lit.
  if (panes) {
    let bySource = new Map(), byResult = new Map();
    index = () => {
      bySource = new Map(), byResult = new Map();
      const add = (map, key, cell) => map.has(key) ? map.get(key).push(cell) : map.set(key, [cell]);
      all("code[data-source]", panes).forEach((cell) => add(bySource, cell.dataset.source, cell));
      all("code[data-from]", panes).forEach((cell) =>
        cell.dataset.from.split(" ").filter(Boolean).forEach((line) => add(byResult, line, cell)));
      dim();
    };
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
      const apply = () => all("details.fold:not([data-packed])", panes).forEach((d) => { d.open = !fold.checked; });
      fold.addEventListener("change", apply);
    }
    all(".legend button").forEach((button) =>
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        all(".legend button").forEach((b) => b.setAttribute("aria-pressed", "false"));
        button.setAttribute("aria-pressed", String(on));
        dim();
      }));
    index();
  }

  // What is packed until somebody opens it, or follows a link to it.
  const begun = new WeakSet();
  const unpack = async (details) => {
    const packed = details.dataset.packed;
    if (!packed || begun.has(details)) return;
    begun.add(details);
    const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    details.insertAdjacentHTML("beforeend", await new Response(stream).text());
    delete details.dataset.packed;
    if (panes && panes.contains(details)) index();
  };
  document.addEventListener("toggle", (event) => { if (event.target.open) unpack(event.target); }, true);
  const follow = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  window.addEventListener("hashchange", follow);
  follow();

  // Drawings: everything that one lane holds, or that happens to one tile, stands out together.
  for (const [name, selector, key] of [["detail", ".box", "holder"], ["timeline", ".bar", "tile"]]) {
    document.addEventListener("mouseover", (event) => {
      const svg = event.target.closest("svg." + name), box = event.target.closest(selector);
      all("svg." + name + " .same").forEach((b) => b.classList.remove("same"));
      if (svg && box) all(selector, svg).forEach((b) => b.classList.toggle("same", b.dataset[key] === box.dataset[key]));
    });
  }
})();
