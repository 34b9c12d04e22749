// What would help a pod, each change with the command that makes it.

import { copyButton, make } from "./dom.js";

export function adviceList(advice) {
  return make("ul", { class: "advice" }, ...advice.map((each) => make("li", {}, each.text,
    ...(each.patches || []).map((patch) => make("div", { class: "patch" },
      ...(patch.note ? [make("p", { class: "note", text: patch.note })] : []),
      make("code", { text: patch.command }), copyButton(patch.command))))));
}

export const wakeList = (wakes) => make("ul", {}, ...wakes.map((each) => make("li", {}, make("b", { text: each.plugin }), ` ${each.text}`)));
