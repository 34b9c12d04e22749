// Asks the scheduler: JSON documents, and the stream of server-sent events. The only file that knows addresses and the token.

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

const KEY = "kubesched-token";  // kept as long as the tab, and by nobody else
export const access = new EventTarget();

export function giveToken(token) {
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
}

const headers = (more) => {
  const token = sessionStorage.getItem(KEY);
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
};

export const at = (...parts) => parts.map(encodeURIComponent).join("/");
export const podPath = (key) => `pods/${at(...key.split("/"))}`;

export async function ask(path, { signal, send } = {}) {
  const given = send === undefined
    ? { headers: headers({ Accept: "application/json" }), signal }
    : { method: "POST", body: JSON.stringify(send), headers: headers({ "Content-Type": "application/json" }), signal };
  const answer = await fetch(path.startsWith("/") ? path : `api/${path}`, given);
  if (!answer.ok) throw await refusal(answer);
  return answer.json();
}

// A file that is asked for, as the browser keeps it.
export async function askFile(path) {
  const answer = await fetch(`api/${path}`, { headers: headers({}) });
  if (!answer.ok) throw await refusal(answer);
  return answer.blob();
}

async function refusal(answer) {
  const isJson = (answer.headers.get("Content-Type") || "").includes("json");
  const told = isJson ? await answer.json() : {};
  if (answer.status === 401) access.dispatchEvent(new Event("needed"));
  const text = answer.status === 401 ? "the scheduler wants to know who asks" : `the scheduler answers ${answer.status}`;
  return new Refused(answer.status, told.error || told.message || text);
}

// Follow the picture of the moment; returns when the stream ends. fetch and not EventSource, which sends no token.
export async function follow(seen, take, signal) {
  const answer = await fetch(`api/events?${new URLSearchParams(seen)}`, { headers: headers({ Accept: "text/event-stream" }), signal });
  if (!answer.ok) throw await refusal(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      if (data) take(JSON.parse(data));
    }
  }
}
