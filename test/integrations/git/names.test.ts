import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseRemoteRefs } from '../../../integrations/git/rules/remoteRefs.ts';
import { buildMirrors, type MirrorsWorld } from '../../builders/mirrors.ts';
import { commitFiles, gitIn } from '../../support/gitRepository.ts';

/** Names and ids of refs from servers. */
let world: MirrorsWorld;
beforeAll(async () => {
  world = await buildMirrors();
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.server.reset());

const clone = (url: string, more: { branch?: string; depth?: number } = {}, ref = world.ref()) =>
  world.mirrors.clone(ref, { url, ...more }, world.hooks());

/** Makes a repository with exactly these refs, also with names that this file system could not have as files. */
function serve(
  name: string,
  refs: (string | Buffer)[],
  { head }: { head?: string } = {},
): { url: string; tip: string } {
  const bare = world.server.create(name);
  const tip = commitFiles(bare, { a: 'a' });
  gitIn(bare, 'update-ref', '-d', 'refs/heads/main');
  const lines = refs.map((ref) => Buffer.concat([Buffer.from(`${tip} `), Buffer.from(ref), Buffer.from('\n')]));
  writeFileSync(join(bare, 'packed-refs'), Buffer.concat(lines.toSorted(Buffer.compare)));
  if (head !== undefined) gitIn(bare, 'symbolic-ref', 'HEAD', head);
  return { url: world.server.url(name), tip };
}

const main = 'refs/heads/main';
const latin1 = (text: string) => Buffer.from(text, 'latin1');
const unusable = [
  `refs/heads/${'b'.repeat(300)}`,
  `refs/tags/${'t'.repeat(252)}`,
  latin1('refs/heads/caf\xe9'),
  latin1('refs/tags/\xff'),
];
const usable = ['refs/heads/feature/ü', 'refs/heads/-x', 'refs/heads/heads/x', 'refs/tags/v1'];

describe('refs with unusable names', () => {
  const origin = (name: string) => name.replace('refs/heads/', 'refs/remotes/origin/');

  test('are left out of a clone and a fetch, and all others are there', async () => {
    const { url } = serve('mixed.git', [main, ...unusable, ...usable]);
    const ref = world.ref();
    const { manifest, defaultBranch } = await clone(url, {}, ref);
    const expected = ['refs/heads/main', 'refs/remotes/origin/main', ...usable.map(origin)];
    expect([defaultBranch, Object.keys(manifest.refs).toSorted()]).toEqual(['main', expected.toSorted()]);

    const bare = join(world.server.root, 'mixed.git');
    commitFiles(bare, { b: 'b' }, { branch: 'later' });
    const fetched = await world.mirrors.fetch(ref, { url }, world.hooks());
    expect(Object.keys(fetched.manifest.refs).toSorted()).toEqual(
      [...expected, 'refs/remotes/origin/later'].toSorted(),
    );
    world.loseMachine();
    expect(
      (
        await world.mirrors.measure(
          ref,
          fetched.manifest.refs['refs/remotes/origin/later'] ?? '',
          AbortSignal.timeout(30_000),
        )
      ).files,
    ).toBe(2);
  });

  test('are left out of a resumed clone and a shallow one', async () => {
    const { url } = serve('again.git', [main, ...unusable, ...usable]);
    const ref = world.ref();
    world.server.cutAfter = 200;
    await expect(clone(url, {}, ref)).rejects.toMatchObject({ code: 'GIT_REMOTE_FAILED' });
    world.server.reset();
    expect(Object.keys((await clone(url, {}, ref)).manifest.refs)).toHaveLength(usable.length + 2);
    const shallow = await clone(url, { depth: 1 });
    expect(Object.keys(shallow.manifest.refs)).toEqual(['refs/heads/main', 'refs/remotes/origin/main']);
  });

  test.each([
    ['too long', `refs/heads/${'d'.repeat(260)}`],
    ['like a full name', 'refs/heads/refs/heads/main'],
    ['like an option', 'refs/heads/--upload-pack=touch'],
  ])('are replaced by another default branch: %s', async (name, head) => {
    const { url } = serve(`default-${name.replaceAll(' ', '-')}.git`, [main, head], { head });
    expect(await clone(url)).toMatchObject({ defaultBranch: 'main' });
  });

  test('are given as the reason if a repository has no other refs', async () => {
    const { url } = serve('none.git', [unusable[0] ?? '']);
    const error = await clone(url).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'GIT_REMOTE_REFUSED', message: expect.stringContaining('name') });
  });
});

