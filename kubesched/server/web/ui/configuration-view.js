// Configuration: each profile's plugins by extension point, with weights, arguments and what each does in a sentence.

import { ask } from "./api.js";
import { facts, make, table } from "./dom.js";
import { View } from "./view.js";

class ConfigurationView extends View {
  build() {
    this.every(30000, async () => {
      const told = await ask("configuration", { signal: this.ends.signal }), shown = JSON.stringify(told);
      this.worked();
      if (shown === this.shown) return;
      this.shown = shown;
      this.replaceChildren(...told.profiles.map((profile) => this.profile(profile, told)));
    });
  }

  profile(profile, told) {
    const points = make("ol", { class: "points" }, ...profile.points.map(({ point, plugins }) => make("li", {}, make("b", { text: point }),
      make("span", { class: "chips" }, ...plugins.map(({ name, weight }) => make("span", { class: "chip" }, name, weight ? make("small", { text: ` × ${weight}` }) : null))))));
    const rows = profile.plugins.map(({ name, purpose, args }) => make("tr", {}, make("th", { scope: "row", text: name }), make("td", { "data-head": "does", text: purpose }),
      make("td", { "data-head": "arguments" }, args && Object.keys(args).length ? make("code", { class: "args", text: JSON.stringify(args).replaceAll(",", ", ") }) : "")));
    return make("section", { "aria-label": `Profile ${profile.schedulerName}` }, make("h2", { text: `Profile ${profile.schedulerName}` }),
      facts([["backoff", `${told.podInitialBackoffSeconds} s to ${told.podMaxBackoffSeconds} s`],
        ["nodes scored", profile.percentageOfNodesToScore ? `${profile.percentageOfNodesToScore} %` : "all that are feasible"]]),
      make("h3", { text: "By extension point, in their order" }), points,
      make("h3", { text: "What each does" }), make("div", { class: "wide-table" }, table([["plugin"], ["does"], ["arguments"]], rows, { class: "cards" })));
  }
}

customElements.define("configuration-view", ConfigurationView);
