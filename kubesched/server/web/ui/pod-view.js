// Decision: one pod, why it went where it went or why it waits: as decided, from the record, or as things are now. A sentence, the
// filters, what tells the best nodes apart, victims, any node asked for, what would help, what wakes it. It follows: asked again
// every few seconds, with the time of the answer.

import { ask, at, podPath } from "./api.js";
import { adviceList, wakeList } from "./advice.js";
import { clock, count, duration, facts, listed, make, nodeLink, podLink, several } from "./dom.js";
import { showVerdictsOf } from "./map-view.js";
import { model } from "./model.js";
import "./node-map.js";
import { scoreBars, verdictOf } from "./scores.js";
import { funnel, markKeys, verdictKeys, verdictPaint, verdictText } from "./verdicts.js";
import { asOf, View } from "./view.js";

class PodView extends View {
  build() {
    this.head = make("section", { "aria-labelledby": "pod-title" }, make("h2", { id: "pod-title", text: this.pod }));
    this.mode = "";
    this.sequence = null;
    this.told = make("div", { class: "told" });
    this.asked = make("input", { id: "why-not", list: "node-names", placeholder: "any node", value: this.askedNode || "", onchange: () => this.askNode() });
    this.answer = make("div", { "aria-live": "polite" });
    this.names = make("datalist", { id: "node-names" });
    this.map = make("node-map");
    this.map.addEventListener("open", ({ detail }) => {
      this.asked.value = detail;
      this.askNode().then(() => this.answer.scrollIntoView({ block: "nearest" }));
    });
    this.replaceChildren(this.head, this.told,
      make("section", { "aria-labelledby": "why-not-title" }, make("h2", { id: "why-not-title", text: "Why not this node?" }),
        make("form", { class: "tools", onsubmit: (event) => { event.preventDefault(); this.askNode(); } },
          make("label", { for: "why-not", text: "Node" }), this.asked, this.names, make("button", { class: "quiet", text: "Ask" }),
          make("a", { href: "#map", text: "Colour the map by this pod", onclick: () => showVerdictsOf(this.pod) })), this.answer));
    this.every(4000, () => this.refresh());
    if (this.asked.value) this.askNode();
  }

  onState({ hasNodes }) {
    if (hasNodes) this.names.replaceChildren(...model.nodes.names.slice(0, 2000).map((name) => make("option", { value: name })));
  }

  async refresh() {
    const signal = this.ends.signal, record = await ask(`${podPath(this.pod)}/decisions`, { signal });
    let report = null, nodes = null, problem = "";
    try {
      report = await ask(podPath(this.pod), { signal });
      if (report.nodeCount !== undefined) nodes = await ask(`${podPath(this.pod)}/nodes`, { signal });
    } catch (error) {
      if (error.status !== 404) throw error;
      problem = error.message;
    }
    this.worked();
    this.known = { record, report, nodes, problem, at: record.at };
    const isUsed = this.told.contains(document.activeElement) || this.head.contains(document.activeElement);
    this.draw(isUsed);
  }

  draw(isUsed) {
    const { record, report, nodes, problem, at: asked } = this.known;
    const shown = JSON.stringify([record.decisions, { ...report, at: 0 }, nodes?.refusedBy, nodes?.totals, problem, this.mode, this.sequence]);
    if (shown !== this.shown && !isUsed) {  // a new picture would take the focus away: it waits until the focus has gone
      this.shown = shown;
      this.fill(record, report, nodes, problem);
      this.dated = asked;
    } else if (shown === this.shown) this.dated = asked;
    this.head.querySelector(".as-of")?.remove();
    this.head.append(asOf(this.dated, shown !== this.shown ? "and changed since; it follows when the focus leaves it" : "asked every 4 s"));
  }

  fill(record, report, nodes, problem) {
    const decisions = record.decisions;
    const mode = this.mode || (decisions.length && (!report || report.node) ? "decided" : "now");
    const title = make("h2", { id: "pod-title", text: this.pod });
    const choose = (name, text) => make("button", { type: "button", text, "aria-pressed": String(mode === name), onclick: () => { this.mode = name; this.draw(false); this.head.querySelector(`.choices [aria-pressed=true]`)?.focus(); } });
    const choices = make("div", { class: "choices", role: "group", "aria-label": "Of when" }, ...(decisions.length ? [choose("decided", "As decided")] : []), choose("now", "Now"));
    if (mode === "decided" && decisions.length) {
      const chosen = decisions.find(({ sequence }) => sequence === this.sequence) || decisions[0];
      this.head.replaceChildren(title, choices, ...asDecided(chosen, decisions, (sequence) => { this.sequence = sequence; this.draw(false); }), ...(report ? [] : [make("p", { class: "note", text: "The pod is gone; this is what is on record." })]));
      this.told.replaceChildren(...decidedParts(chosen));
    } else if (report) {
      this.head.replaceChildren(title, choices, ...(decisions.length || record.isRecorded ? [] : [make("p", { class: "note", text: "No decisions are kept on record here (--decision-records 0)." })]), ...this.heading(report));
      this.told.replaceChildren(...this.explanation(report, nodes));
      this.map.draw?.();
    } else {
      this.head.replaceChildren(title, choices, make("p", { class: "empty", text: problem }));
      this.told.replaceChildren();
    }
  }

