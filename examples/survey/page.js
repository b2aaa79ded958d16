/**
 * Ask, make one report of the answers, show it, and send it until it is acknowledged.
 *
 * A report is drawn once for the same answers, and what is sent again is the same report with the
 * same key: retries reveal nothing more. From the moment it is to be sent the report (never the
 * answers) is kept in the browser's storage, so that it outlives the page. All tabs send what is
 * kept there, one tab at a time: of two that made a report, the second one's is never sent.
 */

import { base64, load } from "./client/index.js";

const PAUSES = [1, 2, 4, 8, 15]; // seconds before each further attempt
const PATIENCE = 20; // seconds for one attempt

const at = (id) => document.getElementById(id);
const texts = JSON.parse(at("texts").textContent);
const main = document.querySelector("main");
const form = at("questions");
const controls = [...form.querySelectorAll("[data-name]")];
const drawn = new Map(); // answers -> report and key, while the page is open
/** A text of the page, with something in its places. */
const told = (name, given = {}) =>
  texts[name].replace(/\{(\w+)\}/g, (_, place) => given[place]);
let client, shown;
let memory = null;

// ------------------------------------------------------------------------------------ storage

const place = () => `mechdesign ${client.wire}`;

/** What is kept: a report to be sent, or that one was sent; null. */
function kept() {
  try {
    return JSON.parse(localStorage.getItem(place())) ?? memory;
  } catch {
    return memory; // storage is not allowed, or holds something else
  }
}

/** Keep this, or nothing: whether it outlives the page. */
function keep(state) {
  memory = null;
  try {
    if (state === null) localStorage.removeItem(place());
    else localStorage.setItem(place(), JSON.stringify(state));
    return true;
  } catch {
    memory = state;
    return false;
  }
}

/** Do this while no other tab does; where there are no locks, at once. */
function alone(work) {
  if (!navigator.locks) return work();
  // A page that was left may be kept as it is for a while: it must not keep the lock
  const left = new Promise((done) => addEventListener("pagehide", done, { once: true }));
  return navigator.locks.request(place(), () => Promise.race([work(), left]));
}

// ------------------------------------------------------------------------------------- answers

/** One of the parts of the page, alone. */
function show(part) {
  for (const other of main.querySelectorAll("form, section")) other.hidden = other !== part;
  at("status").textContent = "";
  part.querySelector("h2")?.focus();
}

const absent = (control) =>
  at(`${control.id}-absent`)?.checked || control.selectedOptions?.[0].dataset.absent === "";

/** Why an answer cannot be taken; nothing if it can. */
function wrong(control) {
  if (absent(control)) return "";
  const text = control.value;
  const most = control.dataset.bytes;
  const long = most && new TextEncoder().encode(text).length > most;
  return text === "" || !control.validity.valid || long
    ? told("please", { values: control.dataset.expected })
    : "";
}

function mark(control) {
  const message = wrong(control);
  const error = at(`${control.id}-error`);
  error.textContent = message;
  error.hidden = !message;
  control.setAttribute("aria-invalid", String(Boolean(message)));
  return !message;
}

/** The answers by the names of the questions; null for none. */
const answers = () =>
  Object.fromEntries(
    controls.map((one) => [
      one.dataset.name,
      absent(one) ? null : one.type === "number" ? one.valueAsNumber : one.value,
    ]),
  );

// -------------------------------------------------------------------------------------- report

/** What the report says, as a list: an answer to each question, or bits. */
function said(payload) {
  const meaning = JSON.parse(at("meaning").textContent);
  const rows = meaning.map(({ name, labels, truth, lie }) => [question(name), labels, truth, lie]);
  let number = payload.reduceRight((total, byte) => (total << 8n) | BigInt(byte), 0n);
  const list = [];
  for (const [asked, labels, truth, lie] of rows.reverse()) {
    const size = BigInt(labels.length);
    const shares = { truth: percent(truth), lie: lie && percent(lie) };
    list.unshift(
      element("dt", asked),
      element("dd", labels[Number(number % size)]),
      element("dd", told(lie ? "truth_and_lies" : "truth", shares)),
    );
    number /= size;
  }
  if (!list.length) {
    const bits = [...payload].map((byte) => byte.toString(2).padStart(8, "0"));
    list.push(
      element("dt", told("bits", { bits: 8 * payload.length })),
      element("dd", bits.join(" ")),
      element("dd", told("chance")),
    );
  }
  at("said").replaceChildren(...list);
}

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

