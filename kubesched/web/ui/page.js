// The page: asks for the picture once a second and draws it. No library, no build step, no other host.
//
//   poll -> remember columns -> figures, node map, pending pods, recent decisions
//   #pod/NAMESPACE/NAME and #node/NAME open what is known of one of them, so that it can be linked to.
"use strict";

const POLL_MS = 1000, EXPLAIN_MS = 5000, SVG_SECONDS = 60;
const find = (id) => document.getElementById(id);
const count = new Intl.NumberFormat("en");
const known = { versions: { nodes: "", usage: "" }, nodes: null, usage: null, resource: 0, order: [] };
const explained = new WeakMap();

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const ask = async (path) => {
  const answer = await fetch(path, { headers: { Accept: "application/json" } });
  const type = answer.headers.get("Content-Type") || "";
  const document = type.includes("json") ? await answer.json() : {};
  if (!answer.ok) throw new Error(document.error || document.message || `the scheduler answers ${answer.status}`);
  return document;
};

// --- polling ---------------------------------------------------------------------------------------------------------

async function poll() {
  if (!document.hidden) {
    try {
      show(await ask(`api/state?${new URLSearchParams(known.versions)}`));
      find("alarm").hidden = true;
    } catch (error) {
      find("alarm").textContent = error instanceof TypeError ? "the scheduler does not answer" : error.message;
      find("alarm").hidden = false;
    }
  }
  setTimeout(poll, POLL_MS);
}

function show(state) {
  if (state.nodes) takeNodes(state.nodes);
  if (state.usage) known.usage = state.usage;
  known.versions = state.versions;
  showFigures(state);
  if (state.nodes || state.usage) { showTotals(); map.draw(); }
  showPending(state.pending);
  showDecisions(state.decisions);
  document.body.dataset.ready = "yes";
}

function takeNodes(nodes) {
  known.nodes = nodes;
  known.cordoned = new Set(nodes.cordoned);
  const names = new Intl.Collator("en", { numeric: true });
  const zone = (row) => (nodes.zone[row] < 0 ? "" : nodes.zones[nodes.zone[row]]);
  const rows = nodes.names.map((_, row) => row);
  rows.sort((a, b) => names.compare(zone(a), zone(b)) || names.compare(nodes.names[a], nodes.names[b]));
  known.order = rows;
  known.zoneOf = zone;
  if (known.resource >= nodes.resources.length) known.resource = 0;
  const buttons = nodes.resources.map((resource, number) => make("button", {
    type: "button", text: resource.name, "aria-pressed": String(number === known.resource), onclick: () => choose(number),
  }));
  find("resources").replaceChildren(...buttons);
}

function choose(number) {
  known.resource = number;
  [...find("resources").children].forEach((button, i) => button.setAttribute("aria-pressed", String(i === number)));
  map.draw();
}

// --- figures ---------------------------------------------------------------------------------------------------------

function showFigures(state) {
  const role = state.isLeading ? "leading" : "standing by";
  find("who").textContent = `${state.profiles.join(", ")} · ${role}`;
  find("node-count").textContent = count.format(state.nodeCount);
  const zones = known.nodes ? new Set(known.nodes.zone).size : 0;
  const cordoned = known.nodes ? known.nodes.cordoned.length : 0;
  const inZones = `${zones} ${zones === 1 ? "zone" : "zones"}`;
  find("node-note").textContent = cordoned ? `${inZones}, ${count.format(cordoned)} cordoned` : inZones;
  find("pod-count").textContent = count.format(state.podCount);
  find("pod-note").textContent = `${count.format(state.boundCount)} since the start`;
  find("rate").textContent = count.format(state.podsPerSecond < 10 ? Math.round(state.podsPerSecond * 10) / 10 : Math.round(state.podsPerSecond));
  for (const field of find("queue").querySelectorAll("dd")) field.textContent = count.format(state.queue[field.dataset.place]);
  const most = Math.max(1, ...state.boundPerSecond), step = 120 / (SVG_SECONDS - 1);
  const points = state.boundPerSecond.map((bound, i) => `L${(i * step).toFixed(1)} ${(27 - 26 * bound / most).toFixed(1)}`);
  find("rate-note").textContent = `${count.format(Math.max(...state.boundPerSecond))} at its peak`;
  find("spark").firstElementChild.setAttribute("d", `M0 28${points.join("")}L120 28Z`);
}

