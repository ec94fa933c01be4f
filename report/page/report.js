"use strict";
// Tables sort by a click on a column's head; figures by value, text by text, unknown values last.
// Without this script everything is there, unsorted.
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  if (table.tBodies[0].rows.length < 2) continue;
  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    while (head.firstChild) button.append(head.firstChild);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending" || (!head.hasAttribute("aria-sort") && head.classList.contains("left"));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const body = table.tBodies[0];
      const key = (row) => row.cells[i].dataset.v.replace(/^[<>]=/, "");
      const rows = [...body.rows];
      const numbers = rows.every((row) => key(row) === "" || !Number.isNaN(Number(key(row))));
      rows.sort((a, b) => {
        const x = key(a), y = key(b);
        if (x === "" || y === "") return (x === "") - (y === "");
        const order = numbers ? Number(x) - Number(y) : x.localeCompare(y);
        return up ? order : -order;
      });
      body.append(...rows);
    });
  });
}
// A note in a closed part opens it; a printed page has everything open.
const open = (element) => { for (let e = element; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true; };
addEventListener("hashchange", () => open(document.getElementById(location.hash.slice(1))));
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
