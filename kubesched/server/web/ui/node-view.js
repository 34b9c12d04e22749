// One node: what it offers and what is requested of it, its pods, labels and taints. It follows.

import { ask, at } from "./api.js";
import { facts, listed, make, percent, podLink, several, table } from "./dom.js";
import { asOf, View } from "./view.js";

class NodeView extends View {
  build() {
    this.section = make("section", { "aria-labelledby": "node-title" }, make("h2", { id: "node-title", text: this.node }));
    this.replaceChildren(this.section);
    this.every(4000, () => this.refresh());
  }

  async refresh() {
    let told;
    try {
      told = await ask(`nodes/${at(this.node)}`, { signal: this.ends.signal });
    } catch (error) {
      if (error.status !== 404) throw error;
      this.section.replaceChildren(make("h2", { id: "node-title", text: this.node }), make("p", { class: "empty", text: error.message }));
      return;
    }
    this.worked();
    const shown = JSON.stringify({ ...told, at: 0 });
    if (shown !== this.shown && !this.section.contains(document.activeElement)) {
      this.shown = shown;
      this.section.replaceChildren(...this.parts(told));
    }
    this.section.querySelector(".as-of")?.remove();
    this.section.append(asOf(told.at, shown === this.shown ? "asked every 4 s" : "and changed since; it follows when the focus leaves it"));
  }

  parts(told) {
    const labels = Object.entries(told.labels).map(([name, value]) => `${name}=${value}`).join(", ");
    const bars = make("div", { class: "totals" }, ...told.resources.map((each) => make("div", {}, make("span", { text: each.name }),
      make("meter", { min: 0, max: 1, value: Math.min(each.share, 1), "aria-label": `${each.name} ${percent(each.share)} requested` }),
      make("span", { class: "number", text: `${each.requested} of ${each.allocatable}` }))));
    const rows = told.pods.map((each) => make("tr", {}, make("td", {}, podLink(each.pod)), make("td", { text: listed(each.requests) || "nothing" }), make("td", { class: "number", text: each.priority || "" })));
    return [make("h2", { id: "node-title", text: told.node }), bars,
      facts([["pods", `${told.podCount} of ${told.allowedPods}`], ["taints", told.taints.join(", ")], ["cordoned", told.isCordoned && "yes"], ["labels", labels]]),
      ...(rows.length ? [make("div", { class: "wide-table" }, table([["pod"], ["requests"], ["priority", "number"]], rows))] : [make("p", { class: "empty", text: "No pod is here." })]),
      ...(told.podCount > told.pods.length ? [make("p", { class: "note", text: `and ${several(told.podCount - told.pods.length, "more pod")}` })] : [])];
  }
}

customElements.define("node-view", NodeView);
