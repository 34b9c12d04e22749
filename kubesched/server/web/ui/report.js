// A report of one simulation, or of two side by side: what came of it, over time, the nodes at the end, what moved. The document is
// in the file, and so is everything that draws it.

import { amount, count, duration, make, percent, several, table } from "./dom.js";
import { Model } from "./model.js";
import "./node-map.js";
import { PlotBoard } from "./plot.js";

const SVG = "http://www.w3.org/2000/svg";
const FEWEST_POINTS = 3;
const BINS = 10;
const told = JSON.parse(document.getElementById("document").textContent);
const { runs } = told;
const isPair = runs.length === 2;
const letters = ["A", "B"];
const nameOf = (i) => (isPair ? `${letters[i]} ${runs[i].name}` : runs[i].name);
const swatch = (i) => make("span", { class: `mark line-mark-${i}` });
const section = (title, ...children) => make("section", {}, make("h2", { text: title }), ...children);
const one = (value) => count(Math.round(value * 10) / 10);

const elapsed = (seconds) => [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60].map((part, i) => (i ? String(part).padStart(2, "0") : part)).join(":");

// --- in words --------------------------------------------------------------------------------------------------------

function inWords() {
  const [a, b] = runs.map((run) => run.document);
  if (!isPair) {
    const { pods, timeToPlacement: waits, utilisation } = a;
    const wait = pods.placed ? `, half of them within ${duration(waits.p50)} and 99 % within ${duration(waits.p99)}` : "";
    return `${count(pods.placed)} of ${several(pods.arrived, "pod")} were placed${wait}. ${several(pods.preempted, "pod was", "pods were")} preempted, ${count(pods.pending)} waited at the end, and ${percent(utilisation.cpu.mean)} of the cpu was requested on average.`;
  }
  const by = (before, after, write, more, less) => (write(before) === write(after) ? "" : `${write(Math.abs(after - before))} ${after > before ? more : less} (${write(before)} → ${write(after)})`);
  const parts = [
    by(a.packing.nodesUsed.mean, b.packing.nodesUsed.mean, one, "nodes more on average", "nodes fewer on average"),
    by(a.pods.pending, b.pods.pending, count, "more pods that wait at the end", "fewer pods that wait at the end"),
    by(a.pods.preempted, b.pods.preempted, count, "more preemptions", "fewer preemptions"),
    a.pods.placed && b.pods.placed ? by(a.timeToPlacement.p99, b.timeToPlacement.p99, duration, "longer until 99 % are placed", "less until 99 % are placed") : "",
  ].filter(Boolean);
  const { moved, placed, onlyA, onlyB } = told.moves;
  const moves = `${count(moved)} of ${several(placed, "pod")} that both place land on another node${onlyA || onlyB ? `; ${count(onlyA)} only A places, ${count(onlyB)} only B` : ""}.`;
  return parts.length ? `${runs[1].name} against ${runs[0].name}: ${parts.join(", ")}. ${moves}` : `${runs[1].name} and ${runs[0].name} do alike. ${moves}`;
}

// --- figures ---------------------------------------------------------------------------------------------------------

const TILES = [
  ["Placed", (d) => count(d.pods.placed)], ["Pending at the end", (d) => count(d.pods.pending)],
  ["Time to placement, median", (d) => (d.pods.placed ? duration(d.timeToPlacement.p50) : "-")], ["Time to placement, 99 %", (d) => (d.pods.placed ? duration(d.timeToPlacement.p99) : "-")],
  ["cpu requested, mean", (d) => percent(d.utilisation.cpu.mean)], ["Nodes used, mean", (d) => one(d.packing.nodesUsed.mean)],
  ["Fragmentation, mean", (d) => percent(d.packing.fragmentation.mean)], ["Preempted", (d) => count(d.pods.preempted)],
];

const tiles = () => make("div", { class: "report-tiles" }, ...TILES.map(([title, write]) => make("div", { class: "tile" }, make("h2", { text: title }),
  ...runs.map((run, i) => make("p", { class: "figure" }, isPair ? swatch(i) : null, write(run.document), isPair ? make("small", { text: ` ${letters[i]}` }) : null)))));

function figures() {
  const heads = [["figure"], ...runs.map((_, i) => [nameOf(i), "number"]), ...(isPair ? [["difference", "number"]] : [])];
  return make("div", { class: "wide-table" }, table(heads, told.figures.map(([title, ...cells]) => make("tr", {}, make("th", { scope: "row", text: title.trim(), class: title.startsWith(" ") ? "indented" : "" }), ...cells.map((text) => make("td", { class: "number", text }))))));
}

