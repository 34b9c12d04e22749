// The node map: every node a cell, in groups. Drawn on a canvas, thousands of cells in some milliseconds; what is pointed at is
// an element of its own above it, so that moving the mouse draws nothing anew.
//
//   map.show({ groups: [{ title, rows }], paint, describe, label, model? });  paint(row) -> { fill, isFaint, text, parts: [{ share, fill }] }
//   Arrow keys stay in their group, PageUp and PageDown go to the next one, Enter opens.

import { make } from "./dom.js";
import { model as current } from "./model.js";

const TITLE = 20, BELOW = 8;
const ROOM = 20;  // cells so large have room for their pods

export function readColours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  const stops = [0, 1, 2, 3].map((i) => read(`--heat-${i}`).match(/\w\w/g).map((part) => parseInt(part, 16)));
  const heat = Array.from({ length: 101 }, (_, share) => {
    const place = Math.min(share / 100 * 3, 2.9999), from = Math.floor(place), part = place - from;
    return `rgb(${stops[from].map((value, i) => Math.round(value + (stops[from + 1][i] - value) * part)).join()})`;
  });
  const kinds = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => read(`--kind-${i}`));
  return { heat, kinds, over: read("--over"), ink: read("--ink"), faint: read("--faint"), mark: read("--mark"), card: read("--card"), edge: read("--edge") };
}

class NodeMap extends HTMLElement {
  // Whose nodes are shown: the ones of the moment, unless the picture brings its own.
  get model() { return this.picture?.model ?? current; }

