// What tells the best nodes apart: stacked bars of the plugins whose scores differ, and the rest said once.

import { make, nodeLink } from "./dom.js";

const weighted = (score) => (typeof score === "object" ? score.weighted : score);

export function scoreBars(ranking, home = "") {
  const plugins = Object.keys(ranking[0].byPlugin);
  const same = plugins.filter((plugin) => ranking.every((each) => weighted(each.byPlugin[plugin]) === weighted(ranking[0].byPlugin[plugin])));
  const differing = plugins.filter((plugin) => !same.includes(plugin));
  const most = Math.max(1, ...ranking.map((each) => differing.reduce((sum, plugin) => sum + Math.max(0, weighted(each.byPlugin[plugin])), 0)));
  const kind = (plugin) => `kind-${differing.indexOf(plugin) % 8}`;
  const lines = ranking.map((each) => make("tr", {},
    make("th", { scope: "row" }, nodeLink(each.node), each.node === home ? make("small", { text: " its node" }) : null),
    make("td", { class: "number" }, make("b", { text: each.total })),
    make("td", { class: "stack" }, make("span", { class: "bar-box" }, ...differing.map((plugin) => {
      const part = make("span", { class: `part ${kind(plugin)}`, title: `${plugin} ${weighted(each.byPlugin[plugin])}` });
      part.style.width = `${100 * Math.max(0, weighted(each.byPlugin[plugin])) / most}%`;
      return part;
    }))),
    ...differing.map((plugin) => make("td", { class: "number", text: weighted(each.byPlugin[plugin]) }))));
  const heads = [make("th", { scope: "col", text: "node" }), make("th", { scope: "col", class: "number", text: "total" }), make("th", { scope: "col", text: "what differs" }),
    ...differing.map((plugin) => make("th", { scope: "col", class: "number" }, make("span", { class: `mark ${kind(plugin)}` }), ...plugin.split(/(?=[A-Z][a-z])/).flatMap((word) => [word, make("wbr")])))];
  return make("div", {}, make("div", { class: "wide-table" }, make("table", { class: "scores" }, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...lines))),
    same.length ? make("p", { class: "note", text: `The same for all of them: ${same.map((plugin) => `${plugin} ${weighted(ranking[0].byPlugin[plugin])}`).join(", ")}.` }) : null);
}

// What every plugin says of one node.
export function verdictOf(told) {
  if (!told.isFeasible) {
    return make("div", {}, make("p", {}, nodeLink(told.node), ` is refused by ${told.refusals.length === 1 ? "one plugin" : `${told.refusals.length} plugins`}:`),
      make("ul", {}, ...told.refusals.map((each) => make("li", {}, make("b", { text: each.plugin || "PreFilter" }), `: ${each.reasons.join("; ")}`, each.helpsToEvict ? make("small", { text: " evicting pods may help" }) : null))));
  }
  if (!told.score) return make("p", { text: `${told.node} takes it.` });
  const behind = told.best.total - told.score.total;
  return make("div", {}, make("p", {}, nodeLink(told.node), behind ? ` takes it, ${behind} behind ${told.best.node}.` : " takes it, and no node scores higher."),
    scoreBars(behind ? [told.best, told.score] : [told.score]));
}
