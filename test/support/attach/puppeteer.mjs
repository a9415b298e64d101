// Attaches to a browser as in docs/browsers.md: node puppeteer.mjs ADDRESS SITE
import puppeteer from 'puppeteer-core';

const [browserWSEndpoint, site] = process.argv.slice(2);
const browser = await puppeteer.connect({ browserWSEndpoint, defaultViewport: null });
const page = await browser.newPage();
await page.goto(site);
await page.setContent('<title>Form</title><input name="who">');
await page.type('input', 'Grace');
const picture = Buffer.from(await page.screenshot());
const value = await page.$eval('input', (input) => input.value);
const refused = await page.goto('file:///etc/passwd').then(
  () => 'opened',
  (error) => error.message,
);
process.stdout.write(JSON.stringify({ value, png: picture.subarray(1, 4).toString(), refused }));
await browser.disconnect();
