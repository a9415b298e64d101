import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../config/index.ts';
import { EgressGuard } from '../integrations/egress/guard.ts';
import { startEgressProxy } from '../integrations/egress/startEgressProxy.ts';
import { createGitMirrors } from '../integrations/git/createGitMirrors.ts';
import { ObjectStore } from '../integrations/storage/objectStore.ts';
import { plainClone, writeHistory } from '../test/support/gitRepository.ts';
import { startGitServer } from '../test/support/gitServer.ts';
import { startStorageAndDatabase } from './support/stack.ts';
import { quantile } from './support/times.ts';

/**
 * Compares a clone by Atrium's git with `git clone` by hand, from one local https server: `npx node bench/git.ts`. Both
 * take turns in one run. Atrium adds the egress proxy, fsck of each object and the count of the tree. Then, measured
 * separately, it saves the bundle to the object store, which a clone by hand does not. `BENCH_ROUNDS` is the number of
 * rounds, 5 by default.
 */
const rounds = Number(process.env.BENCH_ROUNDS ?? 5);
const sizes = [
  { name: 'small.git', commits: 20, filesEach: 3, weight: 10_000 },
  { name: 'large.git', commits: 120, filesEach: 8, weight: 900_000 },
];

const folder = mkdtempSync(join(tmpdir(), 'atrium-bench-git-'));
const stack = await startStorageAndDatabase();
const server = await startGitServer(folder, 'localhost');
const config = loadConfig({
  ...stack.environment,
  ATRIUM_ENV: 'test',
  ATRIUM_TEMPORAL_ADDRESS: '127.0.0.1:1',
  ATRIUM_MASTER_KEY: randomBytes(32).toString('base64'),
  ATRIUM_GIT_DIR: join(folder, 'mirrors'),
  ATRIUM_GIT_CA_FILE: server.caFile,
});
const guard = new EgressGuard({ allowInternal: [`localhost:${server.port}`], resolve: async () => ['127.0.0.1'] });
const proxy = await startEgressProxy({ guard });
const storage = new ObjectStore(config.storage);
const mirrors = createGitMirrors({
  config,
  proxy,
  storage,
  records: {
    current: async () => undefined,
    plan: async () => ({ async [Symbol.asyncDispose]() {} }),
    room: async () => Number.POSITIVE_INFINITY,
    save: async () => true,
  },
  ownerOf: async () => ({ purpose: 'git', policy: { allow: [], deny: [] }, record: async () => undefined }),
});

/** Times until everything has arrived, and until it is saved. */
async function throughAtrium(url: string): Promise<[number, number]> {
  const ref = { spaceId: 'spc_bench', itemId: `itm_${randomBytes(6).toString('hex')}` };
  const begin = performance.now();
  let here = 0;
  await mirrors.clone(
    ref,
    { url },
    {
      signal: AbortSignal.timeout(600_000),
      onProgress({ phase }) {
        if (phase === 'saving') here = performance.now() - begin;
      },
    },
  );
  const all = performance.now() - begin;
  await mirrors.remove(ref, AbortSignal.timeout(600_000));
  return [here, all];
}

async function byHand(url: string): Promise<number> {
  const target = join(folder, `hand-${randomBytes(6).toString('hex')}.git`);
  const begin = performance.now();
  await plainClone(url, target, server.caFile);
  const took = performance.now() - begin;
  rmSync(target, { recursive: true, force: true });
  return took;
}

try {
  for (const { name, ...size } of sizes) {
    writeHistory(server.create(name), size);
    const url = server.url(name);
    const [hand, here, saved]: [number[], number[], number[]] = [[], [], []];
    for (let round = 0; round < rounds; round += 1) {
      hand.push(await byHand(url));
      const [arrived, all] = await throughAtrium(url);
      here.push(arrived);
      saved.push(all);
    }
    const mib = (size.commits * size.weight) / 1_048_576;
    const [byGit, byUs, whole] = [hand, here, saved].map((times) => quantile(times, 0.5)) as [number, number, number];
    process.stdout.write(
      `${mib.toFixed(1)} MiB: ${byGit.toFixed(0)} ms by hand, ${byUs.toFixed(0)} ms through Atrium (× ${(byUs / byGit).toFixed(2)}), ` +
        `${whole.toFixed(0)} ms until it is saved (× ${(whole / byGit).toFixed(2)})\n`,
    );
  }
} finally {
  storage.close();
  await proxy[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  await stack.stop();
  rmSync(folder, { recursive: true, force: true });
}
