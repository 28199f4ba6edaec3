// The site's Content-Security-Policy, said once. The build writes it into the page's <meta>, `_headers` and the service
// worker; serve.mjs sends it as a header. Nothing from another origin may be loaded or contacted, by workers included
// (a <meta> policy alone does not bind workers); 'wasm-unsafe-eval' compiles the engine.
export const policy = [
  "default-src 'self'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
].join("; ");
