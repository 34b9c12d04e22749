// Map: the nodes coloured by any resource, or by who refuses a chosen pod and what the others score; beside it what waits and
// what was decided lately.

import { ask, podPath } from "./api.js";
import { amount, clock, count, duration, make, nodeLink, percent, podLink, reconcile, several } from "./dom.js";
import { model } from "./model.js";
import "./node-map.js";
import { markKeys, verdictKeys, verdictPaint, verdictText } from "./verdicts.js";
import { View } from "./view.js";

const ZONE = "topology.kubernetes.io/zone";
const chosen = { resource: "cpu", group: ZONE, sort: "name", search: "", isStretched: false, hasPods: true, pod: "", workload: "" };
const PARTS = 7;  // workloads with a colour of their own; the others share the last

class MapView extends View {
  build() {
    this.map = make("node-map");
    this.map.addEventListener("open", (event) => {
      location.hash = chosen.pod ? `pod/${chosen.pod}?node=${encodeURIComponent(event.detail)}` : `node/${encodeURIComponent(event.detail)}`;
    });
    const pick = (name, label, act) => {
      const select = make("select", { id: `map-${name}`, onchange: () => { chosen[name] = select.value; act(); } });
      return make("span", { class: "field" }, make("label", { for: `map-${name}`, text: label }), select);
    };
    const write = (name, label, placeholder, when, act) => make("span", { class: "field" }, make("label", { for: `map-${name}`, text: label }),
      make("input", { id: `map-${name}`, type: "search", placeholder, value: chosen[name], [when]: (event) => act(event.target.value.trim()) }));
    this.tools = make("form", { class: "tools", onsubmit: (event) => event.preventDefault() },
      pick("resource", "Colour by", () => this.redraw()),
      pick("group", "Group by", () => this.regroup()),
      pick("sort", "Sort by", () => this.redraw()),
      write("search", "Find", "node, taint, pod or gang", "oninput", (text) => { chosen.search = text.toLowerCase(); this.redraw(); }),
      write("pod", "For pod", "namespace/name", "onchange", (text) => { chosen.pod = text; this.look(); }),
      make("label", { class: "check" }, make("input", { type: "checkbox", id: "map-pods", checked: chosen.hasPods, onchange: (event) => { chosen.hasPods = event.target.checked; this.lookInside(); } }), "pods inside"),
      this.stretch = make("label", { class: "check" }, make("input", { type: "checkbox", checked: chosen.isStretched, onchange: (event) => { chosen.isStretched = event.target.checked; this.redraw(); } }), "colours from least to most"));
    this.legend = make("p", { class: "legend" });
    this.pending = make("div", { class: "brief" });
    this.body = make("tbody");
    const heads = [["at"], ["pod"], ["went to"], ["after", "number"], ["tries", "number"]];
    this.replaceChildren(
      make("section", { class: "nodes", "aria-labelledby": "nodes-title" }, make("h2", { id: "nodes-title", text: "Nodes" }), this.tools, this.legend, this.map),
      make("section", { class: "recent", "aria-labelledby": "recent-title" }, make("h2", { id: "recent-title", text: "Recent decisions" }),
        make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Recent decisions, newest first" },
          make("table", { class: "cards" }, make("thead", {}, make("tr", {}, ...heads.map(([name, look]) => make("th", { scope: "col", class: look, text: name })))), this.body))),
      make("section", { class: "pending", "aria-labelledby": "brief-title" }, make("h2", { id: "brief-title", text: "Waiting, and what would help" }), this.pending));
    this.column = null;
    this.verdicts = this.inside = null;
    this.every(5000, async () => {
      this.showPending(await ask("pending", { signal: this.ends.signal }));
      if (chosen.pod) await this.look();
      await this.lookInside();
      this.worked();
    });
    if (chosen.group !== ZONE) this.regroup();
  }

  onState({ hasNodes, hasUsage, isAnother }) {
    if (isAnother) this.column = this.verdicts = this.inside = null;
    if (hasNodes) this.fillTools();
    if (hasNodes && this.column) this.regroup();
    if (hasNodes || hasUsage) this.redraw();
    if (hasUsage && !this.inside) this.lookInside().catch((error) => { if (error.name !== "AbortError") this.failed(error); });
    this.showDecisions(model.state.decisions);
  }

  fillTools() {
    const fill = (name, options) => {
      const select = this.querySelector(`#map-${name}`), shown = JSON.stringify(options);
      if (select.dataset.options === shown) return;
      select.dataset.options = shown;
      select.replaceChildren(...options.map(([value, text]) => make("option", { value, text, selected: value === chosen[name] })));
      chosen[name] = select.value;
    };
    fill("resource", model.nodes.resources.map((resource) => [resource.name, resource.name]));
    fill("group", [["", "nothing"], ...model.nodes.labelKeys.map((key) => [key, key === ZONE ? "zone" : key])]);
    fill("sort", [["name", "name"], ["most", "most requested"], ["least", "least requested"]]);
  }

  async regroup() {
    this.column = null;
    if (chosen.group && chosen.group !== ZONE) this.column = await ask(`labels?key=${encodeURIComponent(chosen.group)}`);
    this.redraw();
  }

  async look() {
    const pod = chosen.pod;
    try {
      this.verdicts = pod ? await ask(`${podPath(pod)}/nodes`, { signal: this.ends.signal }) : null;
    } catch (error) {
      this.verdicts = null;
      this.failed(error);
    }
    if (this.isThere && pod === chosen.pod) this.redraw();
  }

  // Ask for the pods on the nodes if they can be drawn: cells are large enough, and there are not too many.
  async lookInside() {
    const version = model.versions.usage;
    if (!chosen.hasPods || !model.isReady || !this.map.hasRoom) this.inside = null;
    else if (this.inside?.version !== version) {
      const told = await ask("pods-inside", { signal: this.ends.signal }), byRow = new Map(), counts = told.workloads.map(() => 0);
      told.rows.forEach((row, i) => { if (!byRow.has(row)) byRow.set(row, []); byRow.get(row).push(i); counts[told.workload[i]] += 1; });
      const most = counts.map((_, i) => i).sort((a, b) => counts[b] - counts[a]).slice(0, PARTS);
      const named = most.sort((a, b) => (told.workloads[a] < told.workloads[b] ? -1 : 1));  // by name, so that colours stay while counts change
      const kind = told.workloads.map((_, i) => (named.includes(i) ? named.indexOf(i) : PARTS));
      if (!told.workloads.includes(chosen.workload)) chosen.workload = "";
      this.inside = told.names.length ? { ...told, version, byRow, kind, named, isGang: new Set(told.gangs) } : null;
    }
    if (this.isThere) this.redraw();
  }

  // The pods of a row as parts of its cell, those of a workload beside each other.
  partsOf(row, resource, colours) {
    const { byRow, requests, workload, kind } = this.inside, all = model.nodes.resources[resource].allocatable[row];
    const asks = requests[resource] ? (i) => requests[resource][i] : () => 1;  // of `pods` each is one
    return (byRow.get(row) || []).map((i) => ({ share: all ? asks(i) / all : 0, kind: kind[workload[i]] })).filter(({ share }) => share > 0).sort((a, b) => a.kind - b.kind).map(({ share, kind: at }) => ({ share, fill: colours.kinds[at] }));
  }

  podsText(row) {
    const found = {};
    for (const i of this.inside?.byRow.get(row) || []) { const name = this.inside.workloads[this.inside.workload[i]]; found[name] = (found[name] || 0) + 1; }
    return Object.entries(found).sort(([, a], [, b]) => b - a).slice(0, 8).map(([name, n]) => (n > 1 ? `${name} × ${n}` : name));
  }

  titleOf(row) {
    if (!chosen.group) return "all nodes";
    if (chosen.group === ZONE) return model.zone(row) || "no zone";
    const code = this.column ? this.column.codes[row] : -1;
    return code === undefined || code < 0 ? `no ${chosen.group}` : this.column.values[code];
  }

  redraw() {
    if (!model.isReady || !this.isThere) return;
    const resource = Math.max(model.nodes.resources.findIndex(({ name }) => name === chosen.resource), 0);
    const share = (row) => model.share(resource, row);
    const sign = chosen.sort === "most" ? -1 : 1;
    const before = chosen.sort === "name" ? undefined : (a, b) => sign * (share(a) - share(b));
    const groups = model.grouped((row) => this.titleOf(row), before);
    const verdicts = this.verdicts && this.verdicts.nodesVersion === model.versions.nodes ? this.verdicts : null;
    const hasParts = resource <= model.nodes.resources.findIndex(({ name }) => name === "pods");  // devices and volumes are not in what pods request
    const inside = !verdicts && chosen.hasPods && hasParts && this.inside?.nodesVersion === model.versions.nodes ? this.inside : null;
    const matches = (row) => this.isFound(row) && (!inside || !chosen.workload || this.hasWorkload(row, chosen.workload));
    const paint = verdicts ? verdictPaint(verdicts) : this.usePaint(share);
    const summaries = groups.map(({ title, rows }) => `${title} ${verdicts ? `${count(rows.filter((row) => verdicts.refusedBy[row] < 0).length)} feasible` : this.summary(rows, resource)}`);
    this.map.show({
      groups: groups.map(({ title, rows }) => ({ rows, title: `${title} · ${several(rows.length, "node")} · ${verdicts ? `${count(rows.filter((row) => verdicts.refusedBy[row] < 0).length)} feasible` : this.summary(rows, resource)}` })),
      paint: (row, colours) => (inside ? { fill: colours.heat[0], parts: this.partsOf(row, resource, colours), isFaint: !matches(row) } : { fill: paint(row, colours), isFaint: !matches(row) }),
      describe: (row) => this.describe(row, verdicts),
      label: `${several(model.nodes.names.length, "node")}, coloured by ${verdicts ? `what ${verdicts.pod} meets` : `${model.nodes.resources[resource].name} requested`}: ${summaries.join(", ")}`,
    });
    this.stretch.hidden = Boolean(verdicts || inside);  // these have their own colours
    this.showLegend(verdicts, share, inside);
    if (!performance.getEntriesByName("drawn").length) performance.mark("drawn");  // how long the first picture took
  }

  isFound(row) {
    if (!chosen.search) return true;
    const { byRow, names, workload, workloads } = this.inside || {};
    const pods = byRow ? (byRow.get(row) || []).map((i) => `${names[i]} ${workloads[workload[i]]}`) : [];
    return [model.nodes.names[row], ...model.taints(row), ...pods].join(" ").toLowerCase().includes(chosen.search);
  }

  hasWorkload(row, name) {
    const { byRow, workload, workloads } = this.inside;
    return (byRow.get(row) || []).some((i) => workloads[workload[i]] === name);
  }

  usePaint(share) {
    let low = 0, high = 1;
    if (chosen.isStretched) {
      const shares = model.nodes.names.map((_, row) => share(row)).filter((value) => value >= 0 && value <= 1);
      low = shares.reduce((a, b) => Math.min(a, b), 1);
      high = shares.reduce((a, b) => Math.max(a, b), 0);
    }
    this.span = [low, high];
    return (row, colours) => {
      const value = share(row);
      if (value < 0) return null;
      if (value > 1) return colours.over;
      return colours.heat[Math.round(100 * (high > low ? Math.max(0, (value - low) / (high - low)) : value))];
    };
  }

  summary(rows, resource) {
    let used = 0, all = 0;
    for (const row of rows) {
      used += model.usage[resource][row];
      all += model.nodes.resources[resource].allocatable[row];
    }
    return all ? percent(used / all) : "none";
  }

  describe(row, verdicts) {
    const { names, resources } = model.nodes;
    const used = resources.map((resource, i) => [resource, model.usage[i][row], resource.allocatable[row]]).filter(([, u, all]) => u || all)
      .map(([resource, u, all]) => `${resource.name}: ${amount(u, resource.unit)} of ${amount(all, resource.unit)}`);
    const pods = this.inside && !verdicts ? this.podsText(row) : [];
    const marks = [...(model.nodes.isCordoned.has(row) ? ["cordoned"] : []), ...model.taints(row).map((taint) => `taint ${taint}`)];
    return [`${names[row]}  ${model.zone(row)}`, ...(verdicts ? [verdictText(verdicts, row)] : []), ...used, ...pods, ...marks];
  }

  showLegend(verdicts, share, inside) {
    const key = (look, text) => make("span", { class: "key" }, make("span", { class: `mark ${look}` }), text);
    if (verdicts) { this.legend.replaceChildren(...verdictKeys(verdicts), ...markKeys()); return; }
    if (inside) {
      const names = inside.named.map((workload, i) => this.workloadKey(workload, i)), more = inside.workloads.length - names.length;
      this.legend.replaceChildren(...names, ...(more ? [key(`kind-${PARTS}`, several(more, "more workload"))] : []), key("free", "free"), ...markKeys());
      return;
    }
    this.legend.replaceChildren(make("span", { class: "key" }, percent(this.span[0]), make("span", { class: "heat" }), percent(this.span[1])),
      ...(model.nodes.names.some((_, row) => share(row) > 1) ? [key("over", "more than there is")] : []), ...markKeys());
  }

  // A workload's colour, which can be pressed to see only where it is.
  workloadKey(workload, kind) {
    const name = this.inside.workloads[workload], isPressed = chosen.workload === name;
    return make("button", { type: "button", class: "key", "data-key": name, "aria-pressed": String(isPressed), title: "Show only the nodes that it is on", onclick: () => {
      chosen.workload = isPressed ? "" : name;
      this.redraw();
      this.legend.querySelector(`[data-key="${CSS.escape(name)}"]`)?.focus();
    } }, make("span", { class: `mark kind-${kind}` }), this.inside.isGang.has(workload) ? `gang ${name}` : name);
  }

  showPending(told) {
    const groups = told.groups.slice(0, 5);
    reconcile(this.pending, groups, (group) => `${group.why} ${group.pods[0].pod}`, (group) => make("a", { class: "card", href: `#pod/${group.pods[0].pod}` },
      make("b"), make("span", { class: "message" }), make("span", { class: "helps" })), (card, group) => {
      const [number, message, helps] = card.children;
      number.textContent = group.count === 1 ? group.pods[0].pod : several(group.count, "pod");
      message.textContent = group.why;
      helps.textContent = group.advice.length ? group.advice[0].text : "";
    });
    if (!groups.length) this.pending.replaceChildren(make("p", { class: "empty", text: "No pod is held back. What is active is tried within moments." }));
    else if (told.groups.length > groups.length || told.notLookedAt) this.pending.append(make("a", { class: "plain", "data-key": "more", href: "#pending", text: "All that wait" }));
  }

  showDecisions(decisions) {
    reconcile(this.body, decisions, (one) => `${one.at} ${one.pod} ${one.node}`, (one) => make("tr", {},
      make("td", { text: clock(one.at) }), make("td", {}, podLink(one.pod)),
      one.node ? make("td", { class: "text" }, nodeLink(one.node)) : make("td", { class: "text refused", title: one.message, text: one.message }),
      make("td", { class: "number", "data-head": "after", text: one.node ? duration(one.seconds) : "" }), make("td", { class: "number", "data-head": "tries", text: one.attempts || "" })));
  }
}

export const showVerdictsOf = (pod) => { chosen.pod = pod; };
customElements.define("map-view", MapView);
