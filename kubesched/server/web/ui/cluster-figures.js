// The figures above every view: nodes, pods, rate, queue, and how much is requested of what there is.

import { amount, count, make, percent, several } from "./dom.js";
import { model } from "./model.js";
import { View } from "./view.js";

const QUEUE = [
  ["active", "May be tried now"],
  ["backoff", "Pause before they are tried again"],
  ["unschedulable", "Were refused by every node and wait for a change that may help"],
  ["gated", "Kept from being tried by a scheduling gate or another plugin"],
  ["inFlight", "Are being tried or bound"],
];
const SECONDS = 60;

class ClusterFigures extends View {
  build() {
    const tile = (title, id, hint, ...more) => make("div", { class: "tile", title: hint }, make("h2", { text: title }), make("p", { class: "figure", id, text: "0" }), make("p", { class: "note", id: `${id}-note` }), ...more);
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    for (const [name, value] of [["viewBox", "0 0 120 28"], ["preserveAspectRatio", "none"], ["role", "img"], ["aria-label", "Pods bound in each of the last 60 seconds"]]) svg.setAttribute(name, value);
    svg.classList.add("spark");
    svg.append(path);
    this.path = path;
    this.queue = make("dl", { class: "queue" }, ...QUEUE.map(([name, hint]) => make("div", { title: hint }, make("dd", { "data-place": name, text: "0" }), make("dt", { text: name === "inFlight" ? "in flight" : name }))));
    this.totals = make("div", { class: "totals" });
    this.replaceChildren(
      tile("Nodes", "node-count"),
      tile("Pods on nodes", "pod-count", "Pods that have a node and are not finished: kubectl get pods -A --field-selector spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"),
      tile("Bound a second", "rate", "Bindings in each of the last five seconds, on average", svg),
      make("div", { class: "tile wide" }, make("h2", { id: "waiting", title: "Pods for this scheduler that have no node yet" }), this.queue),
      make("div", { class: "tile wide" }, make("h2", { text: "Requested of allocatable" }), this.totals));
  }

  onState({ hasNodes, hasUsage }) {
    const { state, nodes } = model, say = (id, text) => { this.querySelector(`#${id}`).textContent = text; };
    say("node-count", count(state.nodeCount));
    if (nodes) {
      const zones = new Set(nodes.zone.filter((zone) => zone >= 0)).size;
      say("node-count-note", [several(zones, "zone"), ...(nodes.cordoned.length ? [`${count(nodes.cordoned.length)} cordoned`] : [])].join(", "));
    }
    say("pod-count", count(state.podCount));
    say("pod-count-note", `${count(state.boundCount)} bound since the start`);
    say("rate", count(state.podsPerSecond < 10 ? Math.round(state.podsPerSecond * 10) / 10 : Math.round(state.podsPerSecond)));
    say("waiting", `Waiting for a node: ${count(state.queue.waiting)}`);
    for (const field of this.queue.querySelectorAll("dd")) field.textContent = count(state.queue[field.dataset.place]);
    const most = Math.max(1, ...state.boundPerSecond), step = 120 / (SECONDS - 1);
    const points = state.boundPerSecond.map((bound, i) => `L${(i * step).toFixed(1)} ${(27 - 26 * bound / most).toFixed(1)}`);
    say("rate-note", `${count(Math.max(...state.boundPerSecond))} at the peak of a minute`);
    this.path.setAttribute("d", `M0 28${points.join("")}L120 28Z`);
    if (hasNodes || hasUsage) this.showTotals();
  }

  showTotals() {
    if (!model.isReady) return;
    const sum = (column) => column.reduce((total, value) => total + value, 0);
    this.totals.replaceChildren(...model.nodes.resources.map((resource, i) => {
      const used = sum(model.usage[i]), all = sum(resource.allocatable), share = all ? used / all : 0;
      return make("div", { title: `${resource.name}: ${amount(used, resource.unit)} of ${amount(all, resource.unit)}` },
        make("span", { text: resource.name.split("/").pop() }),
        make("meter", { min: 0, max: 1, value: Math.min(share, 1), "aria-label": `${resource.name} ${percent(share)} requested` }),
        make("span", { class: "number", text: `${percent(share)} of ${amount(all, resource.unit)}` }));
    }));
  }
}

customElements.define("cluster-figures", ClusterFigures);
