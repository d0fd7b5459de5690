// Measures a page that is open: returns what of its text cannot be read, as {kind, text, detail}. The viewport is as
// tall as the page. Text that was put beyond the left edge on purpose (for screen readers alone) is not looked at.
(() => {
  const found = [];
  const add = (kind, text, detail) => found.push({ kind, text: text.trim().slice(0, 60), detail });
  const wide = document.documentElement.clientWidth;
  const styles = new Map();
  const style = (element) => styles.get(element) ?? styles.set(element, getComputedStyle(element)).get(element);

  // --- colours: composed from all that lies below, as WCAG 2 has it
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  function colour(text) {
    if (!known.has(text)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = text;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(text, [r, g, b, a / 255]);
    }
    return known.get(text);
  }
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
  function luminance([r, g, b]) {
    const part = (value) => { const v = value / 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  }
  function ratio(one, other) {
    const [high, low] = [luminance(one), luminance(other)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  }
  function ancestors(element) {
    const chain = [];
    for (let one = element; one; one = one.parentElement) chain.unshift(one);
    return chain;
  }
  function ground(element) {
    let below = colour(style(document.documentElement).colorScheme.includes("dark") && matchMedia("(prefers-color-scheme: dark)").matches ? "#121212" : "#ffffff");
    for (const one of ancestors(element)) below = over(colour(style(one).backgroundColor), below);
    return below;
  }
  function contrast(element, said, text) {
    const [r, g, b, a] = colour(said.color);
    const opacity = ancestors(element).reduce((all, one) => all * Number(style(one).opacity), 1);
    const below = ground(element);
    const seen = ratio(over([r, g, b, a * opacity], below), below);
    const size = parseFloat(said.fontSize), large = size >= 24 || (size >= 18.66 && Number(said.fontWeight) >= 700);
    const needed = large ? 3 : 4.5;
    if (seen < needed) add("contrast", text, `${seen.toFixed(2)} to 1, and ${needed} are needed`);
  }

  // --- what is visible of a text: its lines, cut by all that scrolls or clips around it
  function lines(node) {
    const range = document.createRange();
    range.selectNodeContents(node);
    const clips = ancestors(node.parentElement).filter((one) => style(one).overflowY !== "visible" && one !== document.body && one !== document.documentElement).map((one) => one.getBoundingClientRect());
    return [...range.getClientRects()].map((one) => clips.reduce((box, clip) => ({
      left: Math.max(box.left, clip.left), right: Math.min(box.right, clip.right),
      top: Math.max(box.top, clip.top), bottom: Math.min(box.bottom, clip.bottom),
    }), one)).filter((one) => one.right - one.left > 1 && one.bottom - one.top > 1);
  }

  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement, text = node.textContent;
    if (!text.trim() || !element.checkVisibility({ visibilityProperty: true }) || ["PROGRESS", "METER"].includes(element.tagName)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const whole = range.getBoundingClientRect();
    if (whole.right <= 0) continue;
    contrast(element, style(element), text);
    if (whole.left < -1 || whole.right > wide + 1) add("cut", text, `from ${whole.left.toFixed()} to ${whole.right.toFixed()} of ${wide} pixels`);
    for (const box of lines(node)) boxes.push({ ...box, left: box.left, right: box.right, top: box.top, bottom: box.bottom, element, text });
  }
  for (const element of document.body.querySelectorAll("*")) {
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    for (const part of ["::before", "::after"]) {
      const said = getComputedStyle(element, part);
      if (!["none", "normal", '""'].includes(said.content) && element.getBoundingClientRect().right > 0) contrast(element, said, said.content);
    }
    const said = style(element), text = element.textContent || element.value || "";
    if (!text.trim() || element instanceof SVGElement || ["PROGRESS", "METER"].includes(element.tagName)) continue;
    const hides = (overflow) => overflow !== "visible";
    if (hides(said.overflowX) && element.scrollWidth > element.clientWidth + 1) add("cut", text, `${element.scrollWidth} pixels wide, of which ${element.clientWidth} show`);
    const scrolls = ["auto", "scroll"].includes(said.overflowY) && element.tabIndex >= 0;
    if (hides(said.overflowY) && !scrolls && element.scrollHeight > element.clientHeight + 1) add("cut", text, `${element.scrollHeight} pixels tall, of which ${element.clientHeight} show`);
  }
  if (document.documentElement.scrollWidth > wide) add("cut", "the page", `${document.documentElement.scrollWidth} pixels wide on a screen of ${wide}`);

  // --- text on text, and text under something else. A line's box is taller than its letters: a fifth is air.
  const inner = boxes.map((box) => { const air = (box.bottom - box.top) / 5; return { ...box, top: box.top + air, bottom: box.bottom - air }; }).sort((a, b) => a.top - b.top);
  inner.forEach((box, at) => {
    for (let next = at + 1; next < inner.length && inner[next].top < box.bottom - 1; next++) {
      const other = inner[next];
      if (other.left < box.right - 1 && box.left < other.right - 1) add("overlap", box.text, `with ${other.text.trim().slice(0, 60)}`);
    }
    const top = document.elementFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);
    if (top && !top.contains(box.element) && !box.element.contains(top)) add("covered", box.text, `by ${top.tagName.toLowerCase()}`);
  });
  return found.slice(0, 50);
})()
