// Keeps the site on this machine: every emitted file is cached at install, so the page works offline after its first
// load, and each answer carries the security policy, whatever the host sends. The build fills in the three constants;
// the version hashes all files, so any change is a new worker, which takes over when the page asks for it.
const version = "__VERSION__";
const files = "__FILES__";
const policy = "__POLICY__";
const cacheName = `monet-${version}`;

self.addEventListener("install", (event) => {
  const requests = files.map((file) => new Request(file, { cache: "reload" }));
  event.waitUntil(caches.open(cacheName).then((cache) => cache.addAll(requests)));
});

self.addEventListener("activate", (event) => {
  const clean = async () => {
    for (const name of await caches.keys()) {
      if (name.startsWith("monet-") && name !== cacheName) await caches.delete(name);
    }
    await self.clients.claim();
  };
  event.waitUntil(clean());
});

self.addEventListener("message", (event) => {
  if (event.data === "take-over") self.skipWaiting();
});

async function answer(request) {
  const cache = await caches.open(cacheName);
  const page = request.mode === "navigate" || new URL(request.url).pathname.endsWith("/index.html");
  const stored = await cache.match(page ? "./" : request, { ignoreSearch: true });
  const response = stored ?? (await fetch(request));
  const headers = new Headers(response.headers);
  headers.set("Content-Security-Policy", policy);
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

self.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(self.registration.scope)) event.respondWith(answer(event.request));
});