const question = (name) =>
  controls.find((one) => one.dataset.name === name).labels[0].textContent;

function percent(probability) {
  const number = Math.round(1000 * probability) / 10;
  const text = (value) => `${value.toLocaleString(texts.lang)} %`;
  if (number === 0) return told("less", { percent: text(0.1) });
  return number === 100 && probability < 1 ? told("more", { percent: text(99.9) }) : text(number);
}

/** A factor with two digits, rounded up. */
function roundedUp(text) {
  const near = Number(text).toFixed(2); // with an exponent, if it is enormous
  if (near.includes("e")) return near;
  const up = Number(near) < Number(text) ? Number(near) + 0.01 : Number(near);
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return up.toLocaleString(texts.lang, digits);
}

function make() {
  const good = controls.map(mark);
  if (good.includes(false)) {
    controls[good.indexOf(false)].focus();
    return;
  }
  const given = JSON.stringify(answers());
  if (!drawn.has(given)) {
    let report;
    try {
      report = client.report(JSON.parse(given));
    } catch (error) {
      at("status").textContent = error.message;
      return;
    }
    drawn.set(given, report && { key: key(), report: base64(report) });
  }
  shown = drawn.get(given);
  if (shown === null) {
    show(at("unsent"));
    return;
  }
  const bytes = bytesOf(shown.report);
  said(bytes.subarray(8));
  at("odds").textContent = roundedUp(client.odds);
  at("bytes").textContent = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  show(at("report"));
}

const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

const key = () =>
  [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");

// ------------------------------------------------------------------------------------- sending

const wait = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

/** The collector's answer: taken, or why it never will be; nothing if it should be tried again. */
async function attempt({ key, report }) {
  try {
    const answer = await fetch("reports", {
      method: "POST",
      headers: { "Content-Type": "application/octet-stream", "Idempotency-Key": key },
      body: bytesOf(report),
      credentials: "omit",
      signal: AbortSignal.timeout(1000 * PATIENCE),
    });
    if (answer.ok) return { taken: true };
    const later = answer.status >= 500 || [408, 425, 429].includes(answer.status);
    return later ? null : { taken: false, reason: (await answer.text()).slice(0, 300) };
  } catch {
    return null; // no answer: it may have arrived or not
  }
}

/** Leave no answers in the page. */
function forget() {
  drawn.clear();
  form.reset();
  for (const control of controls) control.disabled = false;
}

/** Send what is kept, or else this report; what another tab has sent meanwhile is the end of it. */
async function send(made = null) {
  show(at("sending"));
  at("retry").hidden = true;
  await alone(async () => {
    if (made && !kept()) at("outlives").hidden = !keep(made);
    for (const pause of [...PAUSES, null]) {
      const state = kept();
      if (!state?.report) return settle();
      const answer = await attempt(state);
      if (answer) {
        if (kept()?.key === state.key) keep(answer.taken ? { sent: true } : null);
        if (answer.taken) return settle();
        at("reason").textContent = answer.reason;
        return show(at("refused"));
      }
      if (pause === null) break;
      at("status").textContent = told("again");
      await wait(pause);
    }
    at("status").textContent = told("later");
    at("retry").hidden = false;
  });
}

/** Show what is kept: a report that was sent, one that is to be sent, or none. */
function settle() {
  const state = kept();
  if (state?.report) return send();
  if (state?.sent) forget();
  show(state?.sent ? at("thanks") : form);
}

// --------------------------------------------------------------------------------------- start

form.addEventListener("submit", (event) => {
  event.preventDefault();
  make();
});
for (const control of controls) {
  const again = () => control.getAttribute("aria-invalid") === "true" && mark(control);
  control.addEventListener("input", again);
  at(`${control.id}-absent`)?.addEventListener("change", (event) => {
    control.disabled = event.target.checked;
    again();
  });
}
at("send").addEventListener("click", () => send(shown));
at("retry").addEventListener("click", () => send());
addEventListener("storage", ({ key }) => {
  if (!client || key !== place()) return;
  // Another tab has sent the report, or asks for another person
  const idle = at("sending").hidden || !at("retry").hidden;
  if (idle && (kept()?.sent || (!kept() && !at("thanks").hidden))) settle();
});
for (const id of ["back", "again"]) at(id).addEventListener("click", () => show(form));
at("next").addEventListener("click", () => {
  keep(null);
  forget();
  show(form);
});

try {
  client = load(await (await fetch("protocol.json")).text());
  settle();
} catch (error) {
  at("status").textContent = told("broken", { reason: error.message });
}
