// Sortable tables: each column head becomes a button; the third press gives the written order back.
// Tables that are wider than their box say so.
(() => {
  const key = (cell) => {
    if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
    const text = cell.textContent.trim();
    return text === "" || text === "–" || text === "unknown" ? null : text;
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b
      : typeof a === typeof b ? a.localeCompare(b, "en", { numeric: true })
        : typeof a === "number" ? -1 : 1;
  const sorted = (rows, column, sign) => rows.slice().sort((one, other) => {
    const [a, b] = [key(one.cells[column]), key(other.cells[column])];
    // What is unknown stands last, whichever way.
    return a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b);
  });
  for (const table of document.querySelectorAll("main table")) {
    const body = table.tBodies[0];
    const written = [...body.rows];
    const free = written.filter((row) => !row.classList.contains("total"));
    if (free.length < 2) continue;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const next = { ascending: "descending", descending: null }[head.getAttribute("aria-sort")];
        const order = next === undefined ? "ascending" : next;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        if (order) head.setAttribute("aria-sort", order);
        const rows = order ? sorted(free, column, order === "ascending" ? 1 : -1) : free;
        const rest = written.filter((row) => !free.includes(row));
        body.append(...(order ? [...rows, ...rest] : written));
      });
    });
  }
  const tell = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      box.classList.toggle("more", box.scrollWidth > box.clientWidth + 1);
    }
  };
  tell();
  document.fonts.ready.then(tell);
  window.addEventListener("resize", tell);
})();