  heading(report) {
    const tries = report.attempts ? `${report.place}, tried ${several(report.attempts, "time")}` : report.place;
    const until = report.backoffUntil ? `${tries}, pauses until ${clock(report.backoffUntil)}` : tries;
    const labels = Object.entries(report.labels || {}).map(([name, value]) => `${name}=${value}`).join(", ");
    return [
      make("p", { class: "sentence", text: sentence(report) }),
      facts([["state", report.state], ["node", report.node && nodeLink(report.node)], ["queue", until],
        ["gate", report.gate && `${report.gate.plugin}: ${report.gate.text}`],
        ["requests", listed(report.requests)], ["priority", report.priority && String(report.priority)],
        ["scheduler", report.scheduler], ["was told", report.message], ["group", report.groupNote], ["labels", labels]])];
  }

  explanation(report, nodes) {
    const parts = [], section = (title, ...children) => parts.push(make("section", {}, make("h2", { text: title }), ...children));
    const other = report.node ? "one more like it" : "it";
    if (report.failure) section("The attempt broke", make("p", { class: "refused", text: report.failure }));
    if (report.advice?.length) section("What would help", adviceList(report.advice), ...(report.ever ? [make("p", { class: "note", text: report.ever.text })] : []));
    else if (report.ever) section("Will it ever fit", make("p", { text: report.ever.text }));
    if (report.preemption) section("Preemption", preemption(report.preemption));
    if (nodes && nodes.refusedBy.length) section(`Filters, now: ${count(report.feasibleCount)} of ${several(report.nodeCount, "node")} would take ${other}`, funnelBars(nodes), refusals(report));
    if (nodes && this.showsMap(nodes)) section("Every node, now", make("p", { class: "legend" }, ...verdictKeys(nodes), ...markKeys()), this.map, make("p", { class: "note", text: "Choose a node to see below what every plugin says of it." }));
    if (report.ranking?.length) section(`Best nodes for ${other}, now`, scoreBars(report.ranking, report.node));
    if (report.claims?.length) section("Claims", make("ul", {}, ...report.claims.map((each) => make("li", { text: each.text }))));
    if (report.wakesOn?.length && !report.node) section("What wakes it", wakeList(report.wakesOn));
    return parts;
  }

  // The map of what this pod meets; not while the columns are of other nodes than the model has.
  showsMap(nodes) {
    if (!model.isReady || nodes.nodesVersion !== model.versions.nodes) return false;
    const paint = verdictPaint(nodes), feasible = (rows) => count(rows.filter((row) => nodes.refusedBy[row] < 0).length);
    const groups = model.grouped((row) => model.zone(row) || "no zone").map(({ title, rows }) => ({ rows, title: `${title} · ${several(rows.length, "node")} · ${feasible(rows)} feasible` }));
    this.map.picture = { groups, paint: (row, colours) => ({ fill: paint(row, colours) }), describe: (row) => [model.nodes.names[row], verdictText(nodes, row)],
      label: `${several(model.nodes.names.length, "node")}, coloured by what ${this.pod} meets: ${groups.map(({ title }) => title).join(", ")}` };
    return true;
  }

  async askNode() {
    const node = this.asked.value.trim();
    if (!node) { this.answer.replaceChildren(); return; }
    try {
      this.answer.replaceChildren(verdictOf(await ask(`${podPath(this.pod)}/nodes/${at(node)}`, { signal: this.ends.signal })));
    } catch (error) {
      if (error.name !== "AbortError") this.answer.replaceChildren(make("p", { class: "refused", text: error.message }));
    }
  }
}

// A decision on record: what it says of itself, and the others about the same pod to choose from.
function asDecided(one, decisions, choose) {
  const pick = make("select", { id: "which-decision", onchange: () => choose(Number(pick.value)) },
    ...decisions.map((each) => make("option", { value: each.sequence, text: `${clock(each.at)} attempt ${each.attempt}: ${each.outcome}`, selected: each.sequence === one.sequence })));
  const others = one.levelCount > 1 ? several(one.levelCount - 1, "other") : one.levelCount === null ? "others" : "";
  const rivals = others ? `; ${others} had it too, first ${one.runnerUp}` : one.runnerUp ? `, ${count(one.margin)} more than ${one.runnerUp}` : "";
  return [make("p", { class: "sentence", text: one.sentence }),
    facts([["decided", decisions.length > 1 ? pick : `${clock(one.at)}, attempt ${one.attempt}`], ["outcome", one.outcome], ["node", one.node && nodeLink(one.node)],
      ["total", one.total !== undefined && `${one.total}${rivals}`],
      ["feasible", `${count(one.feasibleCount)} of ${several(one.nodeCount, "node")}`], ["took", `${duration(one.latencySeconds)} to decide${one.boundSeconds !== undefined ? `, ${duration(one.boundSeconds)} from the first try to bound` : ""}`],
      ["scheduler", one.scheduler], ["group", one.group]])];
}

