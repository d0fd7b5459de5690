// Fills the list of versions from ../versions.js, which the newest build writes for all that lie beside each other.
// A version that has no such page shows its first one: the list says which pages each has.
document.addEventListener("DOMContentLoaded", () => {
  const select = document.getElementById("versions");
  if (!select) return;
  const current = select.options[0].text;
  const list = document.createElement("script");
  list.src = select.dataset.root + "versions.js";
  list.onload = () => {
    const versions = window.TRAINPLANE_VERSIONS;
    select.replaceChildren(...Object.keys(versions).map((name) => new Option(name, name, false, name === current)));
    select.addEventListener("change", () => {
      const page = select.dataset.page;
      const there = versions[select.value].includes(page) ? page : "index.html";
      window.location.href = select.dataset.root + select.value + "/" + there;
    });
  };
  document.head.append(list);
});
