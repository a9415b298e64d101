import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DomainError } from '../../../base/errors.ts';
import { buildMirrors, type MirrorsWorld } from '../../builders/mirrors.ts';
import { commitFiles, gitIn, gitWith } from '../../support/gitRepository.ts';
import { pidsWith } from '../../support/processes.ts';

/** Attacks by remotes, and by users who choose the remote. */
let world: MirrorsWorld;
beforeAll(async () => {
  world = await buildMirrors();
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => {
  world.server.reset();
  world.decisions.length = 0;
});

const clone = (url: string, credential?: { username: string; password: string }) =>
  world.mirrors.clone(world.ref(), { url, credential: credential && (async () => credential) }, world.hooks());
const failure = (url: string, credential?: { username: string; password: string }) =>
  clone(url, credential).then(
    () => undefined,
    (error: unknown) => error,
  );

describe('a URL', () => {
  test.each([
    'ext::sh -c touch% /tmp/x',
    'file:///etc',
    '/etc/passwd',
    '../x',
    'ssh://git@git.example/x',
    'git@git.example:x.git',
    'http://git.example/x.git',
    'git://git.example/x.git',
    'https://git.example/x.git\nurl=https://other',
    'https://git.example/x.git\r',
    'https://git.example/x%0aurl=y',
    'https://git.example/x%0D',
    '-u/tmp/x',
    '--upload-pack=touch /tmp/x',
    'https://TOKEN@git.example/x.git',
    'https://user:TOKEN@git.example/x.git',
    'https://:TOKEN@git.example/x.git',
    'https://TOKEN%40git.example@other.example/x.git',
    'https://git.example\\@other.example/x.git',
    'https:\\\\git.example/x.git',
    'https://git.example/x.git?token=TOKEN',
    'https://git.example/x.git#TOKEN',
    'https://git.example/team/../other/x.git',
    'https://git.example/team/./x.git',
    'https://git.example/team/%2e%2E/other/x.git',
    'https://git.example/team/.%2e/other/x.git',
    'https://git.example/team/%2e/x.git',
    'https://git.example/team/..%2fother/x.git',
    'https://git.example/team%2Fx.git',
    'https://git.example/team/..%5cother/x.git',
    'https://git.example/team/%252e%252e/other/x.git',
    'https://git.example/team/..;/other/x.git',
    'https://git.example/team/..%3bv=1/other/x.git',
    'https://git.example/team/%c0%ae%c0%ae/other/x.git',
    'https://git.example/team/100%/x.git',
    'https://git.example/team/..',
    'https://git.example/team/x.git/.',
    'https://git.example',
    'https:///x.git',
    '',
    `https://git.example/${'x'.repeat(3_000)}`,
  ])('%j is refused without a request, and the error does not repeat it', async (url) => {
    const error = await failure(url);
    expect(error).toMatchObject({ code: 'GIT_URL_REFUSED', kind: 'unprocessable' });
    expect(String(error)).not.toContain('TOKEN');
    expect([world.server.requests, world.decisions]).toEqual([[], []]);
  });

  const internal = 'its address is internal';
  test.each([
    ['https://127.0.0.1:PORT/x.git', internal],
    ['https://2130706433:PORT/x.git', internal],
    ['https://0x7f.1:PORT/x.git', internal],
    ['https://[::ffff:127.0.0.1]:PORT/x.git', internal],
    ['https://169.254.169.254/x.git', internal],
    ['https://rebound.example:PORT/x.git', internal],
    ['https://denied.example/x.git', 'the space denies it'],
    ['https://git.example:25/x.git', 'this port is not allowed'],
  ])('%s is refused by the proxy, since %s', async (url, reason) => {
    const error = await failure(url.replace('PORT', String(world.server.port)));
    const setting = reason === internal ? ' The operator can allow it with ATRIUM_EGRESS_ALLOW_INTERNAL.' : '';
    const message = `The remote cannot be reached from here: ${reason}.${setting}`;
    expect(error).toMatchObject({ code: 'GIT_REMOTE_FORBIDDEN', message });
    expect(world.server.requests).toEqual([]);
    expect(world.decisions.every(({ address }) => address === null)).toBe(true);
  });
});

describe('a redirect', () => {
  const redirectTo = (target: (path: string) => string) => {
    world.server.interfere = (req, res) => {
      if (!req.url?.startsWith('/from.git')) return false;
      res.writeHead(302, { location: target(req.url.slice('/from.git'.length)) }).end();
      return true;
    };
  };

  test.each([
    ['to an internal address', () => 'https://169.254.169.254/latest', 'GIT_REMOTE_FORBIDDEN'],
    [
      'to a name of an internal address',
      () => `https://rebound.example:${world.server.port}/x`,
      'GIT_REMOTE_FORBIDDEN',
    ],
    ['to http', (path: string) => `http://git.example/x.git${path}`, 'GIT_REMOTE_REFUSED'],
    ['to a file', () => 'file:///etc/passwd', 'GIT_REMOTE_REFUSED'],
    ['to what is not there', () => `https://git.example:${world.server.port}/elsewhere`, 'GIT_REMOTE_NOT_FOUND'],
  ])('%s is not followed', async (_name, target, code) => {
    redirectTo(target);
    expect(await failure(world.server.url('from.git'))).toMatchObject({ code });
  });

  test('to another server is followed without the credential', async () => {
    commitFiles(world.server.create('open.git'), { a: 'a' });
    redirectTo((path) => `https://other.example:${world.server.port}/open.git${path}`);
    await clone(world.server.url('from.git'), { username: 'me', password: 'the-token-1' });
    world.server.requires = 'me:the-token-1';
    world.server.requests.length = 0;
    const error = await failure(world.server.url('from.git'), { username: 'me', password: 'the-token-1' });
    expect(error).toMatchObject({ code: 'GIT_AUTHENTICATION_FAILED' });
    expect(world.server.requests.length).toBeGreaterThan(0);
    expect(world.server.requests.filter(({ authorization }) => authorization !== undefined)).toEqual([]);
  });

  test('to another repository of the same server gets no credential, and one to the same name with .git does', async () => {
    commitFiles(world.server.create('mine.git'), { a: 'a' });
    world.server.requires = 'me:the-token-2';
    redirectTo((path) => `${world.server.url('mine.git')}${path}`);
    const other = await failure(world.server.url('from.git'), { username: 'me', password: 'the-token-2' });
    expect(other).toMatchObject({ code: 'GIT_AUTHENTICATION_FAILED' });
    expect(world.server.requests.filter(({ authorization }) => authorization !== undefined)).toEqual([]);
    world.server.interfere = (req, res) => {
      if (!req.url?.startsWith('/mine/')) return false;
      res.writeHead(301, { location: req.url.replace('/mine/', '/mine.git/') }).end();
      return true;
    };
    const same = await clone(world.server.url('mine'), { username: 'me', password: 'the-token-2' });
    expect(same.tree.files).toBe(1);
  });
});

test('git trusts only the given certificate authorities', async () => {
  commitFiles(world.server.create('trusting.git'), { a: 'a' });
  const trusted: string[][] = [];
  world.server.interfere = () => {
    for (const pid of pidsWith('remote-https', world.server.url('trusting.git'))) {
      const environment = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
      const variable = (name: string) => environment.find((entry) => entry.startsWith(`${name}=`))?.split('=')[1] ?? '';
      trusted.push([variable('GIT_SSL_CAINFO'), ...readdirSync(variable('GIT_SSL_CAPATH'))]);
    }
    return false;
  };
  await clone(world.server.url('trusting.git'));
  expect(trusted.length).toBeGreaterThan(0);
  expect(trusted).toEqual(trusted.map(() => [world.server.caFile]));
});

describe('a credential', () => {
  test('is in no argument, variable or file while git uses it', async () => {
    commitFiles(world.server.create('private.git'), { a: 'a' });
    const password = 'a.token-of.many-characters-0123456789';
    world.server.requires = `x-access-token:${password}`;
    const seen: string[] = [];
    world.server.interfere = (req) => {
      if (req.headers.authorization === undefined || req.method !== 'POST') return false;
      const own = String(process.pid);
      for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name) && name !== own)) {
        for (const what of ['cmdline', 'environ']) {
          try {
            const text = readFileSync(`/proc/${pid}/${what}`, 'latin1');
            if (text.includes('GIT_CONFIG_COUNT') || text.startsWith('git')) seen.push(text);
          } catch {
            // The process has ended.
          }
        }
      }
      return false;
    };
    const ref = world.ref();
    const source = {
      url: world.server.url('private.git'),
      credential: async () => ({ username: 'x-access-token', password }),
    };
    await world.mirrors.clone(ref, source, world.hooks());
    expect(seen.some((text) => text.includes('GIT_CONFIG_COUNT'))).toBe(true);
    expect(seen.filter((text) => text.includes(password))).toEqual([]);
    const found = spawnSync('grep', ['-rlF', password, world.dir], { encoding: 'utf8' }).stdout;
    expect(found).toBe('');
  });

  test.each([
    ['that is wrong', { username: 'me', password: 'wrong-token' }],
    ['that would be two lines', { username: 'me', password: 'right\nhost=other.example' }],
    ['that is missing', undefined],
  ])('%s fails with an error that does not contain it', async (_name, credential) => {
    commitFiles(world.server.create('private.git'), { a: 'a' });
    world.server.requires = 'me:right';
    const error = (await failure(world.server.url('private.git'), credential)) as DomainError;
    expect(error).toBeInstanceOf(DomainError);
    expect(error.code).toBe('GIT_AUTHENTICATION_FAILED');
    expect(`${error.message} ${String(error.cause)}`).not.toMatch(/wrong-token|right/);
  });
});

