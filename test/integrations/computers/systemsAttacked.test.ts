import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lookUntil } from '../../../base/async.ts';
import { computerLayout, hostLayout } from '../../../integrations/computers/host/layout.ts';
import { readRecord } from '../../../integrations/computers/host/records.ts';
import { ifThere } from '../../../integrations/computers/system/ifThere.ts';
import { computerSpec, runOn, startComputer, usualLimits } from '../../builders/host.ts';
import { type RemoteHost, startHostProcess } from '../../builders/hostProcess.ts';
import { drivers } from './drivers.ts';

const [{ missing, options } = { missing: 'no driver', options: {} }] = drivers;
const limits = { ...usualLimits, memoryMiB: 512, diskMiB: 1_024 };
const withBase = { base: 'debian', limits } as const;
/** A kill may come too late on a machine that is busy. */
const mostTries = 20;
const replacing = { limits, spaceId: 'spc_test', base: 'debian', replaces: true, keepsHome: true } as const;

/** What tenants, who are root inside, and kills do to computers with a root file system of their own. */
describe('computers with a root file system of their own, attacked', () => {
  if (missing !== undefined) {
    it(`are not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }
  let remote: RemoteHost;
  let outside: string;
  let system: Parameters<RemoteHost['saves']['fillFrom']>[1][number];

  beforeAll(async () => {
    remote = await startHostProcess({ ...options, imageMiB: 6_144 });
    await remote.host.prepareBase('debian');
    outside = mkdtempSync(join(tmpdir(), 'atrium-outside-'));
    await chmod(outside, 0o755);
    const { computerId } = await startComputer(remote.host, withBase);
    const taken = await remote.saves.take(computerId, 'hsv_system');
    system = { saveId: 'hsv_system', ...taken, file: join(outside, 'save') };
    await remote.saves.readTo(system.file, computerId, 'hsv_system', null);
  });

  afterAll(async () => {
    await remote?.[Symbol.asyncDispose]();
    rmSync(outside, { recursive: true, force: true });
  });

  /** A folder of the host in which every user may make files, as in `/tmp`. */
  async function openFolder(name: string): Promise<string> {
    const folder = join(outside, name);
    mkdirSync(folder);
    await chmod(folder, 0o777);
    return folder;
  }

  async function stoppedHome(command = 'echo precious > file'): Promise<string> {
    const { client, computerId } = await startComputer(remote.host, { limits });
    expect((await runOn(client, command)).stderr).toBe('');
    await remote.host.stop(computerId);
    return computerId;
  }

  async function startAgain(computerId: string, changes: Parameters<typeof computerSpec>[0] = {}) {
    await remote.host.start(computerSpec({ computerId, generation: 2, ...withBase, ...changes }));
    return remote.host.client(computerId);
  }

  /**
   * Kills the host at a moment in a fill that keeps the home, and fills again with the next host. A moment may be over
   * before the kill arrives: then it tries again with another home. Returns the computer.
   */
  async function killedInFill(isMoment: (computerId: string) => boolean): Promise<string> {
    for (let tries = 0; tries < mostTries; tries++) {
      const computerId = await stoppedHome();
      const filling = remote.saves.fillFrom(computerId, [system], replacing).then(
        () => 'filled',
        () => 'killed',
      );
      await lookUntil(() => isMoment(computerId), Boolean, { firstMs: 0, mostMs: 0, forMs: 30_000 });
      await remote.kill();
      const ended = await filling;
      remote = await startHostProcess({ ...options, imageMiB: 6_144, dir: remote.dir });
      if (ended === 'filled') continue;
      await remote.saves.fillFrom(computerId, [system], replacing);
      return computerId;
    }
    throw new Error(`The kill came too late ${mostTries} times.`);
  }

  it('keep a home that is carried over, if the host is killed before the old one is removed', async () => {
    const computerId = await killedInFill((id) => readRecord(hostLayout(remote.dir), id)?.swap !== undefined);
    expect((await runOn(await startAgain(computerId), 'cat file')).stdout).toBe('precious\n');
  });

  it('keep a home that is carried over, if the host is killed after the old one is removed', async () => {
    const computerId = await killedInFill((id) => !existsSync(computerLayout(hostLayout(remote.dir), id).home));
    expect((await runOn(await startAgain(computerId), 'cat file')).stdout).toBe('precious\n');
  });

  it('take no further users with each kill in a fill', async () => {
    const registry = '/var/lib/atrium/computer-uids';
    const ownedBy = (computerId: string) => {
      const { dir } = computerLayout(hostLayout(remote.dir), computerId);
      return readdirSync(registry).filter((uid) => ifThere(() => readFileSync(join(registry, uid), 'utf8')) === dir);
    };
    const computerId = await killedInFill((id) => ownedBy(id).length > 1);
    expect(ownedBy(computerId)).toHaveLength(1);
  });

  it('carry over files that are not copied on write, as databases make them', async () => {
    const computerId = await stoppedHome('touch db; chattr +C db; head -c 100000 /dev/zero > db');
    await remote.saves.fillFrom(computerId, [system], replacing);
    expect((await runOn(await startAgain(computerId), 'stat -c %s db')).stdout).toBe('100000\n');
  });

  it('are forked as what they are after a fill that is under way', async () => {
    const computerId = await stoppedHome();
    const filled = remote.saves.fillFrom(computerId, [system], replacing);
    const forked = remote.host.fork(computerId, { computerId: `${computerId}f`, limits });
    await Promise.all([filled, forked]);
    const { base } = readRecord(hostLayout(remote.dir), `${computerId}f`) ?? {};
    expect(base).toBe('debian');
    const client = await startAgain(`${computerId}f`);
    expect((await runOn(client, 'id -u; cat /home/user/file')).stdout).toBe('0\nprecious\n');
  });

  it('make no files on the host by links at the mounts of a private process', async () => {
    const { client } = await startComputer(remote.host, withBase);
    const open = await openFolder('open');
    await runOn(client, `mv /opt /opt2; ln -s /oldroot${open} /opt`);
    const started = client.startProcess({ processId: 'prc_private', command: 'true', isPrivate: true });
    await started.catch(() => undefined);
    expect(readdirSync(open)).toEqual([]);
  });

  it('show the secrets of a private process to no agent of the tenant', async () => {
    const { client } = await startComputer(remote.host, withBase);
    const agent = '#!/bin/sh\nexec tee /srv/stolen | /srv/agent\n';
    const open = await openFolder('other');
    await client.writeFile(`/oldroot${open}/atrium/agent`, Buffer.from(agent), { mode: 0o755, parents: true });
    await runOn(client, `cp /opt/atrium/agent /srv; mv /opt /opt2; ln -s /oldroot${open} /opt`);
    const env = { SECRET: 'x-marks' };
    const started = client.startProcess({ processId: 'prc_private', command: 'true', env, isPrivate: true });
    await started.catch(() => undefined);
    expect((await runOn(client, 'grep -c x-marks /srv/stolen')).stdout).not.toBe('1\n');
  });

  it('run programs of other users in the cgroup of programs', async () => {
    const { client } = await startComputer(remote.host, withBase);
    const { stdout } = await runOn(client, ['setpriv', '--reuid=1000', '--clear-groups', 'cat', '/proc/self/cgroup']);
    expect(stdout).not.toContain('/agent');
    const large = 'my $x = "a" x 200_000_000; print length $x';
    const ran = await runOn(client, ['setpriv', '--reuid=1000', '--clear-groups', 'perl', '-e', large]);
    expect(ran).toMatchObject({ exitCode: 0, stdout: '200000000' });
  });

  it('keep a home that is a link', async () => {
    const { client, computerId } = await startComputer(remote.host, withBase);
    await runOn(client, 'mv /home/user /srv/user; ln -s /srv/user /home/user; echo kept > /srv/user/file');
    await remote.host.stop(computerId);
    const again = await startAgain(computerId);
    expect((await runOn(again, 'cat /home/user/file')).stdout).toBe('kept\n');
  });

  it('refuse a user at once whose list is a FIFO', async () => {
    const { client, computerId } = await startComputer(remote.host, withBase);
    await runOn(client, 'rm /etc/passwd; mkfifo /etc/passwd');
    await remote.host.stop(computerId);
    const again = await startAgain(computerId, { user: 'eve' });
    await expect(runOn(again, 'true')).rejects.toMatchObject({ code: 'USER_NOT_FOUND' });
  });
});
