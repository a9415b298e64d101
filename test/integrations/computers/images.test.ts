import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Host } from '../../../integrations/computers/host/host.ts';
import type { RegistryOptions } from '../../../integrations/computers/host/images/registries.ts';
import { hostLayout, imageVolume, rootIn } from '../../../integrations/computers/host/layout.ts';
import { canInstall } from '../../../stack/install.ts';
import { choosePort } from '../../../stack/ports.ts';
import { buildHost, computerSpec, runOn, startComputer, usualLimits } from '../../builders/host.ts';
import { startHostProcess } from '../../builders/hostProcess.ts';
import { imageWith, type LayerEntry, smallRoot, type TestImage, tarOf, writeLayout } from '../../builders/images.ts';
import { type FakeRegistry, startFakeRegistry } from '../../fakes/registry.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { getImagePrograms, getRegistryProgram, missingForImages } from '../../support/imagePrograms.ts';
import { pidsWith, start as startProgram } from '../../support/processes.ts';
import { waitFor } from '../../support/waitFor.ts';
import { drivers } from './drivers.ts';

const [{ missing: noDriver, options } = { missing: 'no driver', options: {} }] = drivers;
const missing = noDriver ?? missingForImages();
const limits = { ...usualLimits, memoryMiB: 512, diskMiB: 1_024 };

