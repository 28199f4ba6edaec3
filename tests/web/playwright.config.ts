// The page in a browser: the built site (web/dist) behind its own server, with the policy as a header (port 8190) and
// once without, as on a host that sends no headers (port 8191). MONET_CHROMIUM names another browser than Debian's.
import { defineConfig } from "@playwright/test";
import { bare, headed } from "./addresses";

const serve = (address: string, ...more: string[]) => ({
  command: ["node", "../../web/serve.mjs", "--port", new URL(address).port, ...more].join(" "),
  url: address,
  reuseExistingServer: false,
});

export default defineConfig({
  testMatch: "*.spec.ts",
  workers: 1,
  timeout: 120_000, // a machine of two cores may be busy with other things
  expect: { timeout: 20_000 },
  forbidOnly: true,
  reporter: [["list"]],
  outputDir: "../../build/web-tests",
  use: {
    baseURL: headed,
    viewport: { width: 1280, height: 800 },
    launchOptions: {
      executablePath: process.env.MONET_CHROMIUM ?? "/usr/bin/chromium",
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
      ],
    },
  },
  webServer: [serve(headed), serve(bare, "--no-header")],
});
