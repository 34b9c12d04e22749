// How nodes look to one pod, on a map: who takes it in shades of its score, who refuses it in the colour of the plugin.

import { count, make } from "./dom.js";

export function scoreSpan(verdicts) {
  if (!verdicts.totals) return null;
  const totals = verdicts.totals.filter((total) => total !== null);
  return totals.length ? [totals.reduce((a, b) => Math.min(a, b)), totals.reduce((a, b) => Math.max(a, b))] : null;
}

export function verdictPaint(verdicts) {
  const span = scoreSpan(verdicts);
  return (row, colours) => {
    const by = verdicts.refusedBy[row];
    if (by >= 0) return colours.kinds[by % 8];
    if (!span) return colours.heat[60];
    return colours.heat[span[1] > span[0] ? Math.round(20 + 80 * (verdicts.totals[row] - span[0]) / (span[1] - span[0])) : 60];
  };
}

const key = (look, text) => make("span", { class: "key" }, make("span", { class: `mark ${look}` }), text);

// What the colours mean, with how many nodes each plugin refuses.
export function verdictKeys(verdicts) {
  const refusing = verdicts.plugins.map((name, i) => [name, i, verdicts.refusedBy.filter((by) => by === i).length]).filter(([, , n]) => n);
  const span = scoreSpan(verdicts);
  return [...(span ? [make("span", { class: "key" }, `score ${span[0]}`, make("span", { class: "heat" }), String(span[1]))] : []),
    ...refusing.map(([name, i, n]) => key(`kind-${i % 8}`, `${name} refuses ${count(n)}`))];
}

export const markKeys = () => [key("cordoned", "cordoned"), key("tainted", "tainted")];

export function verdictText(verdicts, row) {
  const by = verdicts.refusedBy[row];
  return by >= 0 ? `refused by ${verdicts.plugins[by]}` : `takes it${verdicts.totals ? `, score ${verdicts.totals[row]}` : ""}`;
}

// How many nodes are left after each filter, in the filters' order.
export function funnel(verdicts) {
  let left = verdicts.refusedBy.length;
  return verdicts.plugins.map((plugin, i) => {
    const refused = verdicts.refusedBy.reduce((n, by) => n + (by === i), 0);
    left -= refused;
    return { plugin, refused, left, kind: i % 8 };
  }).filter(({ refused }) => refused);
}