describe('images of registries', () => {
  if (missing !== undefined) {
    process.stderr.write(`\nNOT RUN: images of registries: ${missing}\n`);
    it(`are not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }
  let registry: FakeRegistry;
  let built: Awaited<ReturnType<typeof buildHost>>;
  let host: Host;
  const registries = (more: Partial<RegistryOptions> = {}): RegistryOptions => {
    const own = [registry.host];
    return { allowed: own, insecure: own, mostMiB: 512, ...more };
  };
  const hostWith = (more: Partial<RegistryOptions> = {}, registryMs = 2_000) => ({
    ...options,
    imageMiB: 3_072,
    registries: registries(more),
    deadlines: { registryMs },
  });

  beforeAll(async () => {
    await getImagePrograms();
    registry = await startFakeRegistry();
    built = await buildHost(hostWith());
    host = built.host;
    expect(host.bases).toEqual(['debian', 'image']);
  }, 600_000);

  afterAll(async () => {
    await built?.[Symbol.asyncDispose]();
    await registry?.[Symbol.asyncDispose]();
  });

  let count = 0;
  /** Gives the registry an image of its own name, and returns that by tag and by digest. */
  function put(image: TestImage) {
    count += 1;
    const tagged = registry.put(`team/image${count}`, '1', image);
    return { tagged, repository: `team/image${count}`, pinned: `${tagged.slice(0, -2)}@${image.digest}` };
  }
  const small = smallRoot();
  const layered = (entries: LayerEntry[], ...more: LayerEntry[][]) =>
    imageWith([tarOf(small), ...[entries, ...more].map(tarOf)]);
  const rootOf = (image: string, dir = built.dir) => rootIn(imageVolume(hostLayout(dir), image));
  async function start(image: string) {
    await host.prepareImage(image);
    return startComputer(host, { base: 'debian', image, limits });
  }

  it('say what they are, and become the root file systems of computers', async () => {
    const config = { Env: ['A=1'], WorkingDir: '/srv', User: 'app', Cmd: ['/bin/sh'], Entrypoint: null };
    const own = [{ name: 'srv/file', uid: 1_000, gid: 1_000, mode: 0o640, content: 'of the image\n' }];
    const image = imageWith([tarOf(small), tarOf(own)], config);
    const { tagged, pinned } = put(image);
    expect(await host.resolveImage(tagged)).toEqual({
      digest: image.digest,
      config: { env: ['A=1'], workdir: '/srv', user: 'app', starts: ['CMD'] },
    });
    expect(await host.resolveImage(pinned)).toMatchObject({ digest: image.digest });
    // Two at once fetch it once.
    await Promise.all([host.prepareImage(pinned), host.prepareImage(pinned)]);
    const blobs = registry.requests.filter((path) => path.includes('/blobs/') && path.includes('image1/'));
    expect(blobs.length).toBeLessThanOrEqual(image.blobs.size + 2);
    const { client, computerId } = await start(pinned);
    const { stdout, stderr } = await runOn(
      client,
      'id -u; whoami; cat /srv/file; stat -c "%u:%g %a" /srv/file /home/user',
    );
    expect([stdout, stderr]).toEqual(['0\nroot\nof the image\n1000:1000 640\n0:0 755\n', '']);
    await runOn(client, 'echo changed > /srv/file');
    await host.stop(computerId);
    await host.start(computerSpec({ computerId, generation: 2, base: 'debian', image: pinned, limits }));
    expect((await runOn(host.client(computerId), 'cat /srv/file')).stdout).toBe('changed\n');
    expect(readFileSync(join(rootOf(pinned), 'srv', 'file'), 'utf8')).toBe('of the image\n');
  });

  it('may be compressed in each of the ways that OCI has', async () => {
    const own = [tarOf(small), tarOf([{ name: 'srv/zstd', content: 'yes' }])];
    const { pinned } = put(imageWith(own, {}, { compression: 'zstd' }));
    await host.prepareImage(pinned);
    expect(readFileSync(join(rootOf(pinned), 'srv', 'zstd'), 'utf8')).toBe('yes');
  });

  it('come from a real registry, in the forms of Docker and OCI', async () => {
    const program = getRegistryProgram();
    if (program === undefined) return expect(canInstall({ environment: process.env })).toBe(false);
    const folder = temporaryFolder();
    const port = await choosePort();
    const place = `127.0.0.1:${port}`;
    const settings = { version: '0.1', http: { addr: place }, storage: { filesystem: { rootdirectory: folder } } };
    writeFileSync(join(folder, 'config.yml'), JSON.stringify(settings));
    const server = startProgram(program, ['serve', join(folder, 'config.yml')]);
    try {
      await waitFor('the registry', () =>
        fetch(`http://${place}/v2/`).then(
          ({ ok }) => ok,
          () => false,
        ),
      );
      const image = imageWith([tarOf(small), tarOf([{ name: 'srv/real', content: 'yes' }])], { Env: ['A=1'] });
      writeLayout(join(folder, 'layout'), image);
      await using other = await buildHost(hostWith({ allowed: [place], insecure: [place] }));
      const forms = { docker: ['--format', 'v2s2'], oci: ['--format', 'oci'] };
      for (const [form, how] of Object.entries(forms)) {
        const source = ['copy', '--quiet', '--dest-tls-verify=false', ...how, `oci:${folder}/layout:image`];
        execFileSync('skopeo', ['--insecure-policy', ...source, `docker://${place}/team/${form}:1`]);
        const types = ['oci.image.manifest.v1', 'docker.distribution.manifest.v2'];
        const accept = { accept: types.map((type) => `application/vnd.${type}+json`).join(', ') };
        const manifest = await fetch(`http://${place}/v2/team/${form}/manifests/1`, { headers: accept });
        expect(await manifest.text()).toContain(`application/vnd.${form}.`);
        const { digest, config } = await other.host.resolveImage(`${place}/team/${form}:1`);
        expect(config.env).toEqual(['A=1']);
        const pinned = `${place}/team/${form}@${digest}`;
        await other.host.prepareImage(pinned);
        expect(readFileSync(join(rootOf(pinned, other.dir), 'srv', 'real'), 'utf8')).toBe('yes');
      }
      const none = other.host.resolveImage(`${place}/team/none:1`);
      await expect(none).rejects.toMatchObject({ code: 'IMAGE_NOT_FOUND' });
    } finally {
      server.child.kill('SIGKILL');
      await server.exited;
    }
  });

  it('lose in a layer what that hides', async () => {
    const { pinned } = put(
      layered(
        [
          { name: 'srv/gone', content: 'x' },
          { name: 'srv/kept', content: 'x' },
          { name: 'opt/all/one', content: 'x' },
          { name: 'opt/all/two', content: 'x' },
        ],
        [{ name: 'srv/.wh.gone' }, { name: 'opt/all/.wh..wh..opq' }, { name: 'opt/all/new', content: 'x' }],
      ),
    );
    await host.prepareImage(pinned);
    expect(readdirSync(join(rootOf(pinned), 'srv'))).toEqual(['kept']);
    expect(readdirSync(join(rootOf(pinned), 'opt', 'all'))).toEqual(['new']);
  });

  it('reach nothing outside with the names and links of their files', async () => {
    const outside = temporaryFolder();
    const { pinned } = put(
      layered([
        { name: '../../../escaped', content: 'x' },
        { name: '/absolute', content: 'x' },
        { name: 'srv/up', kind: 'symlink', target: '../../../../..' },
        { name: `srv/up${outside}/by-link`, content: 'x' },
        { name: 'srv/out', kind: 'symlink', target: outside },
        { name: 'srv/out/by-absolute-link', content: 'x' },
        { name: 'srv/shadow', kind: 'hardlink', target: 'etc/passwd' },
        { name: 'dev', kind: 'symlink', target: outside },
        { name: 'home', kind: 'symlink', target: outside },
      ]),
    );
    const before = readFileSync('/etc/passwd', 'utf8');
    await host.prepareImage(pinned);
    expect(readdirSync(outside)).toEqual([]);
    const root = rootOf(pinned);
    for (const folder of ['/', built.dir, hostLayout(built.dir).bases, join(root, '..')]) {
      expect(existsSync(join(folder, 'escaped')) || existsSync(join(folder, 'absolute'))).toBe(false);
    }
    expect(readFileSync(join(root, 'escaped'), 'utf8')).toBe('x');
    expect(readFileSync(join(root, 'absolute'), 'utf8')).toBe('x');
    expect(readFileSync('/etc/passwd', 'utf8')).toBe(before);
    expect(readFileSync(join(root, 'srv', 'shadow'), 'utf8')).toContain('app:x:1000');
    // Nothing of it is followed when computers start.
    await host.prepareImage(pinned);
    await startComputer(host, { base: 'debian', image: pinned, limits }).catch(() => undefined);
    expect(readdirSync(outside)).toEqual([]);
  });

  it('get no devices, and no rights by the bits of their files', async () => {
    const { pinned } = put(
      layered([
        { name: 'srv/null', kind: 'device', mode: 0o666 },
        { name: 'srv/disk', kind: 'disk', mode: 0o666 },
        { name: 'srv/pipe', kind: 'fifo' },
        {
          name: 'usr/bin/rootsh',
          mode: 0o4755,
          content: small.find(({ name }) => name === 'usr/bin/id')?.content ?? '',
        },
      ]),
    );
    const { client } = await start(pinned);
    for (const name of ['null', 'disk']) {
      const stat = lstatSync(join(rootOf(pinned), 'srv', name));
      expect(stat.isCharacterDevice() || stat.isBlockDevice()).toBe(false);
    }
    const asApp = ['/opt/atrium/agent', 'as', 'app', '/usr/bin/rootsh', '-u'];
    expect((await runOn(client, asApp)).stdout).toBe('1000\n');
  });

  it.each<[string, string, () => TestImage]>([
    ['IMAGE_UNSUPPORTED', 'owners that computers do not have', () => layered([{ name: 'srv/a', uid: 70_000 }])],
    [
      'IMAGE_UNSUPPORTED',
      'a root that is a link',
      () => imageWith([tarOf([{ name: './', kind: 'symlink', target: '/' }])]),
    ],
    ['IMAGE_DAMAGED', 'a layer that is no archive', () => imageWith([Buffer.from('x'.repeat(2_048))])],
  ])('are refused with %s for %s', async (code, _what, make) => {
    const { pinned } = put(make());
    await expect(host.prepareImage(pinned)).rejects.toMatchObject({ code });
    expect(existsSync(imageVolume(hostLayout(built.dir), pinned))).toBe(false);
    expect(readdirSync(hostLayout(built.dir).bases).filter((name) => name.endsWith('.new'))).toEqual([]);
  });

  it('have a limit for their bytes and files', async () => {
    await using other = await buildHost(hostWith({ mostMiB: 16 }));
    const bytes = put(imageWith([tarOf([{ name: 'zeros', content: Buffer.alloc(64 * 1_048_576) }])]));
    const names = Array.from({ length: 60_000 }, (_, index) => ({ name: `d/${index}`, content: 'x' }));
    const files = put(imageWith([tarOf(names)]));
    for (const { pinned } of [bytes, files]) {
      await expect(other.host.prepareImage(pinned)).rejects.toMatchObject({ code: 'IMAGE_TOO_LARGE' });
      expect(readdirSync(hostLayout(other.dir).bases)).toEqual([]);
    }
  }, 300_000);

  it('are for this machine', async () => {
    const { tagged } = put(imageWith([tarOf(small)], {}, { architecture: 'riscv64' }));
    await expect(host.resolveImage(tagged)).rejects.toMatchObject({ code: 'IMAGE_UNSUPPORTED' });
    const list = Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: 'application/vnd.oci.image.index.v1+json',
        manifests: [],
      }),
    );
    const own = imageWith([tarOf(small)], { Env: ['A=1'] });
    const manifests = ['riscv64', process.arch === 'arm64' ? 'arm64' : 'amd64'].map((architecture) => {
      const image = architecture === 'riscv64' ? imageWith([], {}, { architecture }) : own;
      registry.put('team/many', architecture, image);
      const platform = { architecture, os: 'linux' };
      const mediaType = 'application/vnd.oci.image.manifest.v1+json';
      return { mediaType, digest: image.digest, size: image.manifest.length, platform };
    });
    const body = Buffer.from(JSON.stringify({ ...JSON.parse(list.toString()), manifests }));
    const index = { digest: `sha256:${await digestOf(body)}`, manifest: body, blobs: new Map() };
    const name = registry.put('team/many', '1', index);
    const resolved = await host.resolveImage(name);
    expect(resolved).toMatchObject({ digest: index.digest, config: { env: ['A=1'] } });
    await host.prepareImage(`${registry.host}/team/many@${index.digest}`);
  });

  describe('in a registry that fails', () => {
    const code = (work: Promise<unknown>) =>
      work.then(
        () => 'none',
        (error: { code?: string; message: string }) => error.code ?? error.message,
      );

    it('are not found', async () => {
      expect(await code(host.resolveImage(`${registry.host}/none:1`))).toBe('IMAGE_NOT_FOUND');
      const { tagged } = put(imageWith([tarOf(small)]));
      expect(await code(host.resolveImage(`${tagged}2`))).toBe('IMAGE_NOT_FOUND');
    });

    it('are not taken from elsewhere', async () => {
      expect(await code(host.resolveImage('registry.example.org/a:1'))).toBe('IMAGES_OFF');
      expect(await code(host.prepareImage(`registry.example.org/a@sha256:${'a'.repeat(64)}`))).toBe('IMAGES_OFF');
      await using other = await buildHost(hostWith({ allowed: ['127.0.0.1:1'], insecure: ['127.0.0.1:1'] }));
      expect(await code(other.host.resolveImage('127.0.0.1:1/a'))).toBe('REGISTRY_UNREACHABLE');
      await using secure = await buildHost(hostWith({ insecure: [] }));
      const { tagged } = put(imageWith([tarOf(small)]));
      expect(await code(secure.host.resolveImage(tagged))).toBe('REGISTRY_UNREACHABLE');
    });

    it('are not what their digests say', async () => {
      const image = layered([{ name: 'srv/a', content: 'x' }]);
      const { pinned, repository } = put(image);
      registry.answer(new RegExp(`${repository}/blobs/${[...image.blobs.keys()].at(-1)}`), 200, 'something else');
      expect(await code(host.prepareImage(pinned))).toBe('IMAGE_DAMAGED');
      const other = imageWith([tarOf(small)], { Env: ['B=1'] });
      const { repository: swapped } = put(other);
      registry.answer(new RegExp(`${swapped}/manifests/`), 200, other.manifest);
      const wrong = `${registry.host}/${swapped}@sha256:${'b'.repeat(64)}`;
      expect(await code(host.resolveImage(wrong))).toBe('IMAGE_DAMAGED');
      expect(await code(host.prepareImage(wrong))).toBe('IMAGE_DAMAGED');
    });

    it('fail with the registry', async () => {
      const { tagged, repository } = put(imageWith([tarOf(small)]));
      registry.answer(new RegExp(`${repository}/manifests/`), 500, 'broken');
      expect(await code(host.resolveImage(tagged))).toBe('REGISTRY_UNREACHABLE');
      const text = put(imageWith([tarOf(small)]));
      registry.answer(new RegExp(`${text.repository}/manifests/`), 200, 'not JSON');
      expect(await code(host.resolveImage(text.tagged))).toMatch(/^IMAGE_/);
    });

    it.each(['silent', 'midway'] as const)('do not wait for ever (%s)', async (how) => {
      const { tagged, pinned, repository } = put(layered([{ name: `srv/${how}`, content: Buffer.alloc(100_000) }]));
      registry.hang(new RegExp(`${repository}/manifests/`));
      expect(await code(host.resolveImage(tagged))).toBe('REGISTRY_TIMED_OUT');
      registry.release();
      registry.hang(new RegExp(`${repository}/blobs/`), how);
      expect(await code(host.prepareImage(pinned))).toBe('REGISTRY_TIMED_OUT');
      registry.release();
      expect(pidsWith('skopeo', pinned)).toEqual([]);
      await host.prepareImage(pinned);
    });

    it('are given to those who may have them', async () => {
      await using closed = await startFakeRegistry();
      const image = imageWith([tarOf(small)]);
      const tagged = closed.put('team/secret', '1', image);
      closed.requireAccount('atrium', 'pass:word');
      const authFile = join(temporaryFolder(), 'config.json');
      const auth = (text: string) => Buffer.from(text).toString('base64');
      const allowed = { allowed: [closed.host], insecure: [closed.host] };
      await using stranger = await buildHost(hostWith(allowed));
      expect(await code(stranger.host.resolveImage(tagged))).toBe('IMAGE_ACCESS_DENIED');
      await using member = await buildHost(hostWith({ ...allowed, authFile }));
      expect(await code(member.host.resolveImage(tagged))).toBe('IMAGES_OFF');
      const write = (account: string) => {
        const auths = { [closed.host]: { auth: auth(account) }, 'other.example.org': { auth: auth('other:secret') } };
        writeFileSync(authFile, JSON.stringify({ auths }), { mode: 0o600 });
      };
      write('atrium:wrong');
      expect(await code(member.host.resolveImage(tagged))).toBe('IMAGE_ACCESS_DENIED');
      write('atrium:pass:word');
      expect(await code(member.host.resolveImage(tagged))).toBe('none');
      expect(await code(member.host.prepareImage(`${closed.host}/team/secret@${image.digest}`))).toBe('none');
      expect(existsSync(hostLayout(member.dir).images) ? readdirSync(hostLayout(member.dir).images) : []).toEqual([]);
    });
  });

  it('are fetched as nobody, and again after their host was killed', async () => {
    const { pinned, repository } = put(layered([{ name: 'srv/a', content: Buffer.alloc(100_000) }]));
    registry.hang(new RegExp(`${repository}/blobs/`), 'midway');
    const remote = await startHostProcess(hostWith({}, 120_000));
    const preparing = remote.host.prepareImage(pinned).catch((error: { code: string }) => error.code);
    const [pid] = await waitFor('skopeo', () => {
      const pids = pidsWith('skopeo', pinned).filter((each) => commandOf(each).startsWith('/usr/bin/skopeo'));
      return pids.length > 0 && pids;
    });
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    expect(Number(/^Uid:\t(\d+)/m.exec(status)?.[1])).toBeGreaterThanOrEqual(2_000_000_000);
    expect(/^NoNewPrivs:\t(\d)/m.exec(status)?.[1]).toBe('1');
    expect(/^Seccomp:\t(\d)/m.exec(status)?.[1]).toBe('2');
    await remote.kill();
    expect(await preparing).toBe('KILLED');
    await waitFor('skopeo to end', () => pidsWith('skopeo', pinned).length === 0);
    registry.release();
    await using next = await startHostProcess({ ...hostWith(), dir: remote.dir });
    await next.host.prepareImage(pinned);
    expect(readdirSync(hostLayout(remote.dir).bases)).toHaveLength(1);
  });
});

function commandOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
}

async function digestOf(bytes: Buffer): Promise<string> {
  return Buffer.from(await crypto.subtle.digest('SHA-256', new Uint8Array(bytes))).toString('hex');
}
