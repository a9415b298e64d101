import { hostLayout } from '../../../integrations/computers/host/layout.ts';
import { readRecord } from '../../../integrations/computers/host/records.ts';
import { runOn, startComputer, usualLimits } from '../../builders/host.ts';
import { startHostProcess } from '../../builders/hostProcess.ts';
import { drivers } from './drivers.ts';

const { missing, options } = drivers.find(({ driver }) => driver === 'docker') ?? { missing: 'it is not tested' };

/** Work that the Docker engine does for containers, and the host for other drivers. */
describe('containers', () => {
  if (missing !== undefined) {
    process.stderr.write(`\nNOT RUN: containers: ${missing}\n`);
    it(`are not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }

  it('kill a process that takes too much memory, report the reason, and go on', async () => {
    await using remote = await startHostProcess(options);
    const { client } = await startComputer(remote.host, { limits: { ...usualLimits, memoryMiB: 128 } });
    const greedy = await runOn(client, ['perl', '-e', 'for (1 .. 600) { push @x, "x" x 1_000_000 } print "got it"']);
    expect(greedy).toMatchObject({ state: 'killed', signal: 'SIGKILL', killedBy: 'memory', stdout: '' });
    expect((await runOn(client, 'echo still here')).stdout).toBe('still here\n');
  });

  it('end when their holder is killed, and leave nothing on the host', async () => {
    await using remote = await startHostProcess({ ...options, deadlines: { watchMs: 20 } });
    const { computerId, client } = await startComputer(remote.host);
    await client.startProcess({ processId: 'prc_stays', command: 'exec sleep 600' });
    const { run } = readRecord(hostLayout(remote.dir), computerId) ?? {};
    process.kill(run?.holder?.pid ?? 0, 'SIGKILL');
    while (remote.ended.length === 0) await remote.host.inspect(computerId).catch(() => undefined);
    await expect(remote.host.inspect(computerId)).resolves.toEqual({ state: 'gone' });
    expect(await remote.host.sweep()).toEqual([]);
  });
});