// --- over time -------------------------------------------------------------------------------------------------------

function overTime() {
  const longest = runs.reduce((best, run) => ((run.series.time?.length || 0) > (best.length || 0) ? run.series.time : best), []);
  if (longest.length < FEWEST_POINTS) return null;
  const each = (column) => runs.map((run, i) => ({ name: nameOf(i), values: run.series[column] }));
  const lines = (...columns) => columns.map(([name, column]) => ({ name, values: runs[0].series[column] }));
  const step = longest[1] - longest[0], per = `in each ${duration(step)}`;
  const plots = isPair ? [
    { title: "cpu requested of allocatable", lines: each("cpu"), write: percent, top: 1 },
    { title: "memory requested of allocatable", lines: each("memory"), write: percent, top: 1 },
    { title: "Pods that wait", lines: each("pending"), write: count },
    { title: `Time to placement, 99 % of those placed ${per}`, lines: each("waitedP99"), write: duration },
    { title: "Fragmentation", lines: each("fragmentation"), write: percent, top: 1 },
    { title: "Nodes used", lines: each("nodesUsed"), write: count },
    { title: `Preempted ${per}`, lines: each("preempted"), write: count },
  ] : [
    { title: "Requested of allocatable", lines: lines(["cpu", "cpu"], ["memory", "memory"]), write: percent, top: 1 },
    { title: "Pods that wait", lines: lines(["all", "pending"], ["backoff", "backoff"], ["unschedulable", "unschedulable"]), write: count },
    { title: `Time to placement of those placed ${per}`, lines: lines(["median", "waitedP50"], ["99 %", "waitedP99"]), write: duration },
    { title: "Fragmentation", lines: lines(["of the free cpu", "fragmentation"]), write: percent, top: 1 },
    { title: "Nodes", lines: lines(["used", "nodesUsed"], ["there", "nodes"]), write: count },
    { title: `Preempted ${per}`, lines: lines(["pods", "preempted"]), write: count },
  ];
  const box = make("div", { class: "plots" }), board = new PlotBoard(box, elapsed, "at the end");
  const shown = plots.filter(({ title, lines }) => !title.startsWith("Preempted") || lines.some(({ values }) => values.some(Boolean)));
  return [section("Over time", box), () => board.show(longest, shown)];
}

// --- the nodes at the end --------------------------------------------------------------------------------------------

const ended = runs.map((run) => {
  const model = new Model();
  model.take({ process: "", versions: {}, nodes: run.nodes, usage: run.usage });
  return model;
});

function nodesAtEnd() {
  const names = ended[0].nodes.resources.map(({ name }) => name), maps = runs.map(() => make("node-map"));
  const chart = make("div");
  const select = make("select", { id: "resource", onchange: () => show() }, ...names.map((name) => make("option", { value: name, text: name })));
  const show = () => {
    const at = names.indexOf(select.value);
    ended.forEach((model, i) => {
      const groups = model.grouped((row) => model.zone(row) || "no zone").map(({ title, rows }) => ({ rows, title: `${title} · ${several(rows.length, "node")}` }));
      const describe = (row) => [`${model.nodes.names[row]}  ${model.zone(row)}`, ...model.nodes.resources.map((each, r) => `${each.name}: ${amount(model.usage[r][row], each.unit)} of ${amount(each.allocatable[row], each.unit)}`)];
      maps[i].show({ model, groups, describe, label: `${several(model.nodes.names.length, "node")} of ${nameOf(i)}, coloured by ${select.value} requested`,
        paint: (row, colours) => { const share = model.share(at, row); return { fill: share < 0 ? null : share > 1 ? colours.over : colours.heat[Math.round(100 * share)] }; } });
    });
    chart.replaceChildren(histogram(ended.map((model) => model.nodes.names.map((_, row) => model.share(at, row)).filter((share) => share >= 0)), select.value));
  };
  const part = section("The nodes at the end", make("p", { class: "tools" }, make("label", { for: "resource", text: "Colour by" }), select,
    make("span", { class: "key" }, "0 %", make("span", { class: "heat" }), "100 %")),
  make("div", { class: isPair ? "pair" : "" }, ...maps.map((map, i) => make("div", {}, isPair ? make("h3", {}, swatch(i), nameOf(i)) : null, map))), chart);
  return [part, show];
}