describe('objects', () => {
  const blob = (bare: string, content: string) =>
    gitWith({ cwd: bare, input: content }, 'hash-object', '-w', '--stdin');
  /** Writes a tree without git's checks. */
  const rawTree = (bare: string, entries: [mode: string, name: string, id: string][]) => {
    const input = Buffer.concat(
      entries.map(([mode, name, id]) => Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(id, 'hex')])),
    );
    return gitWith({ cwd: bare, input }, 'hash-object', '-t', 'tree', '-w', '--literally', '--stdin');
  };
  const publish = (bare: string, tree: string) => {
    gitIn(bare, 'update-ref', 'refs/heads/main', gitIn(bare, 'commit-tree', '-m', 'x', tree));
  };

  test.each([
    [
      'a folder .git',
      (bare: string) => rawTree(bare, [['40000', '.git', rawTree(bare, [['100644', 'config', blob(bare, 'x')]])]]),
    ],
    [
      'a symbolic link and a folder of one name, into .git/hooks',
      (bare: string) =>
        rawTree(bare, [
          ['120000', 'a', blob(bare, '.git/hooks')],
          ['40000', 'a', rawTree(bare, [['100755', 'post-checkout', blob(bare, '#!/bin/sh\n')]])],
        ]),
    ],
    [
      '.gitmodules as a symbolic link',
      (bare: string) => rawTree(bare, [['120000', '.gitmodules', blob(bare, '/etc/passwd')]]),
    ],
    [
      'a submodule whose URL is an option',
      (bare: string) =>
        rawTree(bare, [['100644', '.gitmodules', blob(bare, '[submodule "x"]\n\tpath = x\n\turl = -u./payload\n')]]),
    ],
    ['a name that leaves the tree', (bare: string) => rawTree(bare, [['100644', '..', blob(bare, 'x')]])],
  ])('with %s are refused', async (name, make) => {
    const bare = world.server.create(`${name.replace(/\W+/g, '-')}.git`);
    publish(bare, make(bare));
    const ref = world.ref();
    const source = { url: world.server.url(`${name.replace(/\W+/g, '-')}.git`) };
    for (const _attempt of [1, 2]) {
      await expect(world.mirrors.clone(ref, source, world.hooks())).rejects.toMatchObject({
        code: 'GIT_OBJECTS_REFUSED',
      });
    }
    expect(await world.records.current(ref)).toBeUndefined();
  });

  test('with links and submodules that lead outside are kept, and not followed', async () => {
    const bare = world.server.create('inert.git');
    const tip = commitFiles(bare, { a: 'a' });
    const modules = '[submodule "x"]\n\tpath = "sub\\r"\n\turl = https://other.example/x\n';
    publish(
      bare,
      rawTree(bare, [
        ['100644', '.gitmodules', blob(bare, modules)],
        ['120000', 'link', blob(bare, '/etc/passwd')],
        ['160000', 'sub\r', tip],
        ['120000', 'up', blob(bare, '../..')],
      ]),
    );
    const { tree } = await clone(world.server.url('inert.git'));
    expect(tree).toMatchObject({ files: 3, submodules: ['sub\r'] });
    expect(world.server.requests.every(({ host }) => host.startsWith('git.example'))).toBe(true);
  });

  test('with old and harmless faults are accepted', async () => {
    const bare = world.server.create('old.git');
    const inner = rawTree(bare, [['100644', 'f', blob(bare, 'x')]]);
    publish(bare, rawTree(bare, [['040000', 'folder', inner]]));
    expect((await clone(world.server.url('old.git'))).tree.files).toBe(1);
  });
});

