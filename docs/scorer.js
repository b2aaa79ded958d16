// What is explained comes before what is listed. The best results are pages that have the words in
// their own title, then an entry of exactly that name, then pages with the words in a heading, then
// those with the words in their text; attributes, indexes and lists of measurements come last.
const asked = (new URLSearchParams(location.search).get("q") ?? "").toLowerCase().trim();
const words = asked.split(/\s+/);
const lists = /^(reference|benchmarks|reproduction|notation|genindex|CHANGELOG|renamed|contents)\b/;

var Scorer = {
  score: ([page, title, , description, score, , kind]) => {
    const name = title.toLowerCase();
    if (kind === "object") {
      const exact = name.split(".").at(-1) === asked;
      return exact && /^Python (class|function|exception)/.test(description) ? 16 : 1;
    }
    if (kind === "index") return 1;
    const titled = words.every((word) => name.includes(word));
    const first = name.startsWith(words[0]) ? 3 : 0;
    const bonus =
      titled && !name.includes(" > ") ? 5 + first + (10 * asked.length) / name.length : 0;
    return (score + bonus) * (lists.test(page) ? 0.3 : 1);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
