// Attaches to a browser as in docs/browsers.md: node playwright.mjs ADDRESS SITE
import { chromium } from 'playwright-core';

const [address, site] = process.argv.slice(2);
const browser = await chromium.connectOverCDP(address);
const [context] = browser.contexts();
const page = await context.newPage();
await page.goto(site);
await page.setContent('<title>Form</title><input name="who">');
await page.fill('input', 'Ada');
const picture = await page.screenshot();
const value = await page.inputValue('input');
const refused = await page.goto('file:///etc/passwd').then(
  () => 'opened',
  (error) => error.message,
);
process.stdout.write(JSON.stringify({ value, png: picture.subarray(1, 4).toString(), refused }));
await browser.close();
