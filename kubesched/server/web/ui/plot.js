// Plots over time: lines on an SVG, small and our own. All plots of one board share the cursor: where one is pointed at, all
// say their values of that moment.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 600, HEIGHT = 120, MOST_POINTS = 300, AROUND_SECONDS = 30;

const draw = (tag, attributes) => {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};

// One point for each of so many pieces of time: the highest, so that no peak is lost.
export function thin(times, values, most = MOST_POINTS) {
  const step = Math.max(1, Math.ceil(times.length / most)), points = [];
  for (let start = 0; start < times.length; start += step) {
    let best = null;
    for (let i = start; i < Math.min(start + step, times.length); i += 1) {
      if (values[i] !== null && values[i] !== undefined && (best === null || values[i] > values[best])) best = i;
    }
    points.push(best === null ? null : [times[best], values[best]]);
  }
  return points;
}

const nice = (most) => {
  if (!(most > 0)) return 1;
  const ten = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((step) => step * ten).find((step) => step >= most);
};

// A board of plots: { title, lines: [{ name, values }], write(value), top? } over one list of times.
export class PlotBoard {
  constructor(box, writeTime, last = "now") {
    this.lastWord = last;
    this.box = box;
    this.writeTime = writeTime;
    this.plots = [];
    this.marks = [];  // times at which something happened; a tick on every plot
    this.cursor = null;
  }

  show(times, plots) {
    this.times = times;
    while (this.plots.length < plots.length) this.plots.push(this.newPlot());
    this.plots.forEach((plot, i) => this.fill(plot, plots[i]));
    this.point(this.cursor);
  }

  newPlot() {
    const figure = document.createElement("figure"), title = document.createElement("figcaption"), legend = document.createElement("p");
    const svg = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", tabindex: "0" });
    const line = draw("line", { class: "plot-cursor", y1: 0, y2: HEIGHT, visibility: "hidden" });
    const lines = draw("g", {}), marks = draw("g", {}), top = document.createElement("span"), ends = document.createElement("p");
    const frame = document.createElement("div");
    figure.className = "plot";
    legend.className = "plot-legend";
    top.className = "plot-top";
    ends.className = "plot-ends";
    frame.className = "plot-frame";
    svg.append(draw("line", { class: "plot-axis", x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT }), marks, lines, line);
    frame.append(top, svg);
    figure.append(title, legend, frame, ends);
    this.box.append(figure);
    svg.addEventListener("pointermove", (event) => this.point(this.shareOf(svg, event)));
    svg.addEventListener("pointerdown", (event) => { this.dragged = this.shareOf(svg, event); });
    svg.addEventListener("pointerup", (event) => {
      const from = this.dragged, to = this.shareOf(svg, event);
      this.dragged = null;
      if (from !== null && from !== undefined && Math.abs(to - from) > 0.01 && this.onrange) this.onrange(this.timeAt(Math.min(from, to)), this.timeAt(Math.max(from, to)));
    });
    svg.addEventListener("pointerleave", () => this.point(null));
    svg.addEventListener("keydown", (event) => {
      if (!["ArrowLeft", "ArrowRight", "Escape", "Enter"].includes(event.key)) return;
      event.preventDefault();
      if (event.key === "Enter") { this.askAround(); return; }
      const by = (event.key === "ArrowLeft" ? -1 : 1) / Math.max(1, this.times.length - 1);
      this.point(event.key === "Escape" ? null : Math.max(0, Math.min(1, (this.cursor ?? 1) + by)));
    });
    svg.addEventListener("blur", () => this.point(null));
    return { figure, title, legend, svg, lines, marks, line, top, ends };
  }

  // What a drag asks for by mouse, Enter asks for around the cursor.
  askAround() {
    if (this.cursor === null || !this.onrange) return;
    const time = this.timeAt(this.cursor);
    this.onrange(time - AROUND_SECONDS, time + AROUND_SECONDS);
  }

  shareOf(svg, event) {
    const place = svg.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - place.left) / place.width));
  }

  timeAt(share) {
    const n = this.times.length;
    return this.times[0] + share * (this.times[n - 1] - this.times[0]);
  }

  fill(plot, given) {
    plot.given = given;
    const first = this.times[0] ?? 0, last = this.times[this.times.length - 1] ?? 1;
    const most = given.top ?? nice(given.lines.reduce((sum, { values }) => values.reduce((a, b) => Math.max(a, b ?? 0), sum), 0));
    const x = (time) => (last > first ? (time - first) / (last - first) * WIDTH : WIDTH);
    const y = (value) => HEIGHT - Math.min(value / most, 1) * (HEIGHT - 4);
    plot.title.textContent = given.title;
    plot.marks.replaceChildren(...this.marks.filter((time) => time >= first && time <= last).map((time) => draw("line", { class: "plot-mark", x1: x(time), x2: x(time), y1: HEIGHT - 10, y2: HEIGHT })));
    plot.top.textContent = given.write(most);
    plot.ends.replaceChildren(...(this.times.length ? [this.writeTime(first), this.writeTime(last)] : ["", "no data yet"]).map((text) => Object.assign(document.createElement("span"), { textContent: text })));
    plot.lines.replaceChildren(...given.lines.map(({ values }, i) => {
      let isNew = true;
      const path = thin(this.times, values).map((point) => {
        if (point === null) { isNew = true; return ""; }
        const text = `${isNew ? "M" : "L"}${x(point[0]).toFixed(1)} ${y(point[1]).toFixed(1)}${isNew ? "h0.1" : ""}`;
        isNew = false;
        return text;
      }).join("");
      return draw("path", { d: path, class: `plot-line line-${i % 8}` });
    }));
    plot.svg.setAttribute("aria-label", `${given.title}: ${given.lines.map(({ name, values }) => `${name} ${last_(values, given.write)}`).join(", ")}`);
  }

  point(share) {
    this.cursor = share;
    const n = this.times?.length || 0;
    let i = n - 1;
    if (share !== null && n > 1) {
      const wanted = this.timeAt(share);
      i = this.times.reduce((best, time, at) => (Math.abs(time - wanted) < Math.abs(this.times[best] - wanted) ? at : best), 0);
    }
    for (const plot of this.plots) {
      plot.line.setAttribute("visibility", share === null ? "hidden" : "visible");
      plot.line.setAttribute("x1", (share ?? 0) * WIDTH);
      plot.line.setAttribute("x2", (share ?? 0) * WIDTH);
      const words = plot.given.lines.map(({ name, values }, line) => {
        const word = document.createElement("span"), mark = document.createElement("span"), value = values[i];
        mark.className = `mark line-mark-${line % 8}`;
        word.append(mark, `${name} ${value === null || value === undefined ? "-" : plot.given.write(value)}`);
        return word;
      });
      const when = document.createElement("span");
      when.textContent = n ? (share === null ? this.lastWord : this.writeTime(this.times[i])) : "";
      plot.legend.replaceChildren(...words, when);
    }
  }
}

function last_(values, write) {
  const value = values[values.length - 1];
  return value === null || value === undefined ? "-" : write(value);
}
