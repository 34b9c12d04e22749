// Pending: everything that has no node. First in groups by what would help, then the queue part by part, with a search.

import { ask } from "./api.js";
import { adviceList } from "./advice.js";
import { clock, count, duration, listed, make, podLink, reconcile, several } from "./dom.js";
import { asOf, View } from "./view.js";

const PARTS = [["", "all"], ["active", "active"], ["backoff", "backoff"], ["unschedulable", "unschedulable"], ["gated", "gated"]];

class PendingView extends View {
  build() {
    this.part = "";
    this.groups = make("div", { class: "groups" });
    this.groupNote = make("div");
    this.buttons = make("div", { class: "choices", role: "group", "aria-label": "Part of the queue" },
      ...PARTS.map(([part, text]) => make("button", { type: "button", "data-part": part, text, "aria-pressed": String(part === ""), onclick: () => this.choose(part) })));
    this.search = make("input", { id: "queue-search", type: "search", placeholder: "name, label, reason or plugin", oninput: () => this.searchLater() });
    this.body = make("tbody");
    this.note = make("div");
    const heads = [["pod"], ["where"], ["tries", "number"], ["waits", "number"], ["requests"], ["why"]];
    this.replaceChildren(
      make("section", { "aria-labelledby": "groups-title" }, make("h2", { id: "groups-title", text: "Held back, by what would help" }), this.groups, this.groupNote),
      make("section", { "aria-labelledby": "queue-title" }, make("h2", { id: "queue-title", text: "Queue" }),
        make("form", { class: "tools", onsubmit: (event) => event.preventDefault() }, this.buttons, make("label", { for: "queue-search", text: "Find" }), this.search),
        make("div", { class: "wide-table" }, make("table", { class: "cards" }, make("thead", {}, make("tr", {}, ...heads.map(([name, look]) => make("th", { scope: "col", class: look, text: name })))), this.body)), this.note));
    this.every(5000, () => this.askGroups());
    this.every(2000, () => this.askQueue());
  }

  choose(part) {
    this.part = part;
    for (const button of this.buttons.children) button.setAttribute("aria-pressed", String(button.dataset.part === part));
    this.askQueue().catch((error) => this.failed(error));
  }

  searchLater() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.askQueue().catch((error) => this.failed(error)), 200);
  }

  async askGroups() {
    const told = await ask("pending", { signal: this.ends.signal });
    this.worked();
    reconcile(this.groups, told.groups, (group) => `${group.why} ${group.pods[0].pod}`, (group) => this.newGroup(group), (card, group) => this.fillGroup(card, group));
    const first = this.groups.firstElementChild;
    if (first && !this.wasOpened) this.wasOpened = first.open = true;
    this.groupNote.replaceChildren(
      ...(told.groups.length ? [] : [make("p", { class: "empty", text: "No pod is held back. What is active is tried within moments." })]),
      ...(told.notLookedAt ? [make("p", { class: "note", text: `${several(told.notLookedAt, "pod")} more ${told.notLookedAt === 1 ? "is" : "are"} held back and not grouped yet; the queue below has all.` })] : []),
      asOf(told.at, "asked every 5 s"));
  }

  newGroup() {
    return make("details", { class: "group" }, make("summary", {}, make("b"), " ", make("span", { class: "message" })),
      make("div", { class: "body" }, make("div", { class: "chips" }), make("div")));
  }

  fillGroup(card, group) {
    card.querySelector("b").textContent = `${count(group.count)} ×`;
    card.querySelector(".message").textContent = group.why;
    const [chips, advice] = card.querySelector(".body").children;
    reconcile(chips, [...group.pods, ...(group.count > group.pods.length ? [null] : [])], (each) => (each ? each.pod : "more"),
      (each) => (each ? make("span", { class: "chip" }, podLink(each.pod), " ", make("small")) : make("span", { class: "note" })),
      (chip, each) => {
        if (each) chip.querySelector("small").textContent = `${each.place}, ${several(each.attempts, "try", "tries")}`;
        else chip.textContent = `and ${count(group.count - group.pods.length)} more`;
      });
    const shown = JSON.stringify([group.advice, group.isExact]);
    if (advice.dataset.shown === shown) return;
    advice.dataset.shown = shown;
    advice.replaceChildren(...(group.advice.length ? [
      make("h3", { text: group.isExact ? "What would help" : `What would help ${group.pods[0].pod}; the others ask for other amounts, look at each` }), adviceList(group.advice)] : []));
  }

  async askQueue() {
    const part = this.part, search = this.search.value.trim();
    const told = await ask(`queue?${new URLSearchParams({ part, search })}`, { signal: this.ends.signal });
    if (part !== this.part || search !== this.search.value.trim()) return;
    this.worked();
    for (const button of this.buttons.children) {
      const number = button.dataset.part ? told.queue[button.dataset.part] : told.queue.waiting;
      button.textContent = `${button.dataset.part || "all"} ${count(number)}`;
    }
    const parts = Object.values(told.parts), pods = parts.flatMap((each) => each.pods);
    reconcile(this.body, pods, (one) => one.pod, (one) => make("tr", {}, make("td", {}, podLink(one.pod)),
      make("td", { "data-head": "where" }), make("td", { class: "number", "data-head": "tries" }), make("td", { class: "number", "data-head": "waits" }),
      make("td", { "data-head": "requests" }), make("td", { class: "reason", "data-head": "why" })), (line, one) => {
      const [, where, tries, waits, requests, why] = line.children;
      where.textContent = one.place === "backoff" && one.backoffUntil ? `backoff until ${clock(one.backoffUntil)}` : one.place;
      tries.textContent = count(one.attempts);
      waits.textContent = duration(Math.max(0, told.at - one.since));
      requests.textContent = listed(one.requests) || "nothing";
      why.textContent = one.message || (one.place === "active" ? "is next in its turn" : one.place === "backoff" ? "pauses after a refusal" : "");
    });
    const matching = parts.reduce((sum, each) => sum + each.matching, 0);
    this.note.replaceChildren(
      ...(pods.length ? [] : [make("p", { class: "empty", text: search ? "No pod in the queue matches." : "Nothing is here." })]),
      ...(matching > pods.length ? [make("p", { class: "note", text: `${several(matching, "pod")} match; the first ${count(pods.length)} are shown, from every part.` })] : []),
      asOf(told.at, told.queue.inFlight ? `${several(told.queue.inFlight, "more pod")} being tried or bound` : ""));
  }
}

customElements.define("pending-view", PendingView);
