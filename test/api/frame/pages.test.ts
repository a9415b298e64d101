import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { chromium } from 'playwright-core';
import { pageFiles, sendPage } from '../../../api/frame/pages/page.ts';
import { joinedPage } from '../../../api/identity/signInPages.ts';
import type { Config } from '../../../config/index.ts';
import { getChromium } from '../../support/chromium.ts';

declare const document: { documentElement: { scrollWidth: number }; querySelector(name: string): Element };
declare const innerWidth: number;
interface Element {
  scrollWidth: number;
  clientWidth: number;
}

test('A long command on a page stays within a narrow screen', async () => {
  const opened = new AsyncDisposableStack();
  await using _ = opened;
  const code = { code: 'K7QD-9XMR-2TWH-PZ4C' } as Parameters<typeof joinedPage>[0]['code'];
  const page = joinedPage({
    spaceName: 'Research',
    role: 'editor',
    code,
    http: { publicUrl: 'https://atrium.example.org' } as Config['http'],
  });
  const app = express().use('/auth/assets', pageFiles());
  const server = app.get('/', (_req, res) => sendPage(res, page)).listen(0, '127.0.0.1');
  opened.defer(() => void server.close());
  await once(server, 'listening');
  // As root, Chromium refuses to use its own sandbox. It only opens pages of this test.
  const browser = await chromium.launch({ executablePath: await getChromium(), chromiumSandbox: false });
  opened.defer(() => browser.close());
  const screen = await browser.newPage({ viewport: { width: 360, height: 800 } });
  await screen.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const widths = await screen.evaluate(() => {
    const { scrollWidth, clientWidth } = document.querySelector('pre');
    return { page: document.documentElement.scrollWidth - innerWidth, command: scrollWidth - clientWidth };
  });
  expect(widths).toEqual({ page: 0, command: 0 });
});
