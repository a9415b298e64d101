import { randomBytes } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { RepositoryRef } from '../../../integrations/git/types.ts';
import { buildMirrors, type MirrorsWorld } from '../../builders/mirrors.ts';
import { commitFiles, gitIn, gitWith } from '../../support/gitRepository.ts';
import { processesWith } from '../../support/processes.ts';

/** Remotes that send too much, too slowly, or nothing. */
let world: MirrorsWorld;
beforeAll(async () => {
  world = await buildMirrors();
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.server.reset());

const mebibyte = 1_048_576;
const packet = (text: Buffer | string) => {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from((bytes.length + 4).toString(16).padStart(4, '0')), bytes]);
};

/** Sends as long as the client reads. */
function sendForEver(res: ServerResponse, next: () => Buffer): void {
  const send = () => {
    while (!res.destroyed) if (!res.write(next())) return void res.once('drain', send);
  };
  send();
}

/** Expects that no git process works in the folder. */
function expectNoProcess(ref: RepositoryRef): void {
  expect(processesWith(world.folderOf(ref))).toEqual([]);
}

test('an endless pack is stopped at the size limit, on the wire and on the disk', async () => {
  commitFiles(world.server.create('endless.git'), { a: 'a' });
  let posts = 0;
  world.server.interfere = (req, res) => {
    if (req.method !== 'POST') return false;
    posts += 1;
    // git requests the list of refs twice.
    if (posts <= 2) return false;
    res.writeHead(200, { 'content-type': 'application/x-git-upload-pack-result' });
    res.write(packet('packfile\n'));
    const head = Buffer.from('PACK\0\0\0\x02\0\0\x03\xe8', 'latin1');
    res.write(packet(Buffer.concat([Buffer.from([1]), head])));
    // A blob of 2 GiB that is never complete.
    res.write(packet(Buffer.concat([Buffer.from([1]), Buffer.from([0xb0, 0x80, 0x80, 0x80, 0x40, 0x78, 0x01])])));
    const stored = Buffer.concat([Buffer.from([0, 0, 0x80, 0xff, 0x7f]), randomBytes(32_768)]);
    sendForEver(res, () => packet(Buffer.concat([Buffer.from([1]), stored])));
    return true;
  };
  const ref = world.ref();
  const mirrors = world.another({ ATRIUM_GIT_MAX_MIB: '4' });
  await expect(mirrors.clone(ref, { url: world.server.url('endless.git') }, world.hooks())).rejects.toMatchObject({
    code: 'GIT_TOO_LARGE',
  });
  const packs = join(world.folderOf(ref), 'partial.git', 'objects', 'pack');
  const sizes = readdirSync(packs).map((name) => statSync(join(packs, name)).size);
  expect(Math.max(...sizes)).toBeGreaterThan(mebibyte);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(4 * mebibyte);
  expectNoProcess(ref);
});

test('an endless list of refs is stopped at the limit', async () => {
  world.server.create('refs.git');
  world.server.interfere = (req, res) => {
    if (req.method !== 'POST') return false;
    res.writeHead(200, { 'content-type': 'application/x-git-upload-pack-result' });
    let count = 0;
    const id = 'a'.repeat(40);
    const lines = () => Buffer.concat(Array.from({ length: 200 }, () => packet(`${id} refs/heads/${count++}\n`)));
    sendForEver(res, lines);
    return true;
  };
  const ref = world.ref();
  const mirrors = world.another({ ATRIUM_GIT_MAX_MIB: '4' });
  const error = await mirrors.clone(ref, { url: world.server.url('refs.git') }, world.hooks()).catch((e: unknown) => e);
  expect(error).toMatchObject({ code: 'GIT_TOO_LARGE' });
  expectNoProcess(ref);
});

test('too many branches are refused before anything is fetched', async () => {
  const bare = world.server.create('many.git');
  const tip = commitFiles(bare, { a: 'a' });
  const lines = Array.from({ length: 30 }, (_, index) => `create refs/heads/b${index} ${tip}\n`).join('');
  gitWith({ cwd: bare, input: lines }, 'update-ref', '--stdin');
  const mirrors = world.another({ ATRIUM_GIT_MAX_REFS: '20' });
  const refused = mirrors.clone(world.ref(), { url: world.server.url('many.git') }, world.hooks());
  await expect(refused).rejects.toMatchObject({ code: 'GIT_TOO_LARGE' });
  expect(world.server.requests.filter(({ method }) => method === 'POST')).toHaveLength(1);
});

