"use strict";

// Every step works without this: it shows only the fields of what is chosen, draws predictions again
// when a choice changes, and takes files that are dropped.

// ---------------------------------------------------------------- fields of what is chosen

const shown = (root, chosen) => {
  for (const field of root.querySelectorAll("[data-of]"))
    field.hidden = !field.dataset.of.split(" ").includes(chosen);
};

for (const select of document.querySelectorAll("select[data-shows]")) {
  const update = () => shown(select.closest("fieldset"), select.value);
  select.addEventListener("change", update);
  update();
}

for (const radio of document.querySelectorAll("input[type=radio][data-shows]")) {
  const update = () => { if (radio.checked) shown(radio.form, radio.value); };
  radio.addEventListener("change", update);
  update();
}

// ---------------------------------------------------------------- predictions

const part = document.getElementById("part"), busy = document.getElementById("busy");

for (const form of document.querySelectorAll("form[data-part]")) {
  let waiting = 0, asked = 0;
  const again = async () => {
    const number = ++asked;
    const query = new URLSearchParams(new FormData(form));
    for (const own of ["token", "press", "error"]) query.delete(own);
    part.setAttribute("aria-busy", "true");
    const late = setTimeout(() => { busy.hidden = false; }, 1000);
    const answer = await fetch(`${form.dataset.part}?${query}`);
    const text = await answer.text();
    clearTimeout(late);
    if (number !== asked) return;
    busy.hidden = true;
    part.innerHTML = text;
    part.removeAttribute("aria-busy");
    history.replaceState(null, "", `${location.pathname}?${query}`);
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
