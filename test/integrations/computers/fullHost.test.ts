import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { hostLayout } from '../../../integrations/computers/host/layout.ts';
import { describeMachine } from '../../../integrations/computers/host/machine/describeMachine.ts';
import { readRecord } from '../../../integrations/computers/host/records.ts';
import { runOn, startComputer, usualLimits } from '../../builders/host.ts';
import { startHostProcess } from '../../builders/hostProcess.ts';
import { mountSmallDisk, noSmallDisk } from '../../support/smallDisk.ts';
import { waitFor } from '../../support/waitFor.ts';
import { drivers } from './drivers.ts';

const [{ missing = noSmallDisk, options } = { missing: 'no driver', options: {} }] = drivers;
const limits = { ...usualLimits, diskMiB: 2_048 };
const writing = (file: string) => `while head -c 20000000 /dev/urandom >> ${file} && sync; do :; done`;

/** The image with the homes while the disk that it is on is full. */
describe('homes on a full disk of a host', () => {
  if (missing !== undefined) {
    process.stderr.write(`\nNOT RUN: homes on a full disk: ${missing}\n`);
    it(`is not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }

  it('just find no more room, and get it when the disk has some', async () => {
    using disk = mountSmallDisk(800);
    const part = `${disk.folder}/part`;
    writeFileSync(part, Buffer.alloc(250 * 1_048_576));
    const dir = `${disk.folder}/computers`;
    await using remote = await startHostProcess({ ...options, dir, deadlines: { watchMs: 20 } });
    const { image } = hostLayout(dir);
    const { size, blocks } = statSync(image);
    expect(blocks * 512).toBeGreaterThanOrEqual(size);
    const { client } = await startComputer(remote.host, { limits });
    await runOn(client, 'echo kept > kept; sync');
    await client.startProcess({
      processId: 'prc_writes',
      input: true,
      command: `read go; ${writing('big')} 2> /tmp/errors`,
    });
    await client.startProcess({
      processId: 'prc_cleans',
      input: true,
      command: 'read go; rm -f big; echo more > more; sync',
    });
    disk.fill();
    await client.sendInput('prc_writes', { bytes: Buffer.from('go\n'), eof: true });
    await waitFor('no more room', async () => (await client.process('prc_writes')).state === 'exited');
    await client.sendInput('prc_cleans', { bytes: Buffer.from('go\n'), eof: true });
    await waitFor('room inside', async () => (await client.process('prc_cleans')).state === 'exited');
    expect((await describeMachine(dir)).fault).toBeUndefined();
    disk.clear();
    rmSync(part);
    await waitFor('the image to grow', () => statSync(image).size > size + 64 * 1_048_576);
    const more = await runOn(
      client,
      'cat kept more /tmp/errors; head -c 300000000 /dev/zero > big; sync; stat -c %s big',
    );
    expect(more.stdout).toMatch(/^kept\nmore\n.*No space left on device\n300000000\n$/);
    expect(remote.ended).toEqual([]);
  });

  it('that made their file system read-only are mounted anew, and nothing is lost', async () => {
    using disk = mountSmallDisk(560);
    const dir = `${disk.folder}/computers`;
    // An image of an earlier release, of which the disk has only what was written.
    const { image, homes } = hostLayout(dir);
    mkdirSync(homes, { recursive: true });
    writeFileSync(image, '');
    truncateSync(image, 900 * 1_048_576);
    execFileSync('mkfs.btrfs', ['--quiet', image]);
    execFileSync('mount', ['-o', 'loop', image, homes]);
    execFileSync('btrfs', ['quota', 'enable', homes]);
    await using remote = await startHostProcess({ ...options, dir, deadlines: { watchMs: 20 } });
    const { host } = remote;
    const { client, computerId, spec } = await startComputer(host, { limits });
    await runOn(client, 'echo kept > kept; sync');
    await client.startProcess({ processId: 'prc_writes', input: true, command: `read go; ${writing('big')}` });
    disk.fill();
    await client.sendInput('prc_writes', { bytes: Buffer.from('go\n'), eof: true });
    await waitFor('the fault', async () => (await describeMachine(dir)).fault?.includes('read-only'));
    await expect(host.start({ ...spec, computerId: `${computerId}b` })).rejects.toMatchObject({ code: 'HOST_FAILED' });
    disk.clear();
    const again = () =>
      host.start({ ...spec, generation: 2 }).then(
        () => true,
        () => false,
      );
    await waitFor('the homes to be usable', again);
    // By its host, or because its holder could not write any more.
    expect(remote.ended).toMatchObject([{ computerId }]);
    const after = await runOn(client, 'cat kept; rm -f big; echo new > new; sync; cat new');
    expect(after).toMatchObject({ stdout: 'kept\nnew\n', stderr: '' });
  });

  it('are in use only by the processes of their own host', async () => {
    await using one = await startHostProcess({ ...options });
    await using other = await startHostProcess({ ...options });
    const { computerId } = await startComputer(other.host);
    const { pid = 0 } = readRecord(hostLayout(other.dir), computerId)?.run?.holder ?? {};
    const mounts = execFileSync('cat', [`/proc/${pid}/mountinfo`]).toString();
    expect(mounts).toContain(hostLayout(other.dir).homes);
    expect(mounts).not.toContain(hostLayout(one.dir).homes);
  });
});
