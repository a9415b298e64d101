import { lookUntil } from '../base/async.ts';
import { startAtrium } from './support/atrium.ts';
import { byHand } from './support/computerReferences.ts';
import { quantile, quantiles } from './support/times.ts';

/**
 * Measures the time from a delivery to the start of its process, and the runs per second: `npx node bench/runs.ts`. A
 * sandbox made by hand is measured in between, so that other load on the machine affects both. `RUNS` (one after the
 * other) and `AT_ONCE` (runs sent by 20 clients) make it smaller.
 */
const size = (name: string, usual: number) => Number(process.env[name] ?? usual);
const runs = size('RUNS', 50);
const atOnce = size('AT_ONCE', 200);
const clients = 20;
const out = (line: string) => process.stdout.write(`${line}\n`);

interface Run {
  status: string;
  output: string | null;
  endedAt: string | null;
}

const atrium = await startAtrium({
  ATRIUM_LOG_LEVEL: 'warn',
  ATRIUM_APP_DELIVERIES_PER_MINUTE: '0',
  ATRIUM_RATE_LIMIT_PER_MINUTE: '0',
});
try {
  const { call } = atrium;
  const spaceId = (await call<{ data: { id: string }[] }>('GET', '/api/spaces')).data[0]?.id;
  const space = `/api/spaces/${spaceId}`;
  const { id } = await call<{ id: string }>('POST', `${space}/drive/folders`, { path: '/bench' });
  const receive = { name: 'receive', kind: 'webhook', command: 'date +%s%N', auth: 'none', concurrency: 20 };
  const file = new FormData();
  file.append('path', '/bench/atrium.yaml');
  file.append('file', new Blob([JSON.stringify({ name: 'Bench', components: [receive] })]), 'atrium.yaml');
  await call('POST', `${space}/drive/upload`, file);
  await call('POST', `${space}/apps`, { itemId: id });

  const deliver = async () => (await call<{ runId: string }>('POST', `/api/webhooks/${spaceId}/${id}`, {})).runId;
  const ended = (runId: string) =>
    lookUntil(
      () => call<Run>('GET', `/api/runs/${runId}`),
      ({ status }) => status !== 'queued' && status !== 'running',
      { firstMs: 20 },
    );
  const startOf = ({ status, output }: Run) => {
    if (status !== 'succeeded') throw new Error(`A run has ${status}: ${output}`);
    return Number(output) / 1_000_000;
  };

  await ended(await deliver());
  const answers: number[] = [];
  const starts: number[] = [];
  const bare: number[] = [];
  for (let n = 0; n < runs; n++) {
    bare.push(await byHand());
    const begin = Date.now();
    const runId = await deliver();
    answers.push(Date.now() - begin);
    starts.push(startOf(await ended(runId)) - begin);
  }
  const ratios = [0.5, 0.95].map((q) => `× ${(quantile(starts, q) / quantile(bare, q)).toFixed(1)}`).join(' and ');
  out(`delivery to its answer: ${quantiles(answers)}`);
  out(`delivery to the start of its process: ${quantiles(starts)}; a sandbox by hand ${quantiles(bare)}: ${ratios}`);

  const begin = performance.now();
  let left = atOnce;
  const ids: string[] = [];
  const client = async () => {
    while (left-- > 0) ids.push(await deliver());
  };
  await Promise.all(Array.from({ length: clients }, client));
  const taken = (performance.now() - begin) / 1_000;
  for (const runId of ids) startOf(await ended(runId));
  const seconds = (performance.now() - begin) / 1_000;
  out(
    `${atOnce} deliveries of ${clients} clients: ${(atOnce / taken).toFixed(0)} taken a second, ${(atOnce / seconds).toFixed(1)} runs a second to their ends`,
  );
} finally {
  await atrium.stop();
}
