// node scripts/screenshot.mjs FILE.png: the page of web/dist as a first visitor sees it, for the README.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const top = fileURLToPath(new URL('..', import.meta.url));
const { chromium } = createRequire(join(top, 'tests/web/'))('@playwright/test');
const server = spawn(process.execPath, [join(top, 'web/serve.mjs'), '--port', '8194'], { stdio: ['ignore', 'pipe', 'inherit'] });
await once(server.stdout, 'data');
const browser = await chromium.launch({
  executablePath: process.env.MONET_CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run'],
});
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: 'light' });
  await page.goto('http://localhost:8194/');
  await page.getByTestId('headline').waitFor();
  await page.screenshot({ path: process.argv[2] });
} finally {
  await browser.close();
  server.kill();
}
