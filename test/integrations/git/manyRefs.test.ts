import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { RepositoryRef } from '../../../integrations/git/types.ts';
import { buildMirrors, type MirrorsWorld } from '../../builders/mirrors.ts';
import { commitFiles, gitIn, gitWith } from '../../support/gitRepository.ts';

/** Repositories with many branches and tags. */
let world: MirrorsWorld;
beforeAll(async () => {
  world = await buildMirrors();
});
afterAll(() => world[Symbol.asyncDispose]());

const { signal } = new AbortController();
const mirrorOf = (ref: RepositoryRef) => join(world.folderOf(ref), 'mirror.git');

function remote(name: string, branches = 0) {
  const bare = world.server.create(name);
  const tip = commitFiles(bare, { a: 'a' });
  const input = Array.from({ length: branches }, (_, index) => `create refs/heads/theirs${index} ${tip}\n`).join('');
  gitWith({ cwd: bare, input }, 'update-ref', '--stdin');
  return { tip, source: { url: world.server.url(name) } };
}

const made = (names: readonly string[], tip: string) => names.map((name) => ({ name, from: null, to: tip }));
const named = (what: 'heads' | 'tags', count: number) =>
  Array.from({ length: count }, (_, index) => `refs/${what}/ours${index}`);

test('too many refs are refused before anything is read or stored', async () => {
  const { tip, source } = remote('few.git');
  const ref = world.ref();
  const mirrors = world.another({ ATRIUM_GIT_MAX_REFS: '20' });
  await mirrors.clone(ref, source, world.hooks());
  const planned = [...world.records.planned];
  let isRead = false;
  const bundle = new Readable({
    read() {
      isRead = true;
      this.push(null);
    },
  });
  const refs = made([...named('heads', 10), ...named('tags', 10)], tip);
  await expect(mirrors.receive(ref, { bundle, refs }, signal)).rejects.toMatchObject({ code: 'GIT_TOO_LARGE' });
  expect([isRead, world.records.planned]).toEqual([false, planned]);
  expect(await mirrors.state(ref)).toMatchObject({ version: 1 });
  // Together with the existing branch, these are exactly at the limit.
  const { manifest } = await mirrors.receive(ref, { refs: refs.slice(1) }, signal);
  expect(Object.keys(manifest.refs)).toContain('refs/tags/ours9');
  // Kept refs of drafts count as well.
  const kept = mirrors.receive(ref, { refs: made(['refs/atrium/drafts/drf_1/heads/try'], tip) }, signal);
  await expect(kept).rejects.toMatchObject({ code: 'GIT_TOO_LARGE' });
  // With a lower limit than the repository has refs, refs can still be removed.
  const frugal = world.another({ ATRIUM_GIT_MAX_REFS: '5' });
  await frugal.receive(ref, { refs: [{ name: 'refs/tags/ours9', from: tip, to: null }] }, signal);
  const more = frugal.receive(ref, { refs: made(['refs/tags/ours9'], tip) }, signal);
  await expect(more).rejects.toMatchObject({ code: 'GIT_TOO_LARGE' });
});

test('many refs that arrive at once are packed into one file', async () => {
  const { tip, source } = remote('many.git', 150);
  const ref = world.ref();
  const files = () =>
    readdirSync(join(mirrorOf(ref), 'refs'), { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
  await world.mirrors.clone(ref, source, world.hooks());
  expect(files()).toEqual([]);
  await world.mirrors.receive(ref, { refs: made(named('heads', 150), tip) }, signal);
  expect(files()).toEqual([]);
  await world.mirrors.receive(ref, { refs: made(named('tags', 1), tip) }, signal);
  expect(files()).toHaveLength(1);
  const refs = gitIn(mirrorOf(ref), '--git-dir=.', 'for-each-ref', '--format=%(refname)').split('\n');
  expect(refs).toHaveLength(1 + 151 + 150 + 1);
});
