// Installing the page as an app. Its manifest is part of index.html, so that nothing has to be fetched for it once the page may
// not fetch any more; only where the app starts has to be added, since it depends on where the site is.

/** Complete the manifest. */
export function completeManifest() {
  const link = document.querySelector("link[rel=manifest]");
  const [kind, content] = [link.href.slice(0, link.href.indexOf(",") + 1), link.href.slice(link.href.indexOf(",") + 1)];
  const folder = location.origin + location.pathname.replace(/[^/]*$/, ""); // without index.html or what follows "#"
  link.href = kind + encodeURIComponent(JSON.stringify({ ...JSON.parse(decodeURIComponent(content)), id: folder, start_url: folder, scope: folder }));
}
