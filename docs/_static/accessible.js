// What the theme leaves out for readers who use a keyboard, a screen reader or a small screen: names
// of the two sidebars, focus on what scrolls by itself, and columns of tables of words.
const label = (selector, name) =>
  document.querySelectorAll(selector).forEach((found) => found.setAttribute("aria-label", name));

const scrolls = () => {
  for (const box of document.querySelectorAll(".highlight pre, .table-wrapper, .formula, .output")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
};

addEventListener("DOMContentLoaded", () => {
  label(".sidebar-drawer", "All pages");
  label(".toc-drawer", "On this page");
  // The parameters of a signature are a list that defines nothing.
  document.querySelectorAll("dt.sig > dl").forEach((list) => list.setAttribute("role", "none"));
  document.querySelectorAll("summary").forEach((fold) => fold.removeAttribute("aria-label"));
  // The corner of a table of results is no heading.
  for (const corner of document.querySelectorAll("th")) {
    if (!corner.textContent.trim()) corner.replaceWith(document.createElement("td"));
  }
  // On narrow screens a table of words is shown cell by cell: each knows its column.
  for (const table of document.querySelectorAll("table.docutils")) {
    const columns = [...table.querySelectorAll("thead tr > *")].map((cell) => cell.textContent);
    const cells = [...table.querySelectorAll("tbody td")];
    if (columns.length < 3 || !cells.some((cell) => cell.textContent.length > 60)) continue;
    table.classList.add("words");
    for (const cell of cells) cell.dataset.column = columns[cell.cellIndex];
  }
  scrolls();
});
addEventListener("load", scrolls);
addEventListener("resize", scrolls);
