// Try: where manifests would go before they are applied, what other weights would move, the state as a file; on a demo also to apply
// them, and to scale, cordon, drain, fail, add and remove. What can be tried here is what the scheduler offers.

import { ask, askFile } from "./api.js";
import { count, errorText, field, make, nodeLink, percent, podLink, several, table } from "./dom.js";
import { model } from "./model.js";
import "./node-map.js";
import { EXAMPLES } from "./try-examples.js";
import { View } from "./view.js";

const NODE_ACTIONS = ["cordon", "uncordon", "drain", "fail", "recover", "remove"];
const MOST_NODES = 12;

class TryView extends View {
  build() { this.shown = ""; }

  // The parts are made when it is known what is offered, and stay: what somebody has written into them is theirs.
  onState({ hasNodes, isAnother }) {
    const { offers } = model.state, shown = offers.join();
    if (shown !== this.shown || isAnother) {
      this.shown = shown;
      const parts = [["plan", () => this.planning(offers)], ["compare", () => this.weighing()], ["nodes", () => this.changing()], ["snapshot", () => this.keeping(offers)]];
      this.replaceChildren(...parts.filter(([offer]) => offers.includes(offer)).map(([, make_]) => make_()));
      if (!offers.length) this.replaceChildren(make("section", {}, make("p", { class: "empty", text: "Nothing can be tried here." })));
    }
    if (hasNodes && this.names) this.names.replaceChildren(...model.nodes.names.slice(0, 2000).map((name) => make("option", { value: name })));
    if (hasNodes && this.plan) this.showMap();
  }

  section(id, title, ...children) {
    return make("section", { "aria-labelledby": id }, make("h2", { id, text: title }), ...children);
  }

  // Ask with a button that waits, and say what went wrong where the answer would stand.
  async work(button, answer, path, send, take) {
    button.disabled = true;
    answer.setAttribute("aria-busy", "true");
    try {
      take(await ask(path, { send, signal: this.ends.signal }));
    } catch (error) {
      if (error.name !== "AbortError") answer.replaceChildren(make("p", { class: "refused", role: "alert", text: errorText(error) }));
    }
    answer.removeAttribute("aria-busy");
    button.disabled = false;
  }

  // --- plan ----------------------------------------------------------------------------------------------------------

  planning(offers) {
    const text = make("textarea", { id: "manifests", spellcheck: "false", placeholder: "apiVersion: ...", "aria-label": "Manifests as YAML or JSON" });
    text.value = EXAMPLES[0][1];
    const example = make("select", { onchange: () => { text.value = EXAMPLES[example.value][1]; } }, ...EXAMPLES.map(([title], i) => make("option", { value: i, text: title })));
    const namespace = make("input", { value: "default", size: 12 });
    const answer = this.planned = make("div", { "aria-live": "polite", class: "answer" });
    const sent = () => ({ manifests: text.value, namespace: namespace.value.trim() || "default" });
    const plan = make("button", { type: "button", class: "main", text: "Plan", onclick: () => this.work(plan, answer, "plan", sent(), (told) => this.showPlan(told)) });
    const apply = make("button", { type: "button", class: "quiet", text: "Apply", onclick: () => this.work(apply, answer, "apply", sent(), ({ done }) => { this.plan = null; this.say(answer, done); }) });
    this.map = make("node-map");
    this.map.addEventListener("open", (event) => { location.hash = `node/${encodeURIComponent(event.detail)}`; });
    return this.section("plan-title", "What if this was applied?", make("div", { class: "tools" }, field("example", "Example", example), field("plan-namespace", "Namespace", namespace)),
      text, make("div", { class: "tools" }, plan, offers.includes("apply") ? apply : null, make("span", { class: "note", text: "A plan changes nothing." })), answer);
  }

  say(answer, text) { answer.replaceChildren(make("p", { role: "status", text: `Done: ${text}.` }), make("a", { href: "#map", text: "See the map" })); }

  showPlan(told) {
    this.plan = told;
    const { summary } = told, parts = [`${count(summary.placed)} of ${several(summary.pods, "pod")} would be placed`];
    if (summary.pending) parts.push(`${count(summary.pending)} would wait`);
    if (summary.victims) parts.push(`${several(summary.victims, "pod")} would be evicted`);
    const where = ({ nodes }) => {
      const all = Object.entries(nodes);
      return [...all.slice(0, MOST_NODES).flatMap(([node, n], i) => [i ? ", " : "", nodeLink(node), n > 1 ? ` × ${n}` : ""]), all.length > MOST_NODES ? `, and ${several(all.length - MOST_NODES, "more node")}` : ""];
    };
    const why = ({ pods }) => Object.entries(pods.reduce((found, { message }) => (message ? { ...found, [message]: (found[message] || 0) + 1 } : found), {}))
      .map(([message, n]) => make("div", { class: "refused", text: `${n > 1 ? `${count(n)} wait: ` : "waits: "}${message}` }));
    const rows = told.workloads.map((each) => make("tr", {}, make("th", { scope: "row", text: `${each.kind}/${each.name}` }), make("td", { class: "number", "data-head": "placed", text: `${count(each.placed)} of ${count(each.pods.length)}` }),
      make("td", { class: "reason" }, ...where(each), ...why(each), each.note ? make("div", { class: "note", text: each.note }) : null)));
    const evicted = told.victims.map(({ namespace, name, node, by, priority }) => make("li", {}, podLink(`${namespace}/${name}`), ` (priority ${priority}) from `, nodeLink(node), ` for ${by}`));
    this.planned.replaceChildren(make("p", { class: "sentence", text: `${parts.join(", ")}.` }), ...told.warnings.map((text) => make("p", { class: "note", text })), this.legend = make("p", { class: "legend" }), this.map,
      make("div", { class: "wide-table" }, table([["workload"], ["placed", "number"], ["where"]], rows, { class: "cards" })), ...(evicted.length ? [make("h3", { text: "Evicted" }), make("ul", {}, ...evicted)] : []));
    this.showMap();
  }

