import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RepositoryRef } from '../../../integrations/git/types.ts';
import { buildMirrors, type MirrorsWorld } from '../../builders/mirrors.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { gitIn, gitWith, writeHistory } from '../../support/gitRepository.ts';
import { waitFor } from '../../support/waitFor.ts';

/** Clones that are cut in the middle, and how many bytes are sent again. */
let world: MirrorsWorld;
beforeAll(async () => {
  world = await buildMirrors();
  writeHistory(world.server.create('tip.git'), { commits: 2, filesEach: 100, weight: 6_000_000, keepsFiles: false });
  writeHistory(world.server.create('history.git'), { commits: 300, filesEach: 4, weight: 32_000, keepsFiles: true });
  // Will be cut within its second file, which is too large to be read in one piece.
  const large = { commits: 1, filesEach: 2, weight: 24_000_000, keepsFiles: false };
  writeHistory(world.server.create('large.git'), large);
  writeText(world.server.create('text.git'));
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.server.reset());

/** Writes text files that change a little with each commit, so that their pack has deltas. */
function writeText(bare: string): void {
  const parts: string[] = [];
  const files = Array.from({ length: 40 }, () => Array.from({ length: 400 }, () => randomBytes(24).toString('base64')));
  for (let commit = 0; commit < 300; commit += 1) {
    parts.push(`commit refs/heads/main\ncommitter Ada <ada@example.com> ${1_700_000_000 + commit} +0000\ndata 1\nx\n`);
    for (let change = 0; change < 6; change += 1) {
      const index = (commit * 7 + change * 5) % files.length;
      const lines = files[index] ?? [];
      lines[(commit * 31 + change) % lines.length] = randomBytes(200).toString('base64');
      const text = lines.join('\n');
      parts.push(`M 100644 inline d${index % 8}/f${index}.txt\ndata ${text.length}\n${text}\n`);
    }
    parts.push('\n');
  }
  gitWith({ cwd: bare, input: parts.join('') }, 'fast-import', '--quiet', '--force');
  gitIn(bare, 'repack', '-a', '-d', '-q', '-f');
}

const namesIn = (folder: string) => (existsSync(folder) ? readdirSync(folder) : []);
const mirrorGit = (ref: RepositoryRef, ...args: string[]) =>
  gitIn(world.folderOf(ref), `--git-dir=${join(world.folderOf(ref), 'mirror.git')}`, ...args);

async function sentInAll(name: string): Promise<number> {
  world.server.reset();
  await world.mirrors.clone(world.ref(), { url: world.server.url(name) }, world.hooks());
  return world.server.sent;
}

/** Expects the same objects as in an ordinary clone. */
function expectComplete(ref: RepositoryRef, name: string): void {
  const objects = (list: string) => list.split('\n').toSorted();
  const theirs = gitIn(join(world.server.root, name), 'rev-list', '--all', '--objects', '--no-object-names');
  expect(objects(mirrorGit(ref, 'rev-list', '--all', '--objects', '--no-object-names'))).toEqual(objects(theirs));
  expect(mirrorGit(ref, 'fsck', '--strict', '--no-dangling')).toBe('');
  expect(mirrorGit(ref, 'config', '--list', '--local')).not.toContain('promisor');
  const packs = readdirSync(join(world.folderOf(ref), 'mirror.git', 'objects', 'pack'));
  expect(packs.filter((file) => /tmp_|promisor|keep/.test(file))).toEqual([]);
}

test.each([
  ['tip.git', 0.05],
  ['history.git', 0.05],
  ['text.git', 0.25],
])('a clone of %s that is cut half-way continues from there', async (name, mostAgain) => {
  const whole = await sentInAll(name);
  world.server.reset();
  world.server.cutAfter = Math.floor(whole / 2);
  const ref = world.ref();
  const source = { url: world.server.url(name) };
  await expect(world.mirrors.clone(ref, source, world.hooks())).rejects.toMatchObject({ code: 'GIT_REMOTE_FAILED' });
  const first = world.server.sent;
  expect(first / whole).toBeGreaterThan(0.45);
  world.server.cutAfter = undefined;
  let kept = 0;
  const hooks = world.hooks({
    onProgress({ keptObjects }) {
      kept = keptObjects;
    },
  });
  await world.mirrors.clone(ref, source, hooks);
  expect(kept).toBeGreaterThan(20);
  expect((world.server.sent - whole) / whole).toBeLessThan(mostAgain);
  expectComplete(ref, name);
});

test('a clone that is cut within a large file continues after the file before it', async () => {
  const whole = await sentInAll('large.git');
  world.server.reset();
  world.server.cutAfter = Math.floor(whole * 0.9);
  const ref = world.ref();
  const source = { url: world.server.url('large.git') };
  await expect(world.mirrors.clone(ref, source, world.hooks())).rejects.toMatchObject({ code: 'GIT_REMOTE_FAILED' });
  const first = world.server.sent;
  world.server.cutAfter = undefined;
  await world.mirrors.clone(ref, source, world.hooks());
  expect((world.server.sent - first) / whole).toBeLessThan(0.6);
  expectComplete(ref, 'large.git');
});

test('a clone that is cut again and again completes without starting again', async () => {
  const whole = await sentInAll('history.git');
  world.server.reset();
  world.server.cutAfter = Math.floor(whole / 4);
  const ref = world.ref();
  const source = { url: world.server.url('history.git') };
  let attempts = 0;
  for (let isDone = false; !isDone; attempts += 1) {
    expect(attempts).toBeLessThan(9);
    isDone = await world.mirrors.clone(ref, source, world.hooks()).then(
      () => true,
      () => false,
    );
  }
  expect(attempts).toBeGreaterThan(3);
  expect(world.server.sent / whole).toBeLessThan(1.3);
  world.server.cutAfter = undefined;
  expectComplete(ref, 'history.git');
});

test('a shallow and a partial clone continue, and stay shallow and partial', async () => {
  for (const [kind, name] of [
    [{ depth: 1 }, 'tip.git'],
    [{ filter: 'blob:none' as const }, 'history.git'],
  ] as const) {
    const source = { url: world.server.url(name), ...kind };
    world.server.reset();
    const plain = await world.mirrors.clone(world.ref(), source, world.hooks());
    const whole = world.server.sent;
    world.server.reset();
    world.server.cutAfter = Math.floor(whole / 3);
    const ref = world.ref();
    await expect(world.mirrors.clone(ref, source, world.hooks())).rejects.toMatchObject({ code: 'GIT_REMOTE_FAILED' });
    world.server.cutAfter = undefined;
    const again = await world.mirrors.clone(ref, source, world.hooks());
    expect(again.manifest).toEqual(plain.manifest);
  }
});

test('a clone that cannot continue from the kept objects starts again', async () => {
  const whole = await sentInAll('tip.git');
  world.server.reset();
  world.server.cutAfter = Math.floor(whole / 2);
  const ref = world.ref();
  const source = { url: world.server.url('tip.git') };
  await expect(world.mirrors.clone(ref, source, world.hooks())).rejects.toMatchObject({ code: 'GIT_REMOTE_FAILED' });
  world.server.cutAfter = undefined;
  // A ref to a commit that does not exist.
  writeFileSync(join(world.folderOf(ref), 'partial.git', 'refs', 'heads', 'lost'), `${'d'.repeat(40)}\n`);
  await world.mirrors.clone(ref, source, world.hooks());
  expectComplete(ref, 'tip.git');
});

test("after a kill, the next process waits for the killed one's git and continues its clone", async () => {
  const whole = await sentInAll('history.git');
  world.server.reset();
  const ref = world.ref();
  const source = { url: world.server.url('history.git') };
  // The server sends half of the pack, and then nothing.
  world.server.holdAfter = Math.floor(whole / 2);
  const job = join(temporaryFolder(), 'job.json');
  writeFileSync(job, JSON.stringify({ environment: world.environment, ref, source, port: world.server.port }));
  const child = spawn(process.execPath, ['test/support/cloneProcess.ts', job], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const packs = join(world.folderOf(ref), 'partial.git', 'objects', 'pack');
  const arrived = () =>
    Math.max(0, ...namesIn(packs).map((name) => statSync(join(packs, name), { throwIfNoEntry: false })?.size ?? 0));
  await waitFor('the server to send half', () => world.server.isHolding);
  await waitFor('half of the pack', () => arrived() > 0.45 * whole);
  child.kill('SIGKILL');
  await once(child, 'exit');
  world.server.holdAfter = undefined;
  await world.mirrors.clone(ref, source, world.hooks());
  expect((world.server.sent - whole) / whole).toBeLessThan(0.1);
  expectComplete(ref, 'history.git');
});
