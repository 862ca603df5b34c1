// Making elements. Text is always text: nothing from a release is ever read as markup.

/**
 * Return a new element.
 * @param {string} tag such as "button" or "p.quiet"
 * @param {object} properties attributes; `on…` are listeners, true and false set or leave out
 * @param {...(Node|string|null)} children
 */
export function h(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Return a copy of an icon of index.html. */
export function icon(name) {
  return document.getElementById(`icon-${name}`).content.firstElementChild.cloneNode(true);
}

/** Return the element with this id. */
export const $ = (id) => document.getElementById(id);

/** Put nodes into a container in this order without ever moving the one that has the focus, which would lose it. */
export function arrange(container, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...container.children]) if (!wanted.has(child)) child.remove();
  nodes.forEach((node, place) => {
    if (container.children[place] === node) return;
    if (!node.contains(document.activeElement)) {
      container.insertBefore(node, container.children[place] ?? null);
      return;
    }
    while (container.children[place] !== node) container.children[place].remove(); // they come back later
  });
}