  showMap() {
    if (!this.plan || !model.isReady) return;
    const comes = {}, goes = {};
    for (const { nodes } of this.plan.workloads) for (const [node, n] of Object.entries(nodes)) comes[node] = (comes[node] || 0) + n;
    for (const { node } of this.plan.victims) goes[node] = (goes[node] || 0) + 1;
    const key = (look, text) => make("span", { class: "key" }, make("span", { class: `mark ${look}` }), text);
    this.legend.replaceChildren(make("span", { class: "key" }, `${model.nodes.resources[0].name} 0 %`, make("span", { class: "heat" }), "100 %"), key("kind-2", "gets pods"), ...(this.plan.victims.length ? [key("kind-3", "gets pods and loses some")] : []), key("cordoned", "cordoned"), key("tainted", "tainted"));
    const name = (row) => model.nodes.names[row];
    this.map.show({
      groups: model.grouped((row) => model.zone(row) || "no zone").map(({ title, rows }) => ({ rows, title: `${title} · ${several(rows.reduce((sum, row) => sum + (comes[name(row)] || 0), 0), "planned pod")}` })),
      paint: (row, colours) => ({ fill: goes[name(row)] ? colours.kinds[3] : comes[name(row)] ? colours.kinds[2] : colours.heat[Math.round(100 * Math.max(0, Math.min(1, model.share(0, row))))], text: comes[name(row)] ? `+${comes[name(row)]}` : "" }),
      describe: (row) => [name(row), `gets ${several(comes[name(row)] || 0, "pod")}`, ...(goes[name(row)] ? [`loses ${several(goes[name(row)], "pod")}`] : [])],
      label: `${several(model.nodes.names.length, "node")}, ${count(Object.keys(comes).length)} of them get planned pods`,
    });
  }

  // --- compare -------------------------------------------------------------------------------------------------------

  weighing() {
    const box = make("div", { class: "weights" }), answer = make("div", { "aria-live": "polite", class: "answer" });
    const again = make("input", { type: "checkbox", checked: true }), text = make("textarea", { spellcheck: "false", "aria-label": "Another configuration", placeholder: "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration" });
    const weights = () => Object.fromEntries([...box.querySelectorAll("input")].filter((input) => input.value !== input.defaultValue).map((input) => [input.name, Number(input.value)]));
    const go = make("button", { type: "button", class: "main", text: "Compare", onclick: () => this.work(go, answer, "compare", { weights: weights(), configuration: text.value, reschedule: again.checked }, (told) => answer.replaceChildren(...this.compared(told))) });
    ask("configuration", { signal: this.ends.signal }).then(({ profiles }) => {
      const found = new Map(profiles.flatMap(({ points }) => points.filter(({ point }) => point === "Score").flatMap(({ plugins }) => plugins.map(({ name, weight }) => [name, weight]))));
      box.replaceChildren(...[...found].map(([name, weight]) => field(`weight-${name}`, name, make("input", { name, type: "number", min: 0, max: 1000000, step: 1, value: weight }))));
    }).catch((error) => { if (error.name !== "AbortError") this.failed(error); });
    return this.section("weigh-title", "What would other weights move?", make("p", { class: "note", text: "On the cluster as it is: the configuration in use against one with these weights. 0 takes a score out." }), box,
      make("details", {}, make("summary", { text: "Or another configuration" }), text),
      make("div", { class: "tools" }, go, make("label", { class: "check" }, again, "place all pods again, not only those that wait")), answer);
  }

