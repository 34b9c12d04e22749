// What changed about nodes: a line for each change, or for alike changes of many nodes in one moment.

import { clock, count, make, nodeLink } from "./dom.js";

const AROUND_SECONDS = 30;

export function changeRow({ at, text, count: n, nodes }) {
  const names = nodes.flatMap((node, i) => [i ? ", " : "", nodeLink(node)]), more = n - nodes.length;
  return make("li", {}, make("a", { class: "plain", href: `#decisions?since=${Math.floor(at - AROUND_SECONDS)}&until=${Math.ceil(at + AROUND_SECONDS)}`, title: "What was decided around then", text: clock(at) }),
    make("span", {}, ...(n > 1 ? [make("b", { text: `${count(n)} nodes ` })] : []), ...names, ...(more > 0 ? [` and ${count(more)} more`] : []), `: ${text}`));
}