function amount(value, unit) {
  if (unit === "m") return count.format(Math.round(value / 100) / 10);
  if (unit !== "MiB") return count.format(value);
  const units = ["MiB", "GiB", "TiB", "PiB"];
  let step = 0;
  for (; value >= 1024 && step < 3; step += 1) value /= 1024;
  return `${count.format(Math.round(value * 10) / 10)} ${units[step]}`;
}

function showTotals() {
  const sum = (column) => column.reduce((total, value) => total + value, 0);
  const rows = known.nodes.resources.map((resource, i) => {
    const used = sum(known.usage[i]), all = sum(resource.allocatable), share = all ? used / all : 0;
    const meter = make("meter", { min: 0, max: 1, value: Math.min(share, 1), "aria-label": `${resource.name} ${Math.round(share * 100)} percent requested` });
    return make("div", { title: `${amount(used, resource.unit)} of ${amount(all, resource.unit)}` },
      make("span", { text: resource.name.split("/").pop() }), meter,
      make("span", { class: "number", text: `${Math.round(share * 100)} % of ${amount(all, resource.unit)}` }));
  });
  find("totals").replaceChildren(...rows);
}

// --- the node map ----------------------------------------------------------------------------------------------------

const map = {
  canvas: find("map"), cells: [], size: 0, gap: 0, chosen: -1, colours: [],

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    const stops = [0, 1, 2, 3].map((i) => read(`--heat-${i}`).match(/\w\w/g).map((part) => parseInt(part, 16)));
    this.colours = Array.from({ length: 101 }, (_, percent) => {
      const at = Math.min(percent / 100 * 3, 2.9999), from = Math.floor(at), part = at - from;
      const mixed = stops[from].map((value, i) => Math.round(value + (stops[from + 1][i] - value) * part));
      return `rgb(${mixed.join()})`;
    });
    Object.assign(this, { over: read("--over"), ink: read("--ink"), faint: read("--faint"), mark: read("--mark"), card: read("--card") });
  },

  layOut(width) {
    const zones = new Map();
    for (const row of known.order) {
      const zone = known.zoneOf(row);
      if (!zones.has(zone)) zones.set(zone, []);
      zones.get(zone).push(row);
    }
    const room = width * Math.max(260, Math.min(window.innerHeight * 0.5, 480));
    const n = Math.max(known.order.length, 1);
    this.size = Math.max(4, Math.min(38, Math.floor(Math.sqrt(room / n) * 0.9)));
    this.gap = this.size > 12 ? 3 : this.size > 6 ? 2 : 1;
    const step = this.size + this.gap, perRow = Math.max(1, Math.floor((width + this.gap) / step));
    this.cells = new Array(known.nodes.names.length);
    this.titles = [];
    let top = 0;
    for (const [zone, rows] of zones) {
      this.titles.push({ zone, rows, top: top + 12 });
      top += 20;
      rows.forEach((row, i) => { this.cells[row] = [(i % perRow) * step, top + Math.floor(i / perRow) * step]; });
      top += Math.ceil(rows.length / perRow) * step + 8;
    }
    return Math.max(top, 40);
  },

  share(row) {
    const all = known.nodes.resources[known.resource].allocatable[row];
    const used = known.usage[known.resource][row];
    return all ? used / all : used ? Infinity : -1;
  },

  draw() {
    if (!known.nodes || !known.usage) return;
    const width = this.canvas.parentElement.clientWidth, scale = window.devicePixelRatio || 1;
    const height = this.layOut(width);
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    for (const { zone, rows, top } of this.titles) {
      pen.fillStyle = this.faint;
      pen.fillText(`${zone || "no zone"} · ${count.format(rows.length)} ${rows.length === 1 ? "node" : "nodes"} · ${this.summary(rows)}`, 0, top);
      for (const row of rows) this.drawNode(pen, row);
    }
    if (this.chosen >= 0 && this.cells[this.chosen]) {
      const [x, y] = this.cells[this.chosen];
      pen.strokeStyle = this.ink;
      pen.lineWidth = 2;
      pen.strokeRect(x - 1, y - 1, this.size + 2, this.size + 2);
    }
    const name = known.nodes.resources[known.resource].name;
    this.canvas.setAttribute("aria-label", `${count.format(known.order.length)} nodes, coloured by ${name} requested: ${this.titles.map(({ zone, rows }) => `${zone || "no zone"} ${this.summary(rows)}`).join(", ")}`);
  },

  summary(rows) {
    let used = 0, all = 0;
    for (const row of rows) {
      used += known.usage[known.resource][row];
      all += known.nodes.resources[known.resource].allocatable[row];
    }
    return all ? `${Math.round(used / all * 100)} %` : "none";
  },

  drawNode(pen, row) {
    const [x, y] = this.cells[row], size = this.size, share = this.share(row);
    if (share < 0) {  // offers none of it
      pen.strokeStyle = this.colours[0];
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
    } else {
      pen.fillStyle = share > 1 ? this.over : this.colours[Math.round(share * 100)];
      pen.fillRect(x, y, size, size);
    }
    if (known.nodes.taints[known.nodes.taint[row]].length) {
      const corner = Math.max(2, Math.round(size * 0.36));
      pen.fillStyle = this.mark;
      pen.beginPath();
      pen.moveTo(x + size, y);
      pen.lineTo(x + size, y + corner);
      pen.lineTo(x + size - corner, y);
      pen.fill();
    }
    if (known.cordoned.has(row)) {
      pen.strokeStyle = this.ink;
      pen.lineWidth = size > 12 ? 1.5 : 1;
      pen.beginPath();
      for (const part of size > 12 ? [0.5, 1, 1.5] : [1]) {
        pen.moveTo(x + Math.max(0, (part - 1) * size), y + Math.min(size, part * size));
        pen.lineTo(x + Math.min(size, part * size), y + Math.max(0, (part - 1) * size));
      }
      pen.stroke();
    }
  },

  at(x, y) {
    const step = this.size + this.gap;
    return known.order.findIndex((row) => {
      const [left, top] = this.cells[row];
      return x >= left && x < left + step && y >= top && y < top + step;
    });
  },

  describe(row) {
    const { names, resources, taints, taint } = known.nodes;
    const used = resources.map((r, i) => [r, known.usage[i][row], r.allocatable[row]]).filter(([, u, all]) => u || all)
      .map(([r, u, all]) => `${r.name}: ${amount(u, r.unit)} of ${amount(all, r.unit)}`);
    const marks = [...(known.cordoned.has(row) ? ["cordoned"] : []), ...taints[taint[row]].map((t) => `taint ${t}`)];
    return [`${names[row]}  ${known.zoneOf(row)}`, ...used, ...marks];
  },

  choose(place, says) {
    const row = place >= 0 && place < known.order.length ? known.order[place] : -1;
    if (row === this.chosen) return;
    this.chosen = row;
    const tip = find("tip");
    tip.hidden = row < 0;
    if (row >= 0) {
      const lines = this.describe(row), [x, y] = this.cells[row];
      tip.textContent = lines.join("\n");
      const left = Math.min(x + this.size + 8, this.canvas.clientWidth - tip.offsetWidth);
      tip.style.left = `${Math.max(0, left)}px`;
      tip.style.top = `${y + this.size + 8}px`;
      if (says) find("map-said").textContent = lines.join(", ");
    }
    this.draw();
  },

  step(by) {
    const now = known.order.indexOf(this.chosen);
    this.choose(Math.max(0, Math.min(known.order.length - 1, now < 0 ? 0 : now + by)), true);
  },

  start() {
    this.readColours();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.readColours(); this.draw(); });
    new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
    this.canvas.addEventListener("mousemove", (event) => { if (known.nodes) this.choose(this.at(event.offsetX, event.offsetY)); });
    this.canvas.addEventListener("mouseleave", () => this.choose(-1));
    this.canvas.addEventListener("blur", () => this.choose(-1));
    this.canvas.addEventListener("click", () => this.open());
    this.canvas.addEventListener("keydown", (event) => {
      const perRow = Math.max(1, Math.floor((this.canvas.clientWidth + this.gap) / (this.size + this.gap)));
      const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: perRow, ArrowUp: -perRow };
      if (!known.nodes || !(event.key in steps || event.key === "Enter")) return;
      event.preventDefault();
      if (event.key === "Enter") this.open();
      else this.step(steps[event.key]);
    });
  },

  open() {
    if (this.chosen >= 0) location.hash = `node/${encodeURIComponent(known.nodes.names[this.chosen])}`;
  },
};

