// Serves web/dist on localhost, as any static host would, with the policy as a header.
//   node serve.mjs [--port 8080] [--root dist] [--no-header]
// --no-header leaves the page to its <meta> policy, as on a host without headers.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { policy } from "./policy.mjs";

const types = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".mjs": "text/javascript; charset=utf-8",
  ".onnx": "application/octet-stream",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

function argument(name, otherwise) {
  const at = process.argv.indexOf(name);
  return at < 0 ? otherwise : process.argv[at + 1];
}

const root = normalize(argument("--root", fileURLToPath(new URL("dist", import.meta.url))));
const port = Number(argument("--port", "8080"));
const header = !process.argv.includes("--no-header");

const server = createServer(async (request, response) => {
  const headers = { "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff" };
  if (header) headers["Content-Security-Policy"] = policy;
  const refuse = (status, text) => {
    response.writeHead(status, { ...headers, "Content-Type": "text/plain; charset=utf-8" }).end(text + "\n");
  };
  if (request.method !== "GET" && request.method !== "HEAD") return refuse(405, "only GET and HEAD");
  let path;
  try {
    path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
  } catch {
    return refuse(400, "bad address");
  }
  const file = normalize(join(root, path.endsWith("/") ? path + "index.html" : path));
  if (!file.startsWith(root + sep)) return refuse(404, "not found");
  const found = await stat(file).catch(() => null);
  if (!found?.isFile()) return refuse(404, "not found");
  headers["Content-Type"] = types[extname(file)] ?? "application/octet-stream";
  headers["Content-Length"] = found.size;
  response.writeHead(200, headers);
  if (request.method === "HEAD") return response.end();
  createReadStream(file)
    .on("error", () => response.destroy())
    .pipe(response);
});
server.on("error", (error) => {
  console.error(`cannot serve on port ${port}: ${error.message}`);
  process.exit(1);
});
server.listen(port, "localhost", () => console.log(`http://localhost:${port}/`));
