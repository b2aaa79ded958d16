"use strict";

// Every step works without this: it shows only the fields of what is chosen, draws predictions again
// when a choice changes, and takes files that are dropped.

// ---------------------------------------------------------------- fields of what is chosen

const shown = (root, chosen) => {
  for (const field of root.querySelectorAll("[data-of]"))
    field.hidden = !field.dataset.of.split(" ").includes(chosen);
};

for (const field of document.querySelectorAll("[data-shows]")) {
  const radio = field.type === "radio";
  const update = () => {
    if (!radio || field.checked) shown(radio ? field.form : field.closest("fieldset"), field.value);
  };
  field.addEventListener("change", update);
  update();
}

// ---------------------------------------------------------------- what takes long

const busy = document.getElementById("busy"), stop = busy.querySelector("button");
const late = () => setTimeout(() => { busy.hidden = false; }, 1000);

stop.addEventListener("click", () => fetch("/stop", {
  method: "POST", body: new URLSearchParams({ token: stop.dataset.token }),
}));
for (const form of document.forms) form.addEventListener("submit", late);
window.addEventListener("pageshow", () => { busy.hidden = true; });

// ---------------------------------------------------------------- predictions

const part = document.getElementById("part");

for (const form of document.querySelectorAll("form[data-part]")) {
  let waiting = 0, running = false, changed = false;
  const again = async () => {
    changed = running;
    if (running) return;
    running = true;
    do {
      changed = false;
      const query = new URLSearchParams(new FormData(form));
      for (const own of ["token", "press", "error"]) query.delete(own);
      part.setAttribute("aria-busy", "true");
      const timer = late();
      const answer = await fetch(`${form.dataset.part}?${query}`);
      part.innerHTML = await answer.text();
      clearTimeout(timer);
      busy.hidden = true;
      part.removeAttribute("aria-busy");
      history.replaceState(null, "", `${location.pathname}?${query}`);
    } while (changed);
    running = false;
  };
  const soon = () => { clearTimeout(waiting); waiting = setTimeout(again, 120); };
  const number = form.elements.epsilon;
  const slider = form.querySelector("[data-exponent]");
  slider.value = Math.log2(Number(number.value)) || 0;
  slider.addEventListener("input", () => {
    number.value = Number((2 ** slider.value).toPrecision(2));
    slider.setAttribute("aria-valuetext", `epsilon ${number.value}`);
    soon();
  });
  number.addEventListener("input", () => {
    if (Number(number.value) > 0) slider.value = Math.log2(Number(number.value));
    soon();
  });
  form.elements.people.addEventListener("input", soon);
}

// ---------------------------------------------------------------- files that are dropped

const drop = document.getElementById("drop");

if (drop) {
  const send = async (file) => {
    part.textContent = `Reading ${file.name} …`;
    const answer = await fetch(`/explained?name=${encodeURIComponent(file.name)}`, {
      method: "POST", body: file, headers: { "X-Token": drop.dataset.token },
    });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = page.querySelector("#part") || page.querySelector("main");
    part.replaceChildren(...(found ? found.childNodes : [page.body.textContent]));
  };
  drop.addEventListener("submit", (event) => event.preventDefault());
  drop.querySelector("input").addEventListener("change", (event) => {
    if (event.target.files.length) send(event.target.files[0]);
  });
  for (const name of ["dragover", "drop"])
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      if (name === "drop" && event.dataTransfer.files.length) send(event.dataTransfer.files[0]);
    });
}