// --- pods ------------------------------------------------------------------------------------------------------------

const podLink = (pod, look, note = "") => make("button", {
  type: "button", class: look, text: note ? `${pod} ` : pod, onclick: () => { location.hash = `pod/${pod}`; },
}, ...(note ? [make("small", { text: note })] : []));
const nodeLink = (node) => make("button", { type: "button", class: "plain", text: node, onclick: () => { location.hash = `node/${encodeURIComponent(node)}`; } });

function ago(seconds) {
  if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  if (seconds < 100) return `${Math.round(seconds * 10) / 10} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

function showPending(pending) {
  const box = find("pending");
  const total = pending.groups.reduce((sum, group) => sum + group.count, 0);
  find("pending-title").textContent = total ? `Pending: ${count.format(total)} ${total === 1 ? "pod" : "pods"}, and why` : "Pending";
  const cards = new Map([...box.querySelectorAll(".group")].map((card) => [card.dataset.message, card]));
  const shown = pending.groups.map((group, number) => {
    const card = cards.get(group.message) || newGroup(group, number === 0 && !box.querySelector(".group[open]"));
    fillGroup(card, group);
    return card;
  });
  if (!shown.length) shown.push(make("p", { class: "empty", text: "No pod was refused. What is active is tried within moments." }));
  if (pending.notLookedAt > 0) shown.push(make("p", { class: "empty", text: `${count.format(pending.notLookedAt)} more pods that wait are not looked at here.` }));
  if (shown.length !== box.children.length || shown.some((card, i) => card !== box.children[i])) box.replaceChildren(...shown);
}

function newGroup(group, isOpen) {
  const card = make("details", { class: "group" }, make("summary", {}, make("b"), " ", make("span", { class: "message", text: group.message })),
    make("div", { class: "body" }, make("div", { class: "chips" }), make("div", { class: "why" })));
  card.dataset.message = group.message;
  card.open = isOpen;
  return card;
}

function fillGroup(card, group) {
  const names = `${group.count} ${group.pods.map((each) => each.pod).join()}`;
  const notes = group.pods.map((each) => `${each.place}, ${each.attempts} ${each.attempts === 1 ? "try" : "tries"}`);
  card.querySelector("b").textContent = `${count.format(group.count)} ×`;
  if (card.dataset.names === names) {  // the buttons stay, for one of them may be in use
    card.querySelectorAll(".chip small").forEach((small, i) => { small.textContent = notes[i]; });
  } else {
    card.dataset.names = names;
    const chips = group.pods.map((each, i) => podLink(each.pod, "chip", notes[i]));
    if (group.count > group.pods.length) chips.push(make("span", { class: "note", text: `and ${count.format(group.count - group.pods.length)} more` }));
    card.querySelector(".chips").replaceChildren(...chips);
  }
  if (card.open) explainInto(card.querySelector(".why"), group.pods[0].pod, false);
}

async function explainInto(box, pod, isNew) {
  const last = explained.get(box);
  if (!isNew && last && last.pod === pod && performance.now() - last.at < EXPLAIN_MS) return;
  explained.set(box, { pod, at: performance.now() });
  try {
    box.replaceChildren(...explanation(await ask(`api/pods/${pod.split("/").map(encodeURIComponent).join("/")}`)));
  } catch (error) {
    box.replaceChildren(make("p", { class: "empty", text: error.message }));
  }
}

function explanation(told) {
  const parts = [];
  if (told.failure) parts.push(make("p", { class: "refused", text: told.failure }));
  if (told.refusals && told.refusals.length) {
    parts.push(make("h3", { text: `${count.format(told.feasibleCount)} of ${count.format(told.nodeCount)} nodes would take ${told.node ? "one more like it" : "it"}` }));
    for (const refusal of told.refusals) {
      const by = [refusal.plugin, refusal.helpsToEvict ? "evicting pods may help" : "", refusal.examples.join(", ")].filter(Boolean).join(" · ");
      parts.push(make("div", { class: "refusal" }, make("span", { class: "count", text: count.format(refusal.count) }),
        make("div", {}, refusal.reason, make("meter", { min: 0, max: told.nodeCount, value: refusal.count, "aria-hidden": "true" }), make("small", { text: by }))));
    }
  }
  if (told.advice && told.advice.length) parts.push(make("h3", { text: "What would help" }), make("ul", {}, ...told.advice.map((line) => make("li", { text: line }))));
  if (told.ranking && told.ranking.length) parts.push(make("h3", { text: told.node ? "Best nodes for one more like it, now" : "Best nodes, now" }), ranking(told.ranking));
  return parts;
}

function ranking(rows) {
  const plugins = Object.keys(rows[0].byPlugin);
  const head = make("tr", {}, make("th", { scope: "col", text: "node" }), make("th", { scope: "col", class: "number", text: "total" }),
    ...plugins.map((name) => make("th", { scope: "col", class: "number" }, ...name.split(/(?=[A-Z][a-z])/).flatMap((word) => [word, make("wbr")]))));
  const body = rows.map((row) => make("tr", {}, make("th", { scope: "row" }, nodeLink(row.node)), make("td", { class: "number" }, make("b", { text: row.total })),
    ...plugins.map((name) => make("td", { class: "number", text: row.byPlugin[name] }))));
  return make("div", { class: "scores" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
}

function showDecisions(decisions) {
  const newest = decisions.length ? `${decisions[0].at} ${decisions[0].pod}` : "";
  const body = find("decisions");
  if (body.dataset.newest === newest) return;
  body.dataset.newest = newest;
  const clock = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
  body.replaceChildren(...decisions.map((one) => make("tr", {},
    make("td", { text: clock.format(one.at * 1000) }), make("td", {}, podLink(one.pod, "plain")),
    one.node ? make("td", { class: "text" }, nodeLink(one.node)) : make("td", { class: "text refused", title: one.message, text: one.message }),
    make("td", { class: "number", text: one.node ? ago(one.seconds) : "" }), make("td", { class: "number", text: one.attempts || "" }))));
}

// --- one pod, one node -----------------------------------------------------------------------------------------------

const facts = (pairs) => make("dl", { class: "facts" }, ...pairs.filter(([, value]) => value).flatMap(([name, value]) => [make("dt", { text: name }), make("dd", {}, value)]));
const listed = (values) => Object.entries(values).map(([name, value]) => `${name} ${value}`).join(", ");

async function showHash() {
  const [kind, ...rest] = location.hash.slice(1).split("/").map(decodeURIComponent);
  const dialog = find("detail"), body = find("detail-body");
  if (!["pod", "node"].includes(kind)) { dialog.close(); return; }
  find("detail-title").textContent = rest.join("/");
  body.replaceChildren();
  if (!dialog.open) dialog.showModal();
  try {
    const told = await ask(`api/${kind}s/${rest.map(encodeURIComponent).join("/")}`);
    body.replaceChildren(...(kind === "pod" ? podDetail(told) : nodeDetail(told)));
  } catch (error) {
    body.replaceChildren(make("p", { class: "empty", text: error.message }));
  }
}

function podDetail(told) {
  const tries = told.attempts ? `${told.place}, tried ${told.attempts} ${told.attempts === 1 ? "time" : "times"}` : told.place;
  return [facts([["node", told.node && nodeLink(told.node)], ["queue", tries], ["requests", listed(told.requests)],
    ["priority", told.priority && String(told.priority)], ["scheduler", told.scheduler], ["message", told.message]]),
  make("div", { class: "why" }, ...explanation(told))];
}

function nodeDetail(told) {
  const amounts = told.resources.map((each) => `${each.name} ${each.requested} of ${each.allocatable}`).join(", ");
  const rows = told.pods.map((each) => make("tr", {}, make("td", {}, podLink(each.pod, "plain")), make("td", { text: listed(each.requests) }), make("td", { class: "number", text: each.priority || "" })));
  const head = make("tr", {}, ...["pod", "requests", "priority"].map((name) => make("th", { scope: "col", text: name })));
  const labels = Object.entries(told.labels).map(([name, value]) => `${name}=${value}`).join(", ");
  return [facts([["requested", amounts], ["pods", `${told.podCount} of ${told.allowedPods}`], ["taints", told.taints.join(", ")],
    ["cordoned", told.isCordoned && "yes"], ["labels", labels]]),
  ...(rows.length ? [make("div", { class: "scroll", tabindex: 0 }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)))] : [])];
}

find("detail").addEventListener("close", () => { if (location.hash) history.replaceState(null, "", location.pathname); });
document.addEventListener("toggle", (event) => {
  const card = event.target;
  if (card.open && card.matches(".group")) explainInto(card.querySelector(".why"), card.querySelector(".chip").firstChild.textContent.trim(), false);
}, true);
addEventListener("hashchange", showHash);
map.start();
poll();
if (location.hash) showHash();
