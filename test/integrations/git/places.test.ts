import { tryLockFolder } from '../../../integrations/git/process/lock.ts';
import type { GitMirrors, RepositoryRef } from '../../../integrations/git/types.ts';
import { buildMirrors, type MirrorsWorld } from '../../builders/mirrors.ts';
import { commitFiles } from '../../support/gitRepository.ts';
import { inFull } from '../../support/inFull.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('git');

/** The slots for git operations in one process. */
let world: MirrorsWorld;
beforeEach(async () => {
  world = await buildMirrors();
});
afterEach(() => world[Symbol.asyncDispose]());

const { signal } = new AbortController();

async function cloned(): Promise<RepositoryRef> {
  const ref = world.ref();
  const name = `${ref.itemId}.git`;
  commitFiles(world.server.create(name), { a: 'a' });
  await world.mirrors.clone(ref, { url: world.server.url(name) }, world.hooks());
  return ref;
}

async function read(mirrors: GitMirrors, ref: RepositoryRef, signalOfIt = signal): Promise<void> {
  const { bundle } = await mirrors.bundleFor(ref, [], signalOfIt);
  await bundle?.[Symbol.asyncDispose]();
}

/** Holds each operation that has got a slot, until `letGo`. */
function holdAll() {
  const held: { itemId: string; letGo: () => void }[] = [];
  world.records.beforeCurrent = ({ itemId }) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    held.push({ itemId, letGo: resolve });
    return promise;
  };
  return held;
}

test('waiting operations get slots in the order of their arrival, and hold no lock before', async () => {
  const refs = [await cloned(), await cloned(), await cloned()];
  const mirrors = world.another({ ATRIUM_GIT_SLOTS: '1' });
  const held = holdAll();
  const reading = refs.map((ref) => read(mirrors, ref));
  for (const [index, ref] of refs.entries()) {
    await waitFor('an operation with a slot', () => held.length > 0);
    for (const waiting of refs.slice(index + 1)) {
      await using lock = await tryLockFolder(`${world.folderOf(waiting)}.lock`, signal);
      expect(lock).toBeDefined();
    }
    expect(held.map(({ itemId }) => itemId)).toEqual([ref.itemId]);
    held.shift()?.letGo();
  }
  await Promise.all(reading);
});

test('ATRIUM_GIT_SLOTS sets the number of slots', async () => {
  const refs = [await cloned(), await cloned(), await cloned()];
  const mirrors = world.another({ ATRIUM_GIT_SLOTS: '2' });
  const held = holdAll();
  const reading = refs.map((ref) => read(mirrors, ref));
  await waitFor('two operations with slots', () => held.length === 2);
  await using lock = await tryLockFolder(`${world.folderOf(refs[2] ?? world.ref())}.lock`, signal);
  expect([lock !== undefined, held.length]).toEqual([true, 2]);
  await lock?.[Symbol.asyncDispose]();
  world.records.beforeCurrent = async () => undefined;
  for (const { letGo } of held) letGo();
  await Promise.all(reading);
});

full.test('an operation that is aborted or times out while waiting does not use a slot', async () => {
  const refs = [await cloned(), await cloned(), await cloned()];
  const [first, second, third] = refs as [RepositoryRef, RepositoryRef, RepositoryRef];
  const mirrors = world.another({ ATRIUM_GIT_SLOTS: '1' }, { timeoutMs: 5_000 });
  const held = holdAll();
  const reading = read(mirrors, first).catch((error: unknown) => error);
  const stop = new AbortController();
  const calledOff = read(mirrors, second, stop.signal);
  stop.abort(new Error('not wanted any more'));
  await expect(calledOff).rejects.toThrow('not wanted any more');
  await expect(read(mirrors, second, stop.signal)).rejects.toThrow('not wanted any more');
  await expect(read(mirrors, third)).rejects.toMatchObject({ code: 'GIT_REMOTE_TOO_SLOW' });
  expect(held.map(({ itemId }) => itemId)).toEqual([first.itemId]);
  world.records.beforeCurrent = async () => undefined;
  held[0]?.letGo();
  expect(await reading).toMatchObject({ code: 'GIT_REMOTE_TOO_SLOW' });
  await read(mirrors, third);
});

test('clones from silent servers do not block operations on saved mirrors', async () => {
  const saved = await cloned();
  const mirrors = world.another({ ATRIUM_GIT_SLOTS: '1', ATRIUM_GIT_SILENCE_SECONDS: '3600' });
  world.server.reset();
  world.server.interfere = () => true;
  const stop = new AbortController();
  const clones = [world.ref(), world.ref()].map((ref) =>
    mirrors.clone(ref, { url: world.server.url(`${ref.itemId}.git`) }, world.hooks({ signal: stop.signal })),
  );
  const ended = Promise.allSettled(clones);
  await waitFor('a request to the server', () => world.server.requests.length > 0);
  await read(mirrors, saved);
  expect(world.server.requests).toHaveLength(1);
  stop.abort(new Error('enough'));
  expect((await ended).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
});