test('a silent server fails with GIT_REMOTE_TOO_SLOW', async () => {
  world.server.interfere = () => true;
  const ref = world.ref();
  const mirrors = world.another({ ATRIUM_GIT_SILENCE_SECONDS: '1' });
  await expect(mirrors.clone(ref, { url: world.server.url('silent.git') }, world.hooks())).rejects.toMatchObject({
    code: 'GIT_REMOTE_TOO_SLOW',
  });
  expectNoProcess(ref);
});

test('a slowly dripping server is stopped by the time limit of the operation, and the next clone works', async () => {
  commitFiles(world.server.create('drip.git'), { a: 'a' });
  const timers: NodeJS.Timeout[] = [];
  world.server.interfere = (req, res) => {
    if (req.method !== 'POST') return false;
    res.writeHead(200, { 'content-type': 'application/x-git-upload-pack-result' });
    timers.push(setInterval(() => res.write(packet(`${'a'.repeat(40)} refs/heads/${'b'.repeat(400)}\n`)), 50));
    return true;
  };
  const ref = world.ref();
  const source = { url: world.server.url('drip.git') };
  const mirrors = world.another({}, { timeoutMs: 2_000 });
  await expect(mirrors.clone(ref, source, world.hooks())).rejects.toMatchObject({ code: 'GIT_REMOTE_TOO_SLOW' });
  for (const timer of timers) clearInterval(timer);
  expectNoProcess(ref);
  world.server.interfere = undefined;
  expect((await world.mirrors.clone(ref, source, world.hooks())).tree.files).toBe(1);
});

test('a caller can abort an operation, and gets its own reason', async () => {
  world.server.interfere = () => true;
  const stop = new AbortController();
  const ref = world.ref();
  const hooks = { signal: stop.signal, onProgress: () => stop.abort(new Error('not wanted any more')) };
  const cloning = world.mirrors.clone(ref, { url: world.server.url('x.git') }, hooks);
  await expect(cloning).rejects.toThrow('not wanted any more');
  expectNoProcess(ref);
});

test('a tree of a billion files, or of too large files, is refused', async () => {
  const bare = world.server.create('bomb.git');
  let [mode, id] = ['100644', gitWith({ cwd: bare, input: 'x' }, 'hash-object', '-w', '--stdin')];
  for (let level = 0; level < 9; level += 1) {
    const kind = mode === '100644' ? 'blob' : 'tree';
    const input = Array.from({ length: 10 }, (_, index) => `${mode} ${kind} ${id}\tn${index}\n`).join('');
    [mode, id] = ['040000', gitWith({ cwd: bare, input }, 'mktree')];
  }
  gitIn(bare, 'update-ref', 'refs/heads/main', gitIn(bare, 'commit-tree', '-m', 'x', id));
  const bomb = world.another({ ATRIUM_GIT_MAX_FILES: '5000' });
  await expect(bomb.clone(world.ref(), { url: world.server.url('bomb.git') }, world.hooks())).rejects.toMatchObject({
    code: 'GIT_TOO_LARGE',
    message: expect.stringContaining('5000 files'),
  });
  commitFiles(world.server.create('large.git'), { zeros: Buffer.alloc(3 * mebibyte) });
  const small = world.another({ ATRIUM_GIT_MAX_TREE_MIB: '2' });
  const large = small.clone(world.ref(), { url: world.server.url('large.git') }, world.hooks());
  await expect(large).rejects.toMatchObject({ code: 'GIT_TOO_LARGE' });
});

test.each([
  [404, 'GIT_REMOTE_NOT_FOUND'],
  [403, 'GIT_AUTHENTICATION_FAILED'],
  [500, 'GIT_REMOTE_FAILED'],
  [200, 'GIT_REMOTE_FAILED'],
])('a server that answers %d without git gives %s', async (status, code) => {
  world.server.interfere = (_req, res) => {
    res.writeHead(status, { 'content-type': 'text/html' }).end('<p>Hello</p>');
    return true;
  };
  const url = world.server.url('x.git');
  const error = (await world.mirrors.clone(world.ref(), { url }, world.hooks()).catch((e: unknown) => e)) as Error;
  expect(error).toMatchObject({ code });
  expect(error.message).not.toMatch(/https?:|127\.0\.0\.1|mirrors/);
});
