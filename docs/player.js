"use strict";
// Plays a recording of a terminal (asciinema's format, version 2) in every <div class="terminal" data-recording="FILE">.
// It knows what our commands print: lines, returns, "clear to the end of the line", and a few styles.

const STYLES = {"1": "font-weight:bold", "2": "opacity:.6", "31": "color:#e06c75", "32": "color:#98c379", "33": "color:#e5c07b"};

function screenOf(events, until, rows) {
  const lines = [[]];
  let style = "", at = 0;
  for (const [time, , text] of events) {
    if (time > until) break;
    for (const [part] of text.matchAll(/\x1b\[[0-9;]*[A-Za-z]|[\s\S]/g)) {
      const line = lines[lines.length - 1];
      if (part === "\n") { lines.push([]); at = 0; }
      else if (part === "\r") at = 0;
      else if (part === "\x1b[K") line.length = at;
      else if (part.endsWith("m") && part.length > 1) style = STYLES[part.slice(2, -1)] || "";
      else if (part.length === 1) line[at++] = [part, style];
    }
  }
  return lines.slice(-rows);
}

function draw(screen, lines) {
  screen.replaceChildren();
  for (const line of lines) {
    let span = null, last = null;
    for (const [letter, style] of Array.from(line, (cell) => cell || [" ", ""])) {
      if (style !== last) {
        span = screen.appendChild(document.createElement("span"));
        span.style.cssText = last = style;
      }
      span.textContent += letter;
    }
    screen.append("\n");
  }
}

async function play(box) {
  const [head, ...events] = (await (await fetch(box.dataset.recording)).text()).trim().split("\n").map((line) => JSON.parse(line));
  const length = events[events.length - 1][0] + 4;
  const screen = document.createElement("pre"), bar = document.createElement("input"), button = document.createElement("button");
  screen.style.cssText = `height:${head.height * 1.35}em;font-size:.8em;line-height:1.35;overflow:auto;white-space:pre;background:#1b1f27;color:#d7dae0;padding:1em`;
  Object.assign(bar, {type: "range", min: 0, max: length, step: 0.1, value: 0, ariaLabel: "position in the recording"});
  bar.style.cssText = "width:80%;vertical-align:middle";
  box.replaceChildren(screen, button, " ", bar);
  let at = 0, playing = false, last = 0;
  const show = () => {
    draw(screen, screenOf(events, at, head.height));
    bar.value = at;
    button.textContent = playing ? "Pause" : at >= length ? "Again" : "Play";
  };
  const step = (now) => {
    if (!playing) return;
    at = Math.min(at + (now - last) / 1000, length);
    last = now;
    playing = at < length;
    show();
    requestAnimationFrame(step);
  };
  button.onclick = () => {
    playing = !playing;
    at = at >= length ? 0 : at;
    last = performance.now();
    show();
    requestAnimationFrame(step);
  };
  bar.oninput = () => { at = Number(bar.value); show(); };
  at = Number(box.dataset.poster || 0);
  show();
}

for (const box of document.querySelectorAll(".terminal[data-recording]")) play(box);
