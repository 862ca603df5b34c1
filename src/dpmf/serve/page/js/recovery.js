// Recovers when a cached index.html names files that the host no longer has: loading the page again revalidates
// index.html. It acts once, and only while the page is loading. The one script whose name does not change with its
// content, so it depends on nothing else: an old copy of it must work with a new page, and a new copy with an old one.

addEventListener("error", ({ target }) => {
  if (!(target instanceof HTMLScriptElement || target instanceof HTMLLinkElement)) return;
  if (document.body && document.body.dataset.state !== "loading") return;
  if (performance.getEntriesByType("navigation")[0]?.type !== "reload") location.reload();
  else if (document.readyState === "loading") addEventListener("DOMContentLoaded", showFailure);
  else showFailure();
}, true);

function showFailure() {
  document.getElementById("failure-title").textContent = "The page is incomplete";
  document.getElementById("failure-words").textContent = "Some of its files could not be fetched. " +
    "Check the connection, and try again. Your ratings, if you gave any, are still in this browser.";
  document.getElementById("retry").addEventListener("click", () => location.reload());
  document.body.dataset.state = "failed";
}