test('a server that serves single files (dumb HTTP) is refused, since git would not check them', async () => {
  const bare = world.server.create('dumb.git');
  commitFiles(bare, { a: 'a' });
  gitIn(bare, 'update-server-info');
  world.server.interfere = (req, res) => {
    const path = join(world.server.root, URL.parse(req.url ?? '', 'https://x')?.pathname ?? '');
    if (existsSync(path)) res.end(readFileSync(path));
    else res.writeHead(404).end();
    return true;
  };
  const ref = world.ref();
  const source = { url: world.server.url('dumb.git') };
  await expect(world.mirrors.clone(ref, source, world.hooks())).rejects.toMatchObject({ code: 'GIT_REMOTE_FAILED' });
  expect(existsSync(join(world.folderOf(ref), 'partial.git'))).toBe(false);

  // The same if a server becomes one at a later fetch.
  world.server.interfere = undefined;
  await world.mirrors.clone(ref, source, world.hooks());
  const state = join(world.folderOf(ref), 'state.json');
  expect(existsSync(state)).toBe(true);
  commitFiles(bare, { b: 'b' });
  world.server.interfere = (req, res) => {
    if (req.method === 'POST') return false;
    res.end(`${'a'.repeat(40)}\trefs/heads/main\n`);
    return true;
  };
  await expect(world.mirrors.fetch(ref, source, world.hooks())).rejects.toMatchObject({ code: 'GIT_REMOTE_FAILED' });
  expect(existsSync(state)).toBe(false);
});

