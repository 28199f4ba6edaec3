// What a visit costs, printed: the site's files in bytes (gzipped as a host sends them), the time from nothing to the
// first report and to the first live result of ResNet-18 in Chromium, and the length of each example's structure link.
//   node tests/bench/site.mjs       (web/dist must be built; MONET_CHROMIUM names another browser)
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const top = fileURLToPath(new URL('../..', import.meta.url));
const { chromium } = createRequire(join(top, 'tests/web/'))('@playwright/test');
const dist = join(top, 'web/dist');
const port = 8193;
const site = `http://localhost:${port}/`;
const runs = 5;

const grouped = (n) => Math.round(n).toLocaleString('en-US');
const row = (name, ...values) => console.log(name.padEnd(44) + values.map((v) => String(v).padStart(14)).join(''));
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

function files(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? files(path) : [path];
  });
}

row('file', 'bytes', 'gzipped');
let all = 0;
let packed = 0;
for (const file of files(dist).sort()) {
  const bytes = readFileSync(file);
  const gzipped = gzipSync(bytes, { level: 9 }).length;
  all += bytes.length;
  packed += gzipped;
  row(relative(dist, file), grouped(bytes.length), grouped(gzipped));
}
row('whole site', grouped(all), grouped(packed));

const server = spawn(process.execPath, [join(top, 'web/serve.mjs'), '--port', String(port)], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
await once(server.stdout, 'data');
const browser = await chromium.launch({
  executablePath: process.env.MONET_CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run'],
});
try {
  const shown = [];
  const live = [];
  const warm = [];
  for (let run = 0; run < runs; run++) {
    const context = await browser.newContext(); // nothing cached
    const page = await context.newPage();
    const began = performance.now();
    await page.goto(site);
    await page.getByTestId('headline').waitFor();
    shown.push(performance.now() - began);
    // A changed setting needs the engine: downloaded, compiled, the model fetched and read, analysed, drawn.
    await page.getByLabel('Batch', { exact: true }).fill('2');
    await page.getByTestId('headline').getByText('batch 2 ').waitFor();
    live.push(performance.now() - began);
    const again = performance.now();
    await page.getByLabel('Batch', { exact: true }).fill('3');
    await page.getByTestId('headline').getByText('batch 3 ').waitFor();
    warm.push(performance.now() - again);
    await context.close();
  }
  console.log();
  row(`ResNet-18 in Chromium, median of ${runs}`, 'ms');
  row('cold start to the report made at build time', grouped(median(shown)));
  row('cold start to a live result (0.3 s debounce)', grouped(median(live)));
  row('another batch, warm (0.3 s debounce)', grouped(median(warm)));

  console.log();
  row('structure link', 'characters', 'short names');
  const page = await (await browser.newContext()).newPage();
  await page.goto(site);
  const examples = page.getByLabel('Examples');
  for (const name of await examples
    .locator('option')
    .evaluateAll((all) => all.map((one) => one.value).filter(Boolean))) {
    await page.getByLabel('Batch', { exact: true }).fill('2'); // so that every example is opened, the first one, too
    await examples.selectOption(name);
    await page.getByTestId('headline').getByText(name, { exact: true }).waitFor();
    await page.locator('.progress').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Share' }).click();
    const lengths = [];
    const link = page.getByLabel('Link', { exact: true });
    await page.getByLabel("Include the model's structure").check();
    for (const short of [false, true]) {
      if (short) await page.getByLabel('Shorten names').check();
      const before = lengths.at(-1);
      for (;;) {
        const { length } = await link.inputValue();
        if (length > 700 && length !== before) {
          lengths.push(length);
          break;
        }
        await page.waitForTimeout(20);
      }
    }
    row(name, ...lengths.map(grouped));
    await page.keyboard.press('Escape');
  }
} finally {
  await browser.close();
  server.kill();
}
