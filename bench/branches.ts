import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { plainClone, writeHistory } from '../test/support/gitRepository.ts';
import { startGitServer } from '../test/support/gitServer.ts';
import { startAtrium } from './support/atrium.ts';
import { quantile, timed } from './support/times.ts';

/**
 * Compares a branch through the API, which is saved before the answer, with `git branch` by hand in a clone of the same
 * repository. Compares clones too, until they can be used: `npx node bench/branches.ts`. Both take turns in one run.
 * `BENCH_ROUNDS` is the number of rounds, 20 by default.
 */
const rounds = Number(process.env.BENCH_ROUNDS ?? 20);
const folder = mkdtempSync(join(tmpdir(), 'atrium-bench-branches-'));
const server = await startGitServer(folder, 'localhost');
writeHistory(server.create('project.git'), { commits: 200, filesEach: 5, weight: 20_000 });
const url = server.url('project.git');
const atrium = await startAtrium({
  ATRIUM_GIT_CA_FILE: server.caFile,
  ATRIUM_EGRESS_ALLOW_INTERNAL: `localhost:${server.port}`,
  ATRIUM_RATE_LIMIT_PER_MINUTE: '0',
});
const { call } = atrium;

function report(what: string, byHand: number[], byApi: number[]): void {
  const [hand, api] = [quantile(byHand, 0.5), quantile(byApi, 0.5)];
  const slowest = quantile(byApi, 0.95);
  process.stdout.write(
    `${what}: ${hand.toFixed(0)} ms by hand, ${api.toFixed(0)} ms through the API, ${slowest.toFixed(0)} ms p95 (× ${(api / hand).toFixed(1)})\n`,
  );
}

try {
  const { defaultSpaceId } = await call<{ defaultSpaceId: string }>('GET', '/api/me');
  const space = `/api/spaces/${defaultSpaceId}`;
  let itemId = '';
  const clones: [number[], number[]] = [[], []];
  for (let round = 0; round < Math.min(rounds, 5); round += 1) {
    clones[0].push(await timed(() => plainClone(url, join(folder, `hand${round}.git`), server.caFile)));
    clones[1].push(
      await timed(async () => {
        itemId = (await call<{ id: string }>('POST', `${space}/git/clone`, { url, name: `project${round}` })).id;
        for (let status = ''; status !== 'ready'; await pause(10)) {
          ({ status } = await call<{ status: string }>('GET', `${space}/git/${itemId}`));
          if (status === 'failed') throw new Error('The clone failed.');
        }
      }),
    );
  }
  report('clone', ...clones);

  await call('POST', `${space}/git/${itemId}/checkout`, {});
  const branches: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    const name = `feature/${round}`;
    branches[0].push(await timed(() => void execFileSync('git', ['branch', name], { cwd: join(folder, 'hand0.git') })));
    branches[1].push(await timed(() => call('POST', `${space}/git/${itemId}/branch`, { name })));
  }
  report('branch', ...branches);
} finally {
  await atrium.stop();
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
}