  compared({ a, b, moves }) {
    const ratio = (value) => percent(value), figures = [["nodes used", a.packing.nodesUsed.end, b.packing.nodesUsed.end, count], ["pods placed", a.pods.placed, b.pods.placed, count], ["pods that wait", a.pods.pending, b.pods.pending, count],
      ["preempted", a.pods.preempted, b.pods.preempted, count], ["fragmentation", a.packing.fragmentation.end, b.packing.fragmentation.end, ratio], ["zone skew", a.spread.maxSkew.end, b.spread.maxSkew.end, count]];
    const fewer = a.packing.nodesUsed.end - b.packing.nodesUsed.end;
    const packs = fewer ? `The other needs ${several(Math.abs(fewer), "node")} ${fewer > 0 ? "fewer" : "more"}` : "Both use as many nodes";
    const rows = figures.map(([title, x, y, write]) => make("tr", {}, make("th", { scope: "row", text: title }), make("td", { class: "number", text: write(x) }), make("td", { class: "number", text: write(y) })));
    const moved = moves.pods.slice(0, 50).map((each) => make("tr", {}, make("td", {}, podLink(each.pod)), make("td", {}, nodeLink(each.a)), make("td", {}, nodeLink(each.b))));
    return [make("p", { class: "sentence", text: `${packs}; ${count(moves.moved)} of ${several(moves.placed, "pod")} would be elsewhere.` }),
      make("div", { class: "wide-table" }, table([["figure"], ["in use", "number"], ["the other", "number"]], rows)),
      ...(moved.length ? [make("h3", { text: "Pods that would be elsewhere" }), make("div", { class: "wide-table scroll", tabindex: 0, role: "region", "aria-label": "Pods that would be elsewhere" }, table([["pod"], ["in use"], ["the other"]], moved))] : []),
      ...(moves.moved > moved.length ? [make("p", { class: "note", text: `and ${several(moves.moved - moved.length, "more pod")}` })] : [])];
  }

  // --- a demo's cluster ----------------------------------------------------------------------------------------------

  changing() {
    const answer = make("div", { "aria-live": "polite", class: "answer" });
    this.names = make("datalist", { id: "try-nodes" }, ...(model.nodes?.names.slice(0, 2000) || []).map((name) => make("option", { value: name })));
    const node = make("input", { list: "try-nodes", value: model.nodes?.names[0] || "", size: 14 }), more = make("input", { type: "number", min: 1, max: 1000, value: 1 });
    const act = (action, button, added = 1) => this.work(button, answer, "node-action", { action, node: node.value.trim(), count: added }, ({ done }) => this.say(answer, done));
    const workload = make("select"), replicas = make("input", { type: "number", min: 0, max: 100000, value: 1 });
    const fill = async () => {
      const { workloads } = await ask("workloads", { signal: this.ends.signal });
      workload.replaceChildren(...workloads.map((each) => make("option", { value: `${each.namespace}/${each.workload}`, text: `${each.namespace}/${each.workload.split("/")[1]}`, "data-replicas": each.replicas })));
      replicas.value = workload.selectedOptions[0]?.dataset.replicas || 0;
    };
    workload.addEventListener("change", () => { replicas.value = workload.selectedOptions[0].dataset.replicas; });
    fill().catch((error) => { if (error.name !== "AbortError") this.failed(error); });
    const scale = make("button", { type: "button", class: "quiet", text: "Scale", onclick: () => {
      const [namespace, kind, name] = workload.value.split("/");
      this.work(scale, answer, "scale", { namespace, workload: `${kind}/${name}`, replicas: Number(replicas.value) }, ({ done }) => this.say(answer, done));
    } });
    return this.section("change-title", "Change this cluster", make("div", { class: "tools" }, field("try-node", "Node", node), this.names,
      ...NODE_ACTIONS.map((action) => make("button", { type: "button", class: "quiet", text: action, onclick: (event) => act(action, event.currentTarget) }))),
    make("div", { class: "tools" }, field("try-count", "Add", more), make("button", { type: "button", class: "quiet", text: "more like it", onclick: (event) => act("add", event.currentTarget, Number(more.value)) })),
    make("div", { class: "tools" }, field("try-workload", "Workload", workload), field("try-replicas", "replicas", replicas), scale), answer);
  }

  // --- the state as a file -------------------------------------------------------------------------------------------

  keeping(offers) {
    const answer = make("div", { "aria-live": "polite", class: "answer" });
    const save = make("button", { type: "button", class: "quiet", text: "Save a snapshot", onclick: async () => {
      try {
        const link = make("a", { href: URL.createObjectURL(await askFile("snapshot")), download: "snapshot.jsonl" });
        link.click();
        URL.revokeObjectURL(link.href);
        answer.replaceChildren(make("p", { role: "status", text: "Saved as snapshot.jsonl: plan, why, compare and simulate take it." }));
      } catch (error) {
        answer.replaceChildren(make("p", { class: "refused", role: "alert", text: errorText(error) }));
      }
    } });
    const file = make("input", { type: "file", accept: ".jsonl" });
    const load = make("button", { type: "button", class: "quiet", text: "Load it", onclick: async () => {
      if (!file.files.length) { answer.replaceChildren(make("p", { class: "refused", text: "Choose a snapshot first." })); return; }
      this.work(load, answer, "load", { snapshot: await file.files[0].text() }, ({ done }) => this.say(answer, done));
    } });
    return this.section("keep-title", "The state as a file", make("div", { class: "tools" }, save, ...(offers.includes("load") ? [field("try-file", "Snapshot", file), load] : [])), answer);
  }
}

customElements.define("try-view", TryView);
