// Decision: one pod, why it went where it went or why it waits: a sentence, the funnel of filters, what tells the best nodes
// apart, any node asked for, what would help, what wakes it. It follows: asked again every few seconds, with the time of the answer.

import { ask, at, podPath } from "./api.js";
import { adviceList, wakeList } from "./advice.js";
import { clock, count, facts, listed, make, nodeLink, podLink, several } from "./dom.js";
import { showVerdictsOf } from "./map-view.js";
import { model } from "./model.js";
import { scoreBars, verdictOf } from "./scores.js";
import { funnel } from "./verdicts.js";
import { asOf, View } from "./view.js";

class PodView extends View {
  build() {
    this.head = make("section", { "aria-labelledby": "pod-title" });
    this.told = make("div", { class: "told" });
    this.asked = make("input", { id: "why-not", list: "node-names", placeholder: "any node", value: this.askedNode || "", onchange: () => this.askNode() });
    this.answer = make("div", { "aria-live": "polite" });
    this.names = make("datalist", { id: "node-names" });
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
    let report, nodes = null;
    try {
      report = await ask(podPath(this.pod), { signal: this.ends.signal });
      if (report.nodeCount !== undefined) nodes = await ask(`${podPath(this.pod)}/nodes`, { signal: this.ends.signal });
    } catch (error) {
      if (error.status !== 404) throw error;
      this.head.replaceChildren(make("h2", { id: "pod-title", text: this.pod }), make("p", { class: "empty", text: error.message }));
      this.told.replaceChildren();
      return;
    }
    this.worked();
    const focused = this.told.contains(document.activeElement) || this.head.contains(document.activeElement);
    const shown = JSON.stringify({ ...report, at: 0 });
    if (shown !== this.shown && !focused) {  // a new picture would take the focus away: it waits until the focus has gone
      this.shown = shown;
      this.head.replaceChildren(...this.heading(report));
      this.told.replaceChildren(...this.explanation(report, nodes));
      this.dated = report.at;
    } else if (shown === this.shown) this.dated = report.at;
    this.head.querySelector(".as-of")?.remove();
    this.head.append(asOf(this.dated, focused && shown !== this.shown ? "and changed since; it follows when the focus leaves it" : "asked every 4 s"));
  }

  heading(report) {
    const tries = report.attempts ? `${report.place}, tried ${several(report.attempts, "time")}` : report.place;
    const until = report.backoffUntil ? `${tries}, pauses until ${clock(report.backoffUntil)}` : tries;
    const labels = Object.entries(report.labels || {}).map(([name, value]) => `${name}=${value}`).join(", ");
    return [make("h2", { id: "pod-title", text: report.pod }),
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
    if (report.ranking?.length) section(`Best nodes for ${other}, now`, scoreBars(report.ranking, report.node));
    if (report.claims?.length) section("Claims", make("ul", {}, ...report.claims.map((each) => make("li", { text: each.text }))));
    if (report.wakesOn?.length && !report.node) section("What wakes it", wakeList(report.wakesOn));
    return parts;
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
