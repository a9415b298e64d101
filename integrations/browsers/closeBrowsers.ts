import type { HostClient } from '../computers/hostClient.ts';
import { Browser } from './browser.ts';
import { startedBy } from './chromium.ts';

/**
 * Closes the browsers of a computer that is about to stop: a Chromium that is just asked to end by a signal does so
 * without writing down its newest cookies.
 */
export async function closeBrowsers(client: HostClient, signal: AbortSignal): Promise<void> {
  const running = (await client.own.listProcesses()).filter(({ state }) => state === 'running');
  const browsers = running.map(startedBy).filter((spec) => spec !== undefined);
  await Promise.all(browsers.map((spec) => new Browser(client, spec).close(signal)));
}