function decidedParts(one) {
  const parts = [], section = (title, ...children) => parts.push(make("section", {}, make("h2", { text: title }), ...children));
  if (one.preemption) section(`Evicted from ${one.preemption.node} for it`, make("ul", {}, ...one.preemption.victims.map((pod) => make("li", {}, podLink(pod)))),
    make("p", { class: "note", text: one.preemption.budgetViolations ? `${one.preemption.budgetViolations} of them against a disruption budget` : "no disruption budget was broken" }));
  if (one.refusals === null) section("Filters", make("p", { class: "note", text: "Who refused was not counted, as it would have taken too long; a replay of the inbox log counts it." }));
  else if (one.refusals.length) section(`Filters: ${count(one.feasibleCount)} of ${several(one.nodeCount, "node")} took it`, reasonBars(one.refusals, one.nodeCount));
  if (one.ranking?.length) section("Best nodes, as they scored", scoreBars(one.ranking, one.node));
  else if (one.outcome === "placed") section("Scores", make("p", { class: "note", text: one.chosenBy === "only" ? "Only one node took it, so none was scored." : "The scores by plugin are kept of so many decisions a second; this was beyond it." }));
  return parts;
}

function reasonBars(refusals, all) {
  return make("ol", { class: "funnel" }, ...refusals.map(({ plugin, reason, count: n }, i) => {
    const part = make("span", { class: `goes kind-${i % 8}` });
    part.style.width = `${100 * Math.min(1, n / all)}%`;
    return make("li", {}, make("span", { class: "name" }, plugin, make("small", { text: ` ${reason}` })), make("span", { class: "bar-box", "aria-hidden": "true" }, part), make("span", { class: "number", text: `−${count(n)}` }));
  }));
}

// The decision in one sentence, as things are now.
function sentence(report) {
  if (report.state === "gated") return `It is not tried: ${report.gate.text}`;
  if (report.failure) return report.failure;
  const [first, second] = report.ranking || [];
  if (!first) return report.wouldSay || (report.node ? `It is on ${report.node}.` : "");
  const who = report.node ? `It is on ${report.node}. One more like it:` : "Now:";
  if (!second) return `${who} ${first.node} is the only node that takes it.`;
  const by = first.total - second.total;
  const parts = Object.entries(first.byPlugin).map(([plugin, score]) => [plugin, score - second.byPlugin[plugin]]).filter(([, ahead]) => ahead)
    .sort(([, a], [, b]) => Math.abs(b) - Math.abs(a)).map(([plugin, ahead]) => `${plugin} ${ahead > 0 ? "+" : "−"}${Math.abs(ahead)}`);
  if (!by) return `${who} ${first.node} and ${second.node} are level with ${first.total}; the seed chooses.`;
  return `${who} ${first.node} would win by ${by} over ${second.node}: ${parts.join(", ")}.`;
}

function funnelBars(nodes) {
  const all = nodes.refusedBy.length, steps = funnel(nodes);
  const bar = (left, refused, kind) => {
    const stays = make("span", { class: "stays" }), goes = make("span", { class: `goes kind-${kind}` });
    stays.style.width = `${100 * left / all}%`;
    goes.style.width = `${100 * refused / all}%`;
    return make("span", { class: "bar-box", "aria-hidden": "true" }, stays, goes);
  };
  if (!steps.length) return make("p", { class: "note", text: "No filter refuses any node." });
  return make("ol", { class: "funnel" }, ...steps.map(({ plugin, refused, left, kind }) => make("li", {},
    make("span", { class: "name", text: plugin }), bar(left, refused, kind), make("span", { class: "number", text: `−${count(refused)}, ${count(left)} left` }))));
}

function refusals(report) {
  return make("ul", { class: "refusals" }, ...report.refusals.map((each) => make("li", {}, make("b", { text: `${count(each.count)} ` }), each.reason, " ",
    make("small", { text: [each.plugin, each.helpsToEvict ? "evicting pods may help" : "", each.examples.join(", ")].filter(Boolean).join(" · ") }))));
}

function preemption(told) {
  if (!told.helps) return make("p", { text: told.text || "Evicting pods would not help." });
  return make("div", {}, make("p", {}, `It would evict ${several(told.victimCount, "pod")} from `, nodeLink(told.node), told.budgetsBroken ? `, ${told.budgetsBroken} against a disruption budget` : ""),
    make("ul", {}, ...told.victims.map((each) => make("li", {}, podLink(each.pod), ` priority ${each.priority}`))));
}

customElements.define("pod-view", PodView);
