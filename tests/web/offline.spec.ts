// Once loaded the page needs no network, and the service worker adds the policy that a bare host does not send.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { type Page } from "@playwright/test";
import { policy } from "../../web/policy.mjs";
import { bare, headed } from "./addresses";
import { example, expect, open, root, settled, test } from "./site";

const controlled = (page: Page) =>
  page.evaluate(async () => {
    await navigator.serviceWorker.ready;
    while (!navigator.serviceWorker.controller) await new Promise((resolve) => setTimeout(resolve, 20));
  });

test("reloads and analyses with the server gone", async ({ browser }) => {
  const serve = fileURLToPath(new URL("web/serve.mjs", root));
  const server = spawn(process.execPath, [serve, "--port", "8192"], { stdio: ["ignore", "pipe", "inherit"] });
  await once(server.stdout, "data");
  const context = await browser.newContext();
  const page = await context.newPage();
  try {
    await open(page, "http://localhost:8192/");
    await controlled(page);
  } finally {
    server.kill();
    await once(server, "exit");
  }
  await page.reload();
  await expect(page.getByTestId("headline")).toContainText("resnet18");
  await example(page, "lenet5");
  await expect(page.getByTestId("provenance")).toContainText("analysed here");
  await context.close();
});

test("a newer version is offered and taken over", async ({ browser }, info) => {
  const copy = info.outputPath("site");
  cpSync(new URL("web/dist", root), copy, { recursive: true });
  const edit = (name: string, from: RegExp, to: string) => {
    const text = readFileSync(`${copy}/${name}`, "utf8");
    expect(text).toMatch(from);
    writeFileSync(`${copy}/${name}`, text.replace(from, to));
  };
  const serve = fileURLToPath(new URL("web/serve.mjs", root));
  const server = spawn(process.execPath, [serve, "--port", "8192", "--root", copy], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(server.stdout, "data");
  const context = await browser.newContext();
  const page = await context.newPage();
  await open(page, "http://localhost:8192/");
  await controlled(page);
  edit("index.html", /<title>[^<]*/, "<title>The next version");
  edit("sw.js", /const version = "\w+"/, 'const version = "next"');
  await page.reload();
  await expect(page).not.toHaveTitle("The next version"); // whole versions only
  await page.getByRole("button", { name: "A new version is ready: reload" }).click();
  await expect(page).toHaveTitle("The next version");
  await expect(page.getByTestId("headline")).toContainText("resnet18");
  await context.close();
  server.kill();
});

// A server of another origin that counts what reaches it.
async function foreign() {
  let hits = 0;
  const server = createServer((_, response) => {
    hits++;
    response.writeHead(200, { "Access-Control-Allow-Origin": "*" }).end("reached");
  });
  server.listen(0, "localhost");
  await once(server, "listening");
  const address = `http://localhost:${(server.address() as AddressInfo).port}/`;
  return { address, hits: () => hits, close: () => server.close() };
}

const reach = (address: string) =>
  fetch(address).then(
    () => "reached",
    () => "blocked",
  );

for (const [kind, address] of [
  ["with the policy as a header", headed],
  ["with the policy in <meta> only, from the second load on", bare],
] as const) {
  test(`nothing of another origin can be reached, by workers either, ${kind}`, async ({ browser }) => {
    const other = await foreign();
    const context = await browser.newContext(); // not watched: its refusals are what is wanted
    const page = await context.newPage();
    await open(page, address);
    if (address === bare) {
      await controlled(page);
      await page.reload();
      await expect(page.getByTestId("headline")).toContainText("resnet18");
    }
    await example(page, "lenet5"); // so that the worker is there
    expect(await page.evaluate(reach, other.address)).toBe("blocked");
    expect(await page.workers()[0]!.evaluate(reach, other.address)).toBe("blocked");
    expect(other.hits()).toBe(0);
    await context.close();
    other.close();
  });
}

test("the same policy as header, in <meta>, in _headers and from the service worker", async ({ page }) => {
  const answer = await page.request.get(headed);
  expect(answer.headers()["content-security-policy"]).toBe(policy);
  expect((await page.request.get(bare)).headers()["content-security-policy"]).toBeUndefined();
  expect(await (await page.request.get(`${headed}_headers`)).text()).toContain(`Content-Security-Policy: ${policy}`);
  await open(page, bare);
  expect(await page.locator("meta[http-equiv=Content-Security-Policy]").getAttribute("content")).toBe(policy);
  await controlled(page);
  expect(await page.evaluate(async () => (await fetch("./theme.js")).headers.get("Content-Security-Policy"))).toBe(
    policy,
  );
});

test("works with the policy in <meta> only", async ({ page, seen }) => {
  await open(page, bare);
  await example(page, "resnet18_cifar");
  await page.getByLabel("Batch", { exact: true }).fill("2");
  await expect(page.getByTestId("headline")).toContainText("batch 2");
  await settled(page);
  await page.getByRole("button", { name: /theme/ }).click();
  expect(seen.requests).toBeGreaterThan(5);
});

test("every address is relative: the site works in a folder of a host", async ({ page, context }) => {
  // The same files under /some/folder/, as a project page has them.
  await context.route(`${headed}some/folder/**`, async (route) => {
    const response = await route.fetch({ url: route.request().url().replace("some/folder/", "") });
    await route.fulfill({ response });
  });
  await open(page, "some/folder/");
  await example(page, "lenet5");
  // What is still being fetched must not meet a closed context.
  await page.waitForLoadState("networkidle");
  await context.unrouteAll({ behavior: "wait" });
});
