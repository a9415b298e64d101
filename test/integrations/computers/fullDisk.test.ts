import { describeMachine } from '../../../integrations/computers/host/machine/describeMachine.ts';
import { computerSpec, runOn, startComputer, usualLimits } from '../../builders/host.ts';
import { startHostProcess } from '../../builders/hostProcess.ts';
import { drivers } from './drivers.ts';

const [{ missing, options } = drivers[0] ?? { missing: 'no driver', options: {} }] = drivers;
const limits = { ...usualLimits, diskMiB: 2_048 };

/** Homes may be promised more than their disk has. */
describe('a disk that is full', () => {
  if (missing !== undefined) {
    process.stderr.write(`\nNOT RUN: a full disk: ${missing}\n`);
    it(`is not tried here: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }

  it('is named by whatever needs it, keeps what it has, and can be cleared up', async () => {
    await using remote = await startHostProcess({ ...options, imageMiB: 300 });
    const { host, dir } = remote;
    const [one, other] = [await startComputer(host, { limits }), await startComputer(host, { limits })];
    await runOn(other.client, 'echo kept > kept; sync');
    const filled = await runOn(one.client, 'head -c 600000000 /dev/zero > big; sync; stat -c %s big');
    expect(filled.stderr).toContain('No space left on device');
    expect(Number(filled.stdout)).toBeGreaterThan(100_000_000);
    // Not its own limit, and not the end of anything that runs.
    expect((await runOn(other.client, 'head -c 50000000 /dev/urandom > more')).stderr).toContain(
      'No space left on device',
    );
    expect((await runOn(other.client, 'cat kept; rm -f more')).stdout).toBe('kept\n');
    const { computerId } = computerSpec();
    await expect(host.start(computerSpec({ limits }))).rejects.toMatchObject({ code: 'DISK_FULL' });
    await expect(host.fork(one.computerId, { computerId, limits })).rejects.toMatchObject({ code: 'DISK_FULL' });
    const { off } = await describeMachine(dir);
    expect(off).toContainEqual(expect.stringMatching(/nearly full: 0\.\d of 0\.\d GiB are free/));
    // Those that there are start again, which is how they are cleared up.
    await host.start({ ...one.spec, generation: 2 });
    expect((await runOn(one.client, 'rm big && sync && echo cleared')).stdout).toBe('cleared\n');
    while ((await describeMachine(dir)).off.some((line) => line.includes('full'))) await runOn(one.client, 'sync');
    await startComputer(host, { limits });
    expect((await runOn(other.client, 'cat kept')).stdout).toBe('kept\n');
  });
});
