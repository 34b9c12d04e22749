// The page: follows the scheduler, and shows one view at a time by the address.
//
//   #map  #pending  #decisions  #time  #configuration  #try  #pod/NAMESPACE/NAME  #node/NAME      each can be linked to
//   api.js asks, model.js remembers, views draw; no library, no build step, no other host.

import { access, follow, giveToken } from "./api.js";
import { errorText, clock, make } from "./dom.js";
import { model } from "./model.js";
import "./cluster-figures.js";
import "./configuration-view.js";
import "./decisions-view.js";
import "./map-view.js";
import "./node-view.js";
import "./pending-view.js";
import "./pod-view.js";
import "./time-view.js";
import "./try-view.js";

const AGAIN_MS = 1000;
const VIEWS = { map: "map-view", pending: "pending-view", decisions: "decisions-view", time: "time-view", configuration: "configuration-view", try: "try-view" };
const find = (id) => document.getElementById(id);

// --- the address -----------------------------------------------------------------------------------------------------

function newView() {
  const [path, query] = location.hash.slice(1).split("?");
  const [kind, ...rest] = path.split("/").map(decodeURIComponent);
  if (kind === "pod" && rest.length === 2) return Object.assign(document.createElement("pod-view"), { pod: rest.join("/"), askedNode: new URLSearchParams(query).get("node") });
  if (kind === "node" && rest.length === 1) return Object.assign(document.createElement("node-view"), { node: rest[0] });
  return Object.assign(document.createElement(VIEWS[kind] || VIEWS.map), { query: new URLSearchParams(query) });
}

function showView() {
  const view = newView(), name = view.localName;
  document.body.dataset.view = name;
  find("view").replaceChildren(view);
  for (const link of document.querySelectorAll("nav a")) {
    if (VIEWS[link.hash.slice(1)] === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const title = view.pod || view.node || document.querySelector("nav a[aria-current]")?.textContent;
  document.title = title ? `${title} · kubesched` : "kubesched";
}

// --- following -------------------------------------------------------------------------------------------------------

let stream = new AbortController(), wake = () => {};

function alarm(text) {
  find("alarm").hidden = !text;
  find("alarm").textContent = text;
}

function take(state) {
  model.take(state);
  alarm("");
  document.body.dataset.ready = "yes";
}

async function keepFollowing() {
  for (;;) {
    if (!document.hidden) {
      stream = new AbortController();
      try {
        await follow(model.versions, take, stream.signal);
        if (!document.hidden) continue;
      } catch (error) {
        if (error.name !== "AbortError") {
          const since = model.state ? `; what is shown is of ${clock(model.takenAt)}` : "";
          alarm(`${errorText(error)}${since}`);
          document.body.classList.add("stale");
        }
      }
    }
    await new Promise((done) => { wake = done; setTimeout(done, AGAIN_MS); });
  }
}

model.addEventListener("state", ({ detail }) => {
  const { state } = model;
  model.takenAt = Date.now() / 1000;
  document.body.classList.remove("stale");
  document.querySelector("nav a[href='#try']").hidden = !state.offers.length;
  find("who").textContent = `${state.profiles.join(", ")} · ${state.isObserving ? "observing" : state.isLeading ? "leading" : "standing by"}`;
  if (detail.isAnother) {
    find("restarted").textContent = `the scheduler was restarted at ${clock(state.startedAt)}; everything is of the new one`;
    find("restarted").hidden = false;
    showView();
  }
});

document.addEventListener("visibilitychange", () => { if (document.hidden) stream.abort(); else wake(); });

// --- who asks --------------------------------------------------------------------------------------------------------

access.addEventListener("needed", () => { find("token-form").hidden = false; });
find("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  giveToken(find("token").value.trim());
  find("token").value = "";
  find("token-form").hidden = true;
  wake();
});

find("restarted").addEventListener("click", () => { find("restarted").hidden = true; });
addEventListener("hashchange", showView);
showView();
keepFollowing();