// How many nodes are how full: bars side by side for each run.
function histogram(shares, resource) {
  const counts = shares.map((values) => values.reduce((bins, share) => { bins[Math.min(BINS - 1, Math.floor(share * BINS))] += 1; return bins; }, Array(BINS).fill(0)));
  const most = Math.max(1, ...counts.flat()), wide = 600 / BINS, high = 110;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 600 ${high}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `Nodes by how much ${resource} is requested of them: ${counts.map((bins, i) => `${nameOf(i)} ${bins.map((n, bin) => `${bin * 10} % ${n}`).join(", ")}`).join("; ")}`);
  counts.forEach((bins, run) => bins.forEach((n, bin) => {
    const bar = document.createElementNS(SVG, "rect"), width = (wide - 8) / counts.length;
    for (const [name, value] of [["x", bin * wide + 4 + run * width], ["y", high - n / most * (high - 4)], ["width", width - 1], ["height", n / most * (high - 4)], ["class", `fill-${run}`]]) bar.setAttribute(name, value);
    const hint = document.createElementNS(SVG, "title");
    hint.textContent = `${nameOf(run)}: ${several(n, "node")} at ${bin * 10} to ${bin * 10 + 10} %`;
    bar.append(hint);
    svg.append(bar);
  }));
  return make("figure", { class: "plot" }, make("figcaption", { text: `Nodes by how much ${resource} is requested of them` }), isPair ? make("p", { class: "plot-legend" }, ...runs.map((_, i) => make("span", {}, swatch(i), nameOf(i)))) : null,
    make("div", { class: "plot-frame" }, make("span", { class: "plot-top", text: several(most, "node") }), svg), make("p", { class: "plot-ends bins" }, ...Array.from({ length: BINS }, (_, bin) => make("span", { text: `${bin * 10}–${bin * 10 + 10} %` }))));
}

// --- what moved, what waits ------------------------------------------------------------------------------------------

function moved() {
  const { workloads, pods, moved: all } = told.moves;
  const changed = workloads.filter((row) => row.moved || row.onlyA || row.onlyB);
  if (!changed.length) return section("Pods that moved", make("p", { class: "empty", text: "Both place every pod alike." }));
  const rows = changed.map((row) => make("tr", {}, make("th", { scope: "row", text: row.workload }), ...["placed", "moved", "otherZone", "onlyA", "onlyB"].map((name) => make("td", { class: "number", text: count(row[name]) }))));
  const body = make("tbody"), note = make("p", { class: "note" });
  const find = (text) => {
    const found = pods.filter((each) => `${each.pod} ${each.workload} ${each.a} ${each.b}`.includes(text));
    body.replaceChildren(...found.slice(0, 200).map((each) => make("tr", {}, make("td", { text: each.pod }), make("td", { text: each.a }), make("td", { text: each.b }))));
    note.textContent = `${count(Math.min(found.length, 200))} of ${several(text ? found.length : all, "pod")} shown`;
  };
  find("");
  return section("Pods that moved", make("div", { class: "wide-table" }, table([["workload"], ["placed by both", "number"], ["moved", "number"], ["other zone", "number"], ["A only", "number"], ["B only", "number"]], rows)),
    ...(pods.length ? [make("p", { class: "tools" }, make("label", { for: "find-pod", text: "Find" }), make("input", { id: "find-pod", type: "search", placeholder: "pod, workload or node", oninput: (event) => find(event.target.value.trim()) })),
      make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Pods that moved" }, make("table", {}, make("thead", {}, make("tr", {}, ...["pod", "A", "B"].map((text) => make("th", { scope: "col", text })))), body)), note] : []));
}

const waiting = () => section("Why pods wait at the end", ...runs.flatMap((run, i) => (run.pending.length ? [isPair ? make("h3", {}, swatch(i), nameOf(i)) : null,
  make("ul", {}, ...run.pending.map(({ why, count: n, pod }) => make("li", {}, make("b", { text: `${count(n)} ` }), why, make("small", { text: ` ${pod}${n > 1 ? ", …" : ""}` }))))].filter(Boolean) : [])));

// --- all of it -------------------------------------------------------------------------------------------------------

const time = overTime(), nodes = nodesAtEnd();
document.getElementById("view").replaceChildren(make("div", {},
  make("header", {}, make("h1", { text: told.title }), make("p", { class: "note", text: `${isPair ? `A is ${runs[0].name}, B is ${runs[1].name}` : `decided by ${runs[0].name}`} · ${duration(told.seconds)} of virtual time · seed ${told.seed}` })),
  make("p", { class: "sentence", text: inWords() }), tiles(), ...(time ? [time[0]] : []), nodes[0], ...(told.moves ? [moved()] : []),
  ...(runs.some((run) => run.pending.length) ? [waiting()] : []), section("All figures", figures())));
if (time) time[1]();
nodes[1]();
document.body.dataset.ready = "yes";