  connectedCallback() {
    this.ends = new AbortController();
    const signal = this.ends.signal;
    this.canvas = make("canvas", { tabindex: 0, role: "application", "aria-roledescription": "node map", "aria-describedby": "map-help" });
    this.cursor = make("div", { class: "cursor", hidden: true });
    this.tip = make("div", { class: "tip", hidden: true });
    this.said = make("p", { class: "hidden", "aria-live": "polite" });
    this.replaceChildren(this.canvas, this.cursor, this.tip, this.said,
      make("p", { id: "map-help", class: "hidden", text: "Arrow keys go from node to node in a group, PageUp and PageDown to another group, Enter opens a node." }));
    this.chosen = "";
    this.colours = readColours();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.colours = readColours(); this.draw(); }, { signal });
    this.watcher = new ResizeObserver(() => { if (this.clientWidth !== this.drawnWidth) this.draw(); });
    this.watcher.observe(this);
    const on = (name, act) => this.canvas.addEventListener(name, act, { signal });
    on("mousemove", (event) => this.choose(this.at(event.offsetX, event.offsetY), false));
    on("mouseleave", () => { if (document.activeElement !== this.canvas) this.choose(-1, false); });
    on("blur", () => this.choose(-1, false));
    on("click", () => this.open());
    on("keydown", (event) => this.key(event));
  }

  disconnectedCallback() {
    this.ends.abort();
    this.watcher.disconnect();
  }

  show(picture) {
    this.picture = picture;
    this.draw();
  }

  layOut(width) {
    const n = Math.max(this.picture.groups.reduce((sum, group) => sum + group.rows.length, 0), 1);
    const room = width * Math.max(240, Math.min(window.innerHeight * 0.5, 480));
    this.size = Math.max(3, Math.min(52, Math.floor(Math.sqrt(room / n) * 0.9)));
    this.gap = this.size > 12 ? 3 : this.size > 6 ? 2 : 1;
    this.step = this.size + this.gap;
    this.perLine = Math.max(1, Math.floor((width + this.gap) / this.step));
    let top = 0;
    this.groups = this.picture.groups.map((group) => {
      const placed = { ...group, titleTop: top + 13, top: top + TITLE };
      top = placed.top + Math.ceil(group.rows.length / this.perLine) * this.step + BELOW;
      return placed;
    });
    return Math.max(top, 40);
  }

  draw() {
    if (!this.picture || !this.clientWidth) return;
    const width = this.drawnWidth = this.clientWidth, scale = window.devicePixelRatio || 1, height = this.layOut(width);
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "12px system-ui, sans-serif";
    for (const group of this.groups) {
      pen.fillStyle = this.colours.faint;
      pen.globalAlpha = 1;
      pen.fillText(group.title, 0, group.titleTop, width);
      group.rows.forEach((row, i) => this.drawCell(pen, row, (i % this.perLine) * this.step, group.top + Math.floor(i / this.perLine) * this.step));
    }
    this.canvas.setAttribute("aria-label", this.picture.label);
    const name = this.chosen;
    this.chosen = "";
    if (name && !this.tip.hidden) this.choose(this.model.rowOf.has(name) ? this.model.rowOf.get(name) : -1, false);
  }

  drawCell(pen, row, x, y) {
    const { size, colours } = this, { fill, isFaint, text, parts } = this.picture.paint(row, colours);
    pen.globalAlpha = isFaint ? 0.18 : 1;
    if (fill) {
      pen.fillStyle = fill;
      pen.fillRect(x, y, size, size);
    }
    if (parts) this.drawParts(pen, parts, x, y);
    if (!fill || size > 6) {  // an edge, so that a node of little use is seen in the dark and an empty one in the light
      pen.strokeStyle = colours.edge;
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
    }
    if (text && size >= 20) {
      pen.fillStyle = colours.card;
      pen.textAlign = "center";
      pen.fillText(text, x + size / 2, y + size / 2 + 4, size - 2);
      pen.textAlign = "start";
    }
    if (this.model.taints(row).length) {
      const corner = Math.max(2, Math.round(size * 0.36));
      pen.fillStyle = colours.mark;
      pen.beginPath();
      pen.moveTo(x + size, y);
      pen.lineTo(x + size, y + corner);
      pen.lineTo(x + size - corner, y);
      pen.fill();
    }
    if (this.model.nodes.isCordoned.has(row)) {
      pen.strokeStyle = colours.ink;
      pen.lineWidth = size > 12 ? 1.5 : 1;
      pen.beginPath();
      for (const part of size > 12 ? [0.5, 1, 1.5] : [1]) {
        pen.moveTo(x + Math.max(0, (part - 1) * size), y + Math.min(size, part * size));
        pen.lineTo(x + Math.min(size, part * size), y + Math.max(0, (part - 1) * size));
      }
      pen.stroke();
    }
  }

  // What is in a cell, from its floor up, a layer each; more than there is room for ends at the ceiling.
  drawParts(pen, parts, x, y) {
    let floor = this.size;
    for (const { share, fill } of parts) {
      const ceiling = Math.max(0, floor - share * this.size), top = Math.round(ceiling), high = Math.round(floor) - top;
      pen.fillStyle = fill;
      pen.fillRect(x, y + top, this.size, high > 2 ? high - 1 : high);
      floor = ceiling;
    }
  }

  get hasRoom() { return this.size >= ROOM; }

  // The row of the cell at a point, -1 for none.
  at(x, y) {
    if (!this.groups) return -1;
    const group = this.groups.find((each, i) => y >= each.top && (i + 1 === this.groups.length || y < this.groups[i + 1].top - TITLE));
    const column = Math.floor(x / this.step);
    if (!group || column >= this.perLine) return -1;
    const row = group.rows[Math.floor((y - group.top) / this.step) * this.perLine + column];
    return row === undefined ? -1 : row;
  }

  find(row) {
    for (const group of this.groups) {
      const place = group.rows.indexOf(row);
      if (place >= 0) return { group, place };
    }
    return null;
  }

  choose(row, says) {
    const name = row < 0 ? "" : this.model.nodes.names[row];
    if (name === this.chosen) return;
    this.chosen = name;
    const found = row < 0 ? null : this.find(row);
    this.tip.hidden = this.cursor.hidden = !found;
    if (!found) return;
    const lines = this.picture.describe(row);
    const x = (found.place % this.perLine) * this.step, y = found.group.top + Math.floor(found.place / this.perLine) * this.step;
    Object.assign(this.cursor.style, { left: `${x - 2}px`, top: `${y - 2}px`, width: `${this.size + 4}px`, height: `${this.size + 4}px` });
    this.tip.textContent = lines.join("\n");
    this.tip.style.left = `${Math.max(0, Math.min(x + this.size + 8, this.clientWidth - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${y + this.size + 8}px`;
    if (says) this.said.textContent = lines.join(", ");
  }

  key(event) {
    if (!this.groups?.length) return;
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.perLine, ArrowUp: -this.perLine };
    const found = this.chosen ? this.find(this.model.rowOf.get(this.chosen)) : null;
    let next = null;
    if (event.key === "Enter") this.open();
    else if (event.key === "Escape") this.choose(-1, false);
    else if (event.key in steps || ["Home", "End", "PageUp", "PageDown"].includes(event.key)) next = found ? this.go(found, event.key, steps[event.key]) : this.groups[0].rows[0];
    else return;
    event.preventDefault();
    if (next !== null) this.choose(next, true);
  }

  go({ group, place }, key, by) {
    const { rows } = group, number = this.groups.indexOf(group);
    if (key === "Home") return rows[0];
    if (key === "End") return rows[rows.length - 1];
    if (key === "PageDown") return this.groups[Math.min(number + 1, this.groups.length - 1)].rows[0];
    if (key === "PageUp") return this.groups[Math.max(number - 1, 0)].rows[0];
    const next = place + by;
    return next >= 0 && next < rows.length ? rows[next] : rows[place];  // the edge of the group is the end
  }

  open() {
    if (this.chosen) this.dispatchEvent(new CustomEvent("open", { detail: this.chosen }));
  }
}

customElements.define("node-map", NodeMap);
