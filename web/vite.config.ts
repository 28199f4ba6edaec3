// The build: relative addresses, so that the site works in any folder of any static host; one file per chunk with its
// hash in the name; the policy into <meta> and `_headers`; the service worker with the list and hash of all files.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";
import { policy } from "./policy.mjs";

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const name = join(folder, entry.name);
    return entry.isDirectory() ? filesUnder(name) : [name];
  });
}

function site(): Plugin {
  let out = "";
  return {
    name: "monet-site",
    apply: "build",
    configResolved: (config) => {
      out = config.build.outDir;
    },
    transformIndexHtml: () => [
      { tag: "meta", attrs: { "http-equiv": "Content-Security-Policy", content: policy }, injectTo: "head-prepend" },
    ],
    closeBundle: {
      sequential: true,
      order: "post",
      handler: () => {
        const dist = path(out);
        const hash = createHash("sha256").update(policy);
        const files = filesUnder(dist)
          .map((file) => relative(dist, file).replaceAll("\\", "/"))
          .sort();
        for (const file of files) hash.update(file).update(readFileSync(join(dist, file)));
        const worker = readFileSync(path("service-worker.js"), "utf8");
        hash.update(worker);
        const list = files.map((file) => (file === "index.html" ? "./" : `./${file}`));
        writeFileSync(
          join(dist, "sw.js"),
          worker
            .replace("__VERSION__", hash.digest("hex").slice(0, 16))
            .replace('"__FILES__"', () => JSON.stringify(list))
            .replace('"__POLICY__"', () => JSON.stringify(policy)),
        );
        writeFileSync(
          join(dist, "_headers"),
          `/*\n  Content-Security-Policy: ${policy}\n  X-Content-Type-Options: nosniff\n`,
        );
      },
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [site()],
  resolve: { alias: { "#engine": path(process.env.MONET_WASM ?? "../build/wasm/bin") } },
  server: { fs: { allow: [path("..")] } },
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  worker: { format: "es" },
});
