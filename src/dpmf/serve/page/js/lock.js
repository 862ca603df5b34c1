// Once everything is loaded, the page gives up the right to load or send anything more, to its own server included.
// Browsers add policies up and never take one back, so this holds until the page is closed.

/** Let the page, and workers that it starts from now on, connect to nothing; scripts can still be loaded. */
export function forbidConnections() {
  enforce("connect-src 'none'; img-src data:");
}

/** Let the page load and send nothing at all any more. */
export function forbidEverything() {
  enforce("default-src 'none'; img-src data:; manifest-src data:; base-uri 'none'; form-action 'none'");
}

/** Let the page connect to these addresses, load nothing any more, and connect to nothing else. */
export function forbidAllBut(addresses) {
  enforce(`default-src 'none'; connect-src ${addresses.join(" ")}; img-src data:; base-uri 'none'; form-action 'none'`);
}

function enforce(content) {
  const policy = document.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = content;
  document.head.append(policy);
}
