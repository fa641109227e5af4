// Sorts, filters, unpacks and switches the theme. The report is readable without it.
(() => {
  "use strict";
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // --- theme: the reader's own choice, kept where the browser allows it
  const themes = ["system", "light", "dark"];
  const button = document.getElementById("theme");
  const remembered = () => { try { return localStorage.getItem("deploybench-theme"); } catch { return null; } };
  const setTheme = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.lastElementChild.textContent = theme;
    try { localStorage.setItem("deploybench-theme", theme); } catch { /* a file may not keep anything */ }
  };
  const remember = remembered();
  setTheme(themes.includes(remember) ? remember : "system");
  button.hidden = false;
  button.addEventListener("click", () => {
    const now = themes.indexOf(document.documentElement.dataset.theme);
    setTheme(themes[(now + 1) % themes.length]);
  });

  // --- sorting: a header becomes a button
  const key = (row, column, kind) => {
    const cell = row.cells[column];
    if (kind === "text") return cell.textContent.trim().toLowerCase();
    return cell.dataset.value ? Number(cell.dataset.value) : -Infinity;
  };
  const sort = (table, header, kind) => {
    const column = header.cellIndex;
    const was = header.getAttribute("aria-sort");
    const ascending = was ? was === "descending" : kind === "text";
    for (const other of all("[aria-sort]", table)) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const body = table.tBodies[0];
    const sign = ascending ? 1 : -1;
    const rows = [...body.rows].map((row) => ({ row, value: key(row, column, kind) }));
    rows.sort((a, b) => (a.value < b.value ? -sign : a.value > b.value ? sign : 0));
    body.append(...rows.map((each) => each.row));
  };
  for (const table of all("table.sortable")) {
    for (const header of all("th[data-sort]", table)) {
      const control = document.createElement("button");
      control.type = "button";
      control.append(...header.childNodes);
      header.append(control);
      control.addEventListener("click", () => sort(table, header, header.dataset.sort));
    }
  }

  // --- filter: the trials, their pages, and the tasks of which some trial is left
  const form = document.getElementById("filter");
  const filter = () => {
    const { text, verdict, contestant, label } = Object.fromEntries(new FormData(form));
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const tasks = new Set();
    let left = 0;
    for (const row of all(".trials tbody tr")) {
      const said = row.textContent.toLowerCase();
      const fits = (!verdict || row.dataset.verdict === verdict)
        && (!contestant || row.dataset.contestant === contestant)
        && (!label || row.dataset.labels.split(" ").includes(label))
        && words.every((word) => said.includes(word));
      row.hidden = !fits;
      document.getElementById(row.dataset.trial).hidden = !fits;
      if (fits) { left += 1; tasks.add(row.dataset.task); }
    }
    for (const row of all(".matrix tbody tr")) row.hidden = !tasks.has(row.dataset.task);
    form.querySelector("output").textContent = `${left} of ${all(".trials tbody tr").length} trials`;
  };
  if (form) {
    form.hidden = false;
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(filter));
    filter();
  }

  // --- a trial's page: opened by its link; what is packed is unpacked when it is looked at
  const unpack = async (texts) => {
    const packed = texts.dataset.packed;
    if (!packed || !("DecompressionStream" in window)) return;
    delete texts.dataset.packed;
    const bytes = Uint8Array.from(atob(packed), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    // The same markup as what stands here, escaped when the file was made, only with more of each text.
    texts.innerHTML = await new Response(stream).text();
  };
  for (const trial of all("details.trial")) {
    trial.addEventListener("toggle", () => trial.open && all(".texts", trial).forEach(unpack));
  }
  const follow = () => {
    const trial = document.getElementById(location.hash.slice(1));
    if (trial instanceof HTMLDetailsElement) {
      trial.hidden = false;
      trial.open = true;
      trial.querySelector("summary").focus({ preventScroll: true });
      trial.scrollIntoView();
    }
  };
  window.addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link && link.hash === location.hash) follow();
  });
  follow();
})();
