// What is known of the cluster: the newest picture, and the node columns, which come only when they have changed.
//
// A picture names the process that made it. One of another process is of another scheduler: nothing that was known is kept.

const names = new Intl.Collator("en", { numeric: true });

export class Model extends EventTarget {
  constructor() {
    super();
    this.forget();
  }

  forget() {
    this.state = this.nodes = this.usage = null;
    this.versions = { nodes: "", usage: "" };
    this.rowOf = new Map();
  }

  take(state) {
    const isAnother = this.state !== null && this.state.process !== state.process;
    if (isAnother) this.forget();
    const hasNodes = Boolean(state.nodes), hasUsage = Boolean(state.usage);
    if (hasNodes) {
      this.nodes = state.nodes;
      this.nodes.isCordoned = new Set(state.nodes.cordoned);
      this.rowOf = new Map(state.nodes.names.map((name, row) => [name, row]));
      // Where each name stands among all, once for all drawings: comparing names as people do takes longer than drawing them.
      this.place = new Int32Array(state.nodes.names.length);
      state.nodes.names.map((name, row) => [name, row]).sort(([a], [b]) => names.compare(a, b)).forEach(([, row], place) => { this.place[row] = place; });
    }
    if (hasUsage) this.usage = state.usage;
    this.versions = state.versions;
    this.state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: { hasNodes, hasUsage, isAnother } }));
  }

  get isReady() { return this.nodes !== null && this.usage !== null; }
  zone(row) { return this.nodes.zone[row] < 0 ? "" : this.nodes.zones[this.nodes.zone[row]]; }
  taints(row) { return this.nodes.taints[this.nodes.taint[row]]; }

  share(resource, row) {
    const all = this.nodes.resources[resource].allocatable[row], used = this.usage[resource][row];
    return all ? used / all : used ? Infinity : -1;
  }

  // Rows in groups, each with its title; both sorted as people sort names.
  grouped(titleOf, before = (a, b) => this.place[a] - this.place[b]) {
    const groups = new Map();
    this.nodes.names.forEach((_, row) => {
      const title = titleOf(row);
      if (!groups.has(title)) groups.set(title, []);
      groups.get(title).push(row);
    });
    return [...groups].sort(([a], [b]) => names.compare(a, b)).map(([title, rows]) => ({ title, rows: rows.sort(before) }));
  }
}

export const model = new Model();
