import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chromium } from 'playwright-core';
import { startAtrium } from './support/atrium.ts';
import { pidsOfTree } from './support/processTree.ts';
import { quantile } from './support/times.ts';

/**
 * Compares a browser session with the same Chromium by hand: `npx node bench/browsers.ts`. The API makes a session,
 * opens a page, takes a screenshot and ends the session. playwright-core does the same in between, so that other load
 * on the machine affects both. `SESSIONS` makes it smaller.
 */
const sessions = Number(process.env.SESSIONS ?? 20);
const out = (line: string) => process.stdout.write(`${line}\n`);
const executablePath = '/usr/bin/chromium';
const page = '<!doctype html><title>Bench</title><h1>Bench</h1><p>A page.</p>';

type Steps = Record<'create' | 'navigate' | 'screenshot' | 'release' | 'whole', number>;
const names = ['create', 'navigate', 'screenshot', 'release', 'whole'] as const;

/** The times of four steps, and of the whole. */
async function timed(steps: readonly (() => Promise<unknown>)[]): Promise<Steps> {
  const times: number[] = [];
  const begin = performance.now();
  for (const step of steps) {
    const at = performance.now();
    await step();
    times.push(performance.now() - at);
  }
  const [create = 0, navigate = 0, screenshot = 0, release = 0] = times;
  return { create, navigate, screenshot, release, whole: performance.now() - begin };
}

async function byHand(url: string): Promise<Steps> {
  let browser: Awaited<ReturnType<typeof chromium.launch>> | undefined;
  let tab: Awaited<ReturnType<NonNullable<typeof browser>['newPage']>> | undefined;
  return timed([
    async () => {
      browser = await chromium.launch({ executablePath });
      tab = await browser.newPage({ viewport: { width: 1_280, height: 800 } });
    },
    async () => tab?.goto(url),
    async () => tab?.screenshot(),
    async () => browser?.close(),
  ]);
}

/** The processes' proportional memory (PSS), in MiB. */
function memoryOf(pids: Iterable<number>): number {
  let kibibytes = 0;
  for (const pid of pids) {
    kibibytes += Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
  }
  return kibibytes / 1_024;
}

async function memoryByHand(url: string): Promise<number> {
  const server = await chromium.launchServer({ executablePath });
  try {
    const browser = await chromium.connect(server.wsEndpoint());
    const tab = await browser.newPage({ viewport: { width: 1_280, height: 800 } });
    await tab.goto(url);
    await tab.screenshot();
    return memoryOf(pidsOfTree(server.process().pid ?? 0));
  } finally {
    await server.close();
  }
}

const atrium = await startAtrium({ ATRIUM_LOG_LEVEL: 'warn', ATRIUM_RATE_LIMIT_PER_MINUTE: '0' });
const site = createServer((_request, answer) => answer.setHeader('content-type', 'text/html').end(page));
await new Promise<void>((resolve) => {
  site.listen(0, '127.0.0.1', resolve);
});
try {
  const { send, call } = atrium;
  const { data } = await call<{ data: { id: string }[] }>('GET', '/api/spaces');
  const space = `/api/spaces/${data[0]?.id}`;
  const { computerId } = await call<{ computerId: string }>('GET', `${space}/computers/status`);
  const computer = `${space}/computers/${computerId}`;
  const exec = (command: string) => call<{ stdout: string }>('POST', `${computer}/exec`, { command });
  await exec(`mkdir -p site && printf %s '${page}' > site/index.html`);
  await call('POST', `${computer}/processes`, { command: 'cd site && exec python3 -m http.server 8000' });
  await exec('until curl -sf http://127.0.0.1:8000/ >/dev/null; do sleep 0.1; done');

  const browsers = `${space}/browsers`;
  const byApi = (create: string): Promise<Steps> => {
    let session = '';
    let tab = '';
    return timed([
      async () => {
        session = `${browsers}/sessions/${(await call<{ id: string }>('POST', create, {})).id}`;
        tab = (await call<{ data: { id: string }[] }>('GET', `${session}/tabs`)).data[0]?.id ?? '';
      },
      () => call('PATCH', `${session}/tabs/${tab}`, { url: 'http://127.0.0.1:8000/' }),
      async () => (await send('GET', `${session}/tabs/${tab}/screenshot`)).arrayBuffer(),
      () => send('DELETE', session),
    ]);
  };

  const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
  const { id: profileId } = await call<{ id: string }>('POST', `${browsers}/profiles`, { name: 'Bench' });
  const ways = {
    'without a profile': () => byApi(`${browsers}/sessions`),
    'with a profile, which is saved': () => byApi(`${browsers}/profiles/${profileId}/sessions`),
  };
  for (const run of [...Object.values(ways), () => byHand(url)]) await run();
  for (const [name, run] of Object.entries(ways)) {
    const ours: Steps[] = [];
    const bare: Steps[] = [];
    for (let n = 0; n < sessions; n++) {
      bare.push(await byHand(url));
      ours.push(await run());
    }
    out(`a session ${name}:`);
    for (const step of names) {
      const at = (share: number) =>
        [ours, bare].map((all) =>
          quantile(
            all.map((one) => one[step]),
            share,
          ),
        ) as [number, number];
      const [[mine, theirs], [mineSlow, theirsSlow]] = [at(0.5), at(0.95)];
      const line = `${mine.toFixed(0)} ms p50, ${mineSlow.toFixed(0)} ms p95; by hand ${theirs.toFixed(0)} and ${theirsSlow.toFixed(0)} ms`;
      out(`  ${step}: ${line}: × ${(mine / theirs).toFixed(2)} and × ${(mineSlow / theirsSlow).toFixed(2)}`);
    }
  }

  const { id } = await call<{ id: string }>('POST', `${browsers}/sessions`, {});
  const { id: tab } = await call<{ id: string }>('POST', `${browsers}/sessions/${id}/tabs`, {
    url: 'http://127.0.0.1:8000/',
  });
  await (await send('GET', `${browsers}/sessions/${id}/tabs/${tab}/screenshot`)).arrayBuffer();
  const sum =
    'cat $(pgrep -f chromium | sed "s|.*|/proc/&/smaps_rollup|") 2>/dev/null | awk "/^Pss:/ { sum += \\$2 } END { print sum }"';
  const ours = Number((await exec(sum)).stdout) / 1_024;
  const bare = await memoryByHand(url);
  out(`memory of a session: ${ours.toFixed(0)} MiB; by hand ${bare.toFixed(0)} MiB: × ${(ours / bare).toFixed(2)}`);
} finally {
  site.close();
  await atrium.stop();
}
