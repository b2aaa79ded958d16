// What the theme leaves out for readers who use a keyboard or a screen reader: names of the two
// sidebars, and focus on what scrolls by itself.
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
  scrolls();
});
addEventListener("load", scrolls);
addEventListener("resize", scrolls);