test('single files from a failed fetch are gone before the next fetch', async () => {
  const bare = world.server.create('broken-dumb.git');
  commitFiles(bare, { a: 'a' });
  const ref = world.ref();
  const source = { url: world.server.url('broken-dumb.git') };
  await world.mirrors.clone(ref, source, world.hooks());
  const tip = commitFiles(bare, { b: 'b' });
  const [tree, blob] = [gitIn(bare, 'rev-parse', `${tip}^{tree}`), gitIn(bare, 'rev-parse', `${tip}:b`)];
  // The first list of refs comes from a git server. Then the server sends single files, and fails for one of them.
  const lacks = `/objects/${blob.slice(0, 2)}/${blob.slice(2)}`;
  let lists = 0;
  world.server.interfere = (req, res) => {
    const url = URL.parse(req.url ?? '', 'https://x');
    const path = url?.pathname ?? '';
    if (path.endsWith('/info/refs')) lists += 1;
    if (lists <= 1) return false;
    const file = join(world.server.root, path);
    if (path.endsWith('/info/refs')) res.end(`${tip}\trefs/heads/main\n`);
    else if (path.endsWith(lacks)) res.writeHead(500).end();
    else if (existsSync(file)) res.end(readFileSync(file));
    else res.writeHead(404).end();
    return true;
  };
  await expect(world.mirrors.fetch(ref, source, world.hooks())).rejects.toMatchObject({ code: 'GIT_REMOTE_FAILED' });
  const asked = world.server.requests.map(({ url }) => url);
  expect(asked).toContainEqual(expect.stringContaining(`${tree.slice(0, 2)}/${tree.slice(2)}`));

  world.server.interfere = undefined;
  const { bundle, manifest } = await world.mirrors.bundleFor(ref, [], world.hooks().signal);
  await bundle?.[Symbol.asyncDispose]();
  expect(manifest.refs['refs/heads/main']).not.toBe(tip);
  const mirror = join(world.folderOf(ref), 'mirror.git');
  const has = (id: string) => spawnSync('git', [`--git-dir=${mirror}`, 'cat-file', '-e', id]).status === 0;
  expect([tip, tree].map(has)).toEqual([false, false]);
  // The mirror is still sound, and the same fetch from a git server works.
  const fetched = await world.mirrors.fetch(ref, source, world.hooks());
  expect(fetched.manifest.refs['refs/remotes/origin/main']).toBe(tip);
  expect(has(blob)).toBe(true);
});

test('a hook inside a mirror does not run', async () => {
  const bare = world.server.create('hooked.git');
  commitFiles(bare, { a: 'a' });
  const ref = world.ref();
  const source = { url: world.server.url('hooked.git') };
  await world.mirrors.clone(ref, source, world.hooks());
  const hooks = join(world.folderOf(ref), 'mirror.git', 'hooks');
  const ran = join(world.dir, 'ran');
  mkdirSync(hooks);
  writeFileSync(join(hooks, 'reference-transaction'), `#!/bin/sh\ntouch ${ran}\n`, { mode: 0o755 });
  commitFiles(bare, { b: 'b' });
  await world.mirrors.fetch(ref, source, world.hooks());
  expect(existsSync(ran)).toBe(false);
  // Plain git does run the hook.
  gitIn(world.folderOf(ref), '--git-dir=mirror.git', 'update-ref', 'refs/heads/x', 'refs/heads/main');
  expect(existsSync(ran)).toBe(true);
});
