// Time: the last hours in plots that share a cursor. Only what is new is asked for.

import { ask } from "./api.js";
import { clock, count, duration, make, percent, reconcile } from "./dom.js";
import { changeRow } from "./node-changes.js";
import { PlotBoard } from "./plot.js";
import { View } from "./view.js";

const SPANS = [[900, "15 min"], [3600, "1 h"], [14400, "4 h"]];
const FIGURES = ["at", "bound", "active", "backoff", "unschedulable", "gated", "p50", "p99", "cpu", "memory", "evicted", "nodes", "cordoned", "fragmented"];
const MOST = 2880, MOST_CHANGES = 50;

class TimeView extends View {
  build() {
    this.span = 900;
    this.columns = null;
    this.process = "";
    this.box = make("div", { class: "plots" });
    this.buttons = make("div", { class: "choices", role: "group", "aria-label": "How far back" }, ...SPANS.map(([seconds, text]) => make("button", {
      type: "button", text, "aria-pressed": String(seconds === this.span), onclick: (event) => {
        this.span = seconds;
        for (const button of this.buttons.children) button.setAttribute("aria-pressed", String(button === event.currentTarget));
        this.draw();
      } })));
    this.replaceChildren(make("section", { "aria-labelledby": "time-title" }, make("h2", { id: "time-title", text: "The last hours" }), this.buttons, make("p", { class: "note", text: "Drag over a plot to see what was decided and what changed then, or move the cursor with the arrow keys and press Enter." }), this.box),
      make("section", { "aria-labelledby": "changes-title" }, make("h2", { id: "changes-title", text: "What changed about nodes" }), this.note = make("p", { class: "note" }), this.changes = make("ul", { class: "changes" })));
    this.board = new PlotBoard(this.box, clock);
    this.board.onrange = (from, to) => { location.hash = `decisions?since=${Math.floor(from)}&until=${Math.ceil(to)}`; };
    this.every(5000, () => this.refresh());
  }

  async refresh() {
    const after = this.columns ? this.columns.at[this.columns.at.length - 1] || 0 : 0;
    const told = await ask(`history?after=${after}`, { signal: this.ends.signal });
    if (this.columns && told.process === this.process) for (const name of FIGURES) this.columns[name] = [...this.columns[name], ...told[name]].slice(-MOST);
    else if (!this.columns || after === 0) this.columns = told;
    else { this.columns = null; return; }  // another process: all of its history is asked for next
    this.process = told.process;
    const { changes, isRecorded } = await ask(`node-changes?since=${Math.floor(Date.now() / 1000 - SPANS[SPANS.length - 1][0])}`, { signal: this.ends.signal });
    this.board.marks = changes.map(({ at }) => at);
    reconcile(this.changes, changes.slice(0, MOST_CHANGES), (one) => `${one.at} ${one.text} ${one.count}`, changeRow);
    this.note.textContent = !isRecorded ? "No changes are kept on record here (--decision-records 0)." : changes.length ? "" : "Nothing in the last hours.";
    this.worked();
    this.draw();
  }

  draw() {
    if (!this.columns) return;
    const last = this.columns.at[this.columns.at.length - 1] || 0, from = Math.max(0, this.columns.at.findIndex((time) => time >= last - this.span));
    const line = (name, values) => ({ name, values: this.columns[values || name].slice(from) });
    this.board.show(this.columns.at.slice(from), [
      // Dragging over any plot asks for the decisions of that time.
      { title: "Bound a second", lines: [line("bound")], write: (value) => count(Math.round(value * 10) / 10) },
      { title: "Queue", lines: ["active", "backoff", "unschedulable", "gated"].map((name) => line(name)), write: (value) => count(value) },
      { title: "From first try to bound", lines: [line("p50"), line("p99")], write: duration },
      { title: "Requested of allocatable", lines: [line("cpu"), line("memory")], write: percent, top: 1 },
      { title: "Free cpu in pieces too small", lines: [line("cpu", "fragmented")], write: percent, top: 1 },
      { title: "Evicted for others", lines: [line("pods", "evicted")], write: (value) => count(value) },
      { title: "Nodes", lines: [line("nodes"), line("cordoned")], write: (value) => count(value) },
    ]);
  }
}

customElements.define("time-view", TimeView);
