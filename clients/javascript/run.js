/**
 * Reports of given words, for tests: reads JSON lines, writes one line of ASCII for each.
 *
 *     {"protocol": P, "value": V, "tape": "hex of words, the first byte lowest"}
 *
 * P is a description, a protocol file's content, or the path of either; clients of paths are kept.
 * In V what JSON does not have is {"integer": "18446744073709551615"}, a BigInt, {"number": "NaN"},
 * or {"undefined": true}. The answer is one of
 *
 *     {"report": "hex", "words": how many were drawn}      a report, or null for a user who skips
 *     {"error": "message", "words": how many were drawn}   what was refused
 *
 * Without "tape" the words are the system's, and are not counted.
 */

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

import { canonical } from "./description.js";
import { ClientError, load } from "./index.js";

const clients = new Map();
let tape = [];
let used = 0;

function word() {
  if (used === tape.length) throw new ClientError("the tape has no more words");
  return tape[used++];
}

/** The client of a description, or of a path, by given words or the system's. */
function clientOf(protocol, words) {
  if (typeof protocol !== "string") return load(protocol, words);
  const key = `${protocol} ${words ? "tape" : ""}`;
  if (!clients.has(key)) clients.set(key, load(readFileSync(protocol, "utf8"), words));
  return clients.get(key);
}

function valueOf(given) {
  if (Array.isArray(given)) return given.map(valueOf);
  if (given === null || typeof given !== "object") return given;
  const entries = Object.entries(given);
  const [[name, text]] = entries.length ? entries : [[]];
  if (name === "integer" && typeof text === "string") return BigInt(text);
  if (name === "number" && typeof text === "string") return Number(text);
  if (name === "undefined") return undefined;
  return Object.fromEntries(entries.map(([key, one]) => [key, valueOf(one)]));
}

function wordsOf(hex) {
  const bytes = Uint8Array.from(hex.match(/../g) || [], (byte) => parseInt(byte, 16));
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / 8 }, (_, k) => view.getBigUint64(8 * k, true));
}

function answer(line) {
  const request = JSON.parse(line);
  tape = wordsOf(request.tape || "");
  used = 0;
  try {
    const client = clientOf(request.protocol, request.tape === undefined ? undefined : word);
    const report = client.report(valueOf(request.value));
    return { report: report && Buffer.from(report).toString("hex"), words: used };
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    return { error: error.message, words: used };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${canonical(answer(line))}\n`);
}