test('a repository with SHA-256 ids is refused with that reason', async () => {
  const bare = join(world.server.root, 'sha256.git');
  gitIn(world.server.root, 'init', '--quiet', '--bare', '--object-format=sha256', '--initial-branch=main', bare);
  gitIn(bare, 'update-ref', main, gitIn(bare, 'commit-tree', '-m', 'x', gitIn(bare, 'write-tree')));
  const error = await clone(world.server.url('sha256.git')).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'GIT_REMOTE_REFUSED', message: expect.stringContaining('SHA-256') });
});

describe('a server that injects lines', () => {
  const id = 'a'.repeat(40);

  /** Answers with these refs in the first version of the protocol, which has them in one answer. */
  const says = (refs: string[]) => {
    const line = (text: string) => `${(Buffer.byteLength(text) + 4).toString(16).padStart(4, '0')}${text}`;
    world.server.interfere = (req, res) => {
      if (!req.url?.includes('/info/refs')) return false;
      res.setHeader('content-type', 'application/x-git-upload-pack-advertisement');
      const [first = '', ...others] = refs;
      const lines = [
        line(`${first}\0symref=HEAD:refs/heads/main agent=git/2\n`),
        ...others.map((ref) => line(`${ref}\n`)),
      ];
      res.end(`${line('# service=git-upload-pack\n')}0000${lines.join('')}0000`);
      return true;
    };
  };

  test.each([
    ['an option', '--output=written'],
    ['another object', 'HEAD:refs/heads/stolen'],
    ['nothing', ''],
    ['41 digits', 'a'.repeat(41)],
  ])('cannot pass %s as an id', async (_name, injected) => {
    says([`${id} HEAD`, `${id} refs/heads/x\n${injected}\trefs/heads/main`]);
    const ref = world.ref();
    const error = await clone(world.server.url('hostile.git'), {}, ref).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'GIT_REMOTE_FAILED' });
    expect(world.server.requests.filter(({ method }) => method === 'POST')).toEqual([]);
    expect(readdirSync(join(world.folderOf(ref), 'home'))).not.toContain('written');
  });

  test('cannot have a branch name that git would read as something else', () => {
    const hostile = ['a:refs/heads/b', '*', '../x', 'a^', '--exec=x', 'HEAD', '', id, 'x\u0007', `${'y'.repeat(241)}`];
    const lines = [
      `ref: refs/heads/a:refs/heads/b\tHEAD`,
      `${id}\tHEAD`,
      ...hostile.map((name) => `${id}\trefs/heads/${name}`),
    ];
    const read = (more: string[]) =>
      parseRemoteRefs(Buffer.from(`${[...lines, ...more].join('\n')}\n`), { maxRefs: 100 });
    expect(() => read([])).toThrow(expect.objectContaining({ code: 'GIT_REMOTE_REFUSED' }));
    const refs = read([`${id}\trefs/heads/trunk`]);
    expect([[...refs.branches.keys()], refs.defaultBranch]).toEqual([['trunk'], 'trunk']);
    expect(refs.unusable.map(String)).toEqual([`refs/heads/${'y'.repeat(241)}`]);
  });
});

describe('a push', () => {
  test.each([
    'refs/heads/a:refs/heads/b',
    'refs/heads/*',
    'refs/heads/-x y',
    `refs/heads/${'z'.repeat(241)}`,
    'refs/heads/x\ud800',
    'refs/notes/x',
  ])('to %j is refused', async (to) => {
    const { url } = serve(`push${Buffer.from(to).toString('hex').slice(0, 60)}.git`, [main]);
    const ref = world.ref();
    await clone(url, {}, ref);
    const pushed = world.mirrors.push(ref, { url }, [{ from: 'refs/heads/main', to, force: false }], world.hooks());
    await expect(pushed).rejects.toMatchObject({ code: 'GIT_BRANCH_NAME_REFUSED' });
  });
});
