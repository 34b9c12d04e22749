// Decisions: what is on record, newest first, filtered by pod, node, outcome, plugin and time; who was evicted for whom.

import { ask } from "./api.js";
import { clock, count, duration, make, nodeLink, podLink, reconcile } from "./dom.js";
import { model } from "./model.js";
import { changeRow } from "./node-changes.js";
import { View } from "./view.js";

const OUTCOMES = ["", "placed", "unschedulable", "preempted", "error"];
const LIMIT = 200;

class DecisionsView extends View {
  build() {
    const given = this.query || new URLSearchParams(), again = () => this.refresh().catch((error) => this.failed(error));
    const field = (name, label, control) => make("span", { class: "field" }, make("label", { for: `decision-${name}`, text: label }), control);
    const text = (name, placeholder) => make("input", { id: `decision-${name}`, name, type: "search", placeholder, value: given.get(name) || "", onchange: again });
    this.form = make("form", { class: "tools", onsubmit: (event) => { event.preventDefault(); again(); } },
      field("pod", "Pod", text("pod", "name or namespace/name")), field("node", "Node", text("node", "went to or evicts from")),
      field("outcome", "Outcome", make("select", { id: "decision-outcome", name: "outcome", onchange: again }, ...OUTCOMES.map((each) => make("option", { value: each, text: each || "any", selected: each === given.get("outcome") })))),
      field("plugin", "Refused by", text("plugin", "plugin")));
    this.since = given.get("since");
    this.until = given.get("until");
    if (this.since) this.form.append(make("span", { class: "chip" }, `${clock(Number(this.since))} to ${clock(Number(this.until))} `, make("a", { href: "#decisions", text: "all times" })));
    this.body = make("tbody");
    this.note = make("p", { class: "note" });
    const heads = [["at"], ["pod"], ["outcome"], ["decision"], ["took", "number"]];
    this.replaceChildren(make("section", { "aria-labelledby": "decisions-title" }, make("h2", { id: "decisions-title", text: "Decisions on record" }), this.form,
      make("div", { class: "wide-table" }, make("table", { class: "cards" }, make("thead", {}, make("tr", {}, ...heads.map(([name, look]) => make("th", { scope: "col", class: look, text: name })))), this.body)), this.note));
    if (this.since) {
      this.changes = make("ul", { class: "changes" });
      this.prepend(make("section", { "aria-labelledby": "changes-title" }, make("h2", { id: "changes-title", text: "What changed about nodes then" }), this.changes));
      this.every(10000, async () => {
        const { changes } = await ask(`node-changes?since=${this.since}&until=${this.until}`, { signal: this.ends.signal });
        reconcile(this.changes, changes, (one) => `${one.at} ${one.text} ${one.count}`, changeRow);
        if (!changes.length) this.changes.replaceChildren(make("li", { class: "empty", text: "Nothing." }));
      });
    }
    this.every(3000, () => this.refresh());
  }

  async refresh() {
    const asked = new URLSearchParams([...new FormData(this.form)].filter(([, value]) => value.trim()).map(([name, value]) => [name, value.trim()]));
    if (this.since) { asked.set("since", this.since); asked.set("until", this.until); }
    asked.set("limit", LIMIT);
    const newest = model.state?.decisions[0];
    const key = `${asked} ${newest ? newest.at + newest.pod : ""}`;
    if (key === this.asked && model.state) return;  // nothing was decided since
    const told = await ask(`/api/decisions?${asked}`, { signal: this.ends.signal });
    this.asked = key;
    this.worked();
    reconcile(this.body, withoutRepeats(told.decisions), (one) => `${one.sequence} ${one.times}`, (one) => make("tr", {}, make("td", { text: clock(one.at) }), make("td", { class: "pod" }, podLink(one.pod)),
      make("td", { "data-head": "outcome", class: one.outcome === "placed" ? "" : "refused", text: one.times > 1 ? `${one.outcome} × ${count(one.times)}` : one.outcome }),
      make("td", { class: "reason" }, one.sentence, ...(one.preemption ? [make("div", {}, "evicts ", ...one.preemption.victims.slice(0, 5).flatMap((pod) => [podLink(pod), " "]), "from ", nodeLink(one.preemption.node))] : [])),
      make("td", { class: "number", "data-head": "took", text: duration(one.latencySeconds) })));
    this.note.textContent = told.decisions.length ? `${count(told.decisions.length)} shown${told.next === null ? "" : ", there are older ones"}; the last ${count(told.size)} are kept.` : "Nothing on record matches.";
  }
}

// A pod that is told the same again and again is one line, that of the last time.
function withoutRepeats(decisions) {
  const lines = [];
  for (const one of decisions) {
    const last = lines[lines.length - 1];
    if (last && last.pod === one.pod && last.outcome === one.outcome && last.sentence === one.sentence) last.times += 1;
    else lines.push({ ...one, times: 1 });
  }
  return lines;
}

customElements.define("decisions-view", DecisionsView);
