import { describeMachine } from '../../../integrations/computers/host/machine/describeMachine.ts';
import { computerSpec, runOn, startComputer, usualLimits } from '../../builders/host.ts';
import { startHostProcess } from '../../builders/hostProcess.ts';
import { drivers } from './drivers.ts';

const [{ missing, options } = drivers[0] ?? { missing: 'no driver', options: {} }] = drivers;
const limits = { ...usualLimits, diskMiB: 2_048 };

/** The limits of homes may add up to more than the disk has. */
describe('a full disk', () => {
  if (missing !== undefined) {
    process.stderr.write(`\nNOT RUN: a full disk: ${missing}\n`);
    it(`is not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }

  it('is reported as DISK_FULL, loses no data, and can be cleaned up from a computer', async () => {
    await using remote = await startHostProcess({ ...options, imageMiB: 300 });
    const { host, dir } = remote;
    const [one, other] = [await startComputer(host, { limits }), await startComputer(host, { limits })];
    await runOn(other.client, 'echo kept > kept; sync');
    const filled = await runOn(one.client, 'head -c 600000000 /dev/zero > big; sync; stat -c %s big');
    expect(filled.stderr).toContain('No space left on device');
    expect(Number(filled.stdout)).toBeGreaterThan(100_000_000);
    // The other computer is below its own limit, and keeps running.
    expect((await runOn(other.client, 'head -c 50000000 /dev/urandom > more')).stderr).toContain(
      'No space left on device',
    );
    expect((await runOn(other.client, 'cat kept; rm -f more')).stdout).toBe('kept\n');
    const { computerId } = computerSpec();
    await expect(host.start(computerSpec({ limits }))).rejects.toMatchObject({ code: 'DISK_FULL' });
    await expect(host.fork(one.computerId, { computerId, limits })).rejects.toMatchObject({ code: 'DISK_FULL' });
    const { off } = await describeMachine(dir, { imageMiB: 300 });
    expect(off).toContainEqual(expect.stringMatching(/nearly full: 0\.\d of 0\.\d GiB are free/));
    // Existing computers can start again, so that their users can clean up.
    await host.start({ ...one.spec, generation: 2 });
    expect((await runOn(one.client, 'rm big && sync && echo cleared')).stdout).toBe('cleared\n');
    while ((await describeMachine(dir, { imageMiB: 300 })).off.some((line) => line.includes('full')))
      await runOn(one.client, 'sync');
    await startComputer(host, { limits });
    expect((await runOn(other.client, 'cat kept')).stdout).toBe('kept\n');
  });
});
