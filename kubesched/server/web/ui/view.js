// What all views share: they follow the model while they are on the page, ask again from time to time, and say of when they are.

import { clock, errorText, make } from "./dom.js";
import { model } from "./model.js";

export class View extends HTMLElement {
  connectedCallback() {
    this.ends = new AbortController();
    model.addEventListener("state", (event) => this.onState(event.detail), { signal: this.ends.signal });
    this.build();
    if (model.state) this.onState({ hasNodes: model.nodes !== null, hasUsage: model.usage !== null, isAnother: false });
  }

  disconnectedCallback() { this.ends.abort(); }
  get isThere() { return !this.ends.signal.aborted; }
  onState() {}

  // Run now and every so often, one at a time, as long as the view is there and looked at.
  async every(milliseconds, work) {
    while (this.isThere) {
      if (!document.hidden) {
        try {
          await work();
        } catch (error) {
          if (error.name === "AbortError") return;
          this.failed(error);
        }
      }
      await new Promise((done) => { setTimeout(done, milliseconds); });
    }
  }

  failed(error) {
    let note = this.querySelector(".failure");
    if (!note) (this.querySelector("section") || this).prepend(note = make("p", { class: "failure refused", role: "status" }));
    note.textContent = errorText(error);
  }

  worked() { this.querySelector(".failure")?.remove(); }
}

export const asOf = (seconds, note) => make("p", { class: "note as-of", text: `as of ${clock(seconds)}${note ? `, ${note}` : ""}` });
