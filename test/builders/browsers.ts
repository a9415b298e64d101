import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Browser } from '../../integrations/browsers/browser.ts';
import { writeBrowserPolicies } from '../../integrations/browsers/policies.ts';
import type { BrowserSpec } from '../../integrations/browsers/types.ts';
import type { HostOptions } from '../../integrations/computers/host/host.ts';
import type { HostClient } from '../../integrations/computers/hostClient.ts';
import { getBrowserPrograms } from '../support/browserPrograms.ts';
import { nodeInside } from '../support/computerPrograms.ts';
import { buildHost, hostDir, startComputer, usualLimits } from './host.ts';

const sitePort = 8_000;
const maxTasks = 1_024;
const site = new URL('../support/browserSite.mjs', import.meta.url);
let count = 0;

type Given = [changes?: Partial<BrowserSpec>, options?: ConstructorParameters<typeof Browser>[2]];

/** A computer with room for Chromium and a site on its loopback, shared by the tests of a file. */
export async function buildBrowserComputer({
  authorities = [],
  env = {},
  ...options
}: Partial<HostOptions> & { authorities?: string[]; env?: Record<string, string> } = {}) {
  await getBrowserPrograms();
  const dir = hostDir();
  const policies = await writeBrowserPolicies(join(dir, '.browsers'), authorities);
  const built = await buildHost({ ...options, dir, readOnly: () => policies });
  const limits = { ...usualLimits, cpuMilli: 2_000, memoryMiB: 2_048, diskMiB: 1_024, maxTasks };
  const { client } = await startComputer(built.host, { limits, env });
  await serveSite(client);
  return {
    ...built,
    client,
    maxTasks,
    site: `http://localhost:${sitePort}`,
    browser: (...given: Given) => buildBrowser(client, ...given),
    [Symbol.asyncDispose]: () => built[Symbol.asyncDispose](),
  };
}

/** A browser that is not started yet, with a profile of its own. */
export function buildBrowser(client: HostClient, ...[changes = {}, options]: Given): Browser {
  const id = `bss_test${++count}`;
  const folders = { profileFolder: `profiles/${id}`, downloadsFolder: 'Downloads' };
  return new Browser(client, { id, ...folders, width: 1_280, height: 800, ...changes }, options);
}

async function serveSite(client: HostClient): Promise<void> {
  await client.writeFile('site.mjs', await readFile(site));
  const processId = 'prc_site';
  const command = [nodeInside.to, 'site.mjs', String(sitePort)];
  await client.startProcess({ processId, command });
  for await (const { payload } of client.output(processId, { follow: true })) {
    if (Buffer.from(payload).includes('listening')) return;
  }
  throw new Error('The site has ended.');
}
