// What a page does while it is open: parts marked data-live are replaced when they changed, log lines come as they are
// printed. Everything is there without it. Text of others is only ever set as text.
"use strict";
(() => {
  const MOST_LINES = 500, PAUSE_BETWEEN = 5000;
  const body = document.body;
  const lines = document.getElementById("lines");
  let looking = false, again = false, last = 0;

  async function refresh() {
    if (looking || document.hidden) { again = true; return; }
    const wait = last + PAUSE_BETWEEN - Date.now();
    if (wait > 0) { if (!again) { again = true; setTimeout(() => { again = false; refresh(); }, wait); } return; }
    looking = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.ok) replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch { /* the server is gone or busy: the page stays as it is */ }
    last = Date.now();
    looking = false;
    if (again) { again = false; refresh(); }
  }

  // Who reads or types in a part keeps it until they leave it; what was unfolded stays unfolded. The part itself stays:
  // a screen reader says what is new in a region that it knows.
  function replace(newer) {
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = newer.getElementById(part.id);
      if (!other || part.contains(document.activeElement)) continue;
      for (const fold of part.querySelectorAll("details[open]")) other.querySelector("#" + CSS.escape(fold.id))?.setAttribute("open", "");
      if (part.innerHTML !== other.innerHTML) part.replaceChildren(...other.childNodes);
    }
  }

  function element(tag, text) {
    const made = document.createElement(tag);
    made.textContent = text;
    return made;
  }

  let begun = false, paused = false, waiting = [];
  function show(line) {
    if (paused) { waiting.push(line); if (waiting.length > MOST_LINES) waiting.shift(); return; }
    if (!begun) { begun = true; lines.replaceChildren(); }  // the stream begins with the last lines itself
    const below = lines.scrollTop + lines.clientHeight >= lines.scrollHeight - 40;
    const item = document.createElement("li");
    item.append(element("time", line.time), " ", element("b", line.step), " ", element("span", line.text));
    lines.append(item);
    while (lines.children.length > MOST_LINES) lines.firstChild.remove();
    if (below) lines.scrollTop = lines.scrollHeight;
  }

  function say(text) {
    const said = document.getElementById("said");
    if (said) said.textContent = text;
  }

  function follow(address) {
    const source = new EventSource(address);
    const pause = document.getElementById("pause");
    source.addEventListener("open", () => { begun = false; say("Lines of all steps, as they are printed."); });
    source.addEventListener("line", (event) => show(JSON.parse(event.data)));
    source.addEventListener("changed", refresh);
    source.addEventListener("trouble", (event) => say(JSON.parse(event.data).message));
    source.addEventListener("end", () => { source.close(); if (pause) pause.hidden = true; say("The last lines of all steps."); refresh(); });
    if (!pause) return;
    pause.hidden = false;
    pause.addEventListener("click", () => {
      paused = !paused;
      pause.setAttribute("aria-pressed", String(paused));
      pause.textContent = paused ? "Go on" : "Pause";
      if (!paused) { waiting.forEach(show); waiting = []; }
    });
  }

  if (lines) lines.scrollTop = lines.scrollHeight;
  document.addEventListener("visibilitychange", () => { if (!document.hidden && again) { again = false; refresh(); } });
  if (body.dataset.stream) follow(body.dataset.stream);
  if (body.dataset.refresh) setInterval(refresh, 1000 * Number(body.dataset.refresh));
})();
