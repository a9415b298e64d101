import { ownLimits } from '../../../integrations/computers/processes/processStore.ts';
import { buildHost, runOn, startComputer, usualLimits } from '../../builders/host.ts';
import { inFull } from '../../support/inFull.ts';
import { waitFor } from '../../support/waitFor.ts';
import { drivers } from './drivers.ts';

const full = inFull('computers');

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));

/** Processes that Atrium itself runs on the files of a computer, also of a stopped one, without waking it. */
describe.each(usable)('a host with $name', ({ options }) => {
  it("runs Atrium's processes on the home of a stopped computer, without network, and keeps their output", async () => {
    await using built = await buildHost(options);
    const { host } = built;
    const { spec, computerId, client } = await startComputer(host);
    await runOn(client, 'echo kept > file');
    await host.stop(computerId);
    const work = await host.work(computerId);
    const said = await runOn(work.own, 'cat file; echo more > written; cat /proc/net/route | wc -l', {
      processId: 'prc_w',
    });
    expect(said.stdout).toBe('kept\n1\n');
    await expect(work.dialPort(8000)).rejects.toMatchObject({ code: 'COMPUTER_NOT_RUNNING' });
    await expect(host.inspect(computerId)).resolves.toEqual({ state: 'gone' });
    expect(await host.sweep()).toEqual([]);
    await host.start({ ...spec, generation: 2 });
    const again = await host.work(computerId);
    expect((await runOn(again.own, 'cat written')).stdout).toBe('more\n');
    // The process keeps its id, although it ran in another sandbox.
    await expect(again.own.process('prc_w')).resolves.toMatchObject({ state: 'exited', exitCode: 0 });
  });

  it("ends Atrium's processes on a stopped computer when the computer starts", async () => {
    await using built = await buildHost(options);
    const { host } = built;
    const { spec, computerId } = await startComputer(host);
    await host.stop(computerId);
    const work = await host.work(computerId);
    await work.own.startProcess({ processId: 'prc_long', command: 'while :; do date > beat; sleep 0.05; done' });
    await waitFor('the process to run', () => work.statFile('beat').catch(() => undefined));
    await host.start({ ...spec, generation: 2 });
    await expect(host.client(computerId).own.process('prc_long')).resolves.toMatchObject({
      state: expect.stringMatching(/^(lost|killed)$/),
    });
    expect((await runOn(host.client(computerId), 'rm -f beat; sleep 0.3; ls')).stdout).toBe('');
  });

  it("runs Atrium's processes unseen by users, outside of their limit, and without keeping the computer awake", async () => {
    await using built = await buildHost(options);
    const { host } = built;
    const { computerId, client } = await startComputer(host, { limits: { ...usualLimits, maxProcesses: 1 } });
    await client.startProcess({ processId: 'prc_user', command: 'sleep 1000' });
    await expect(client.startProcess({ processId: 'prc_more', command: 'true' })).rejects.toMatchObject({
      code: 'TOO_MANY_PROCESSES',
    });
    const { own } = await host.work(computerId);
    expect((await runOn(own, 'echo own', { processId: 'work' })).stdout).toBe('own\n');
    await own.startProcess({ processId: 'work-on', command: 'sleep 1000' });
    expect((await client.listProcesses()).map(({ processId }) => processId)).toEqual(['prc_user']);
    await expect(client.process('work')).rejects.toMatchObject({ code: 'PROCESS_NOT_FOUND' });
    await expect(client.signalProcess('work-on', 'SIGKILL')).rejects.toMatchObject({ code: 'PROCESS_NOT_FOUND' });

    await client.signalProcess('prc_user', 'SIGKILL');
    const { lastActiveAt } = await waitFor('the process to end', async () => {
      const status = await client.status();
      return status.runningProcesses === 0 ? status : undefined;
    });
    await runOn(own, 'true', { processId: 'work-again' });
    expect(await client.status()).toMatchObject({ runningProcesses: 0, lastActiveAt });

    await own.forgetProcess('work');
    await expect(own.process('work')).rejects.toMatchObject({ code: 'PROCESS_NOT_FOUND' });
    await expect(own.forgetProcess('work-on')).rejects.toMatchObject({ code: 'PROCESS_RUNS' });
    await own.signalProcess('work-on', 'SIGKILL');
    expect((await own.listProcesses()).map(({ processId }) => processId)).toEqual(['work-again', 'work-on']);
  });

  it("does not end Atrium's processes when the sandbox for file access to the same computer ends", async () => {
    const one = { perHost: 1, perSpace: 1, waitMs: 10_000, restMs: 0 };
    await using built = await buildHost({ ...options, files: one });
    const { host } = built;
    const stopped = async () => {
      const { computerId } = await startComputer(host);
      await host.stop(computerId);
      return computerId;
    };
    const [both, other] = [await stopped(), await stopped()];
    const { own } = await host.work(both);
    await own.startProcess({ processId: 'prc_long', command: 'sleep 1000' });
    await (await host.files(both)).listFiles('.');
    // There is one slot for file access, so the first sandbox for files ends.
    await (await host.files(other)).listFiles('.');
    await expect(own.process('prc_long')).resolves.toMatchObject({ state: 'running' });
    expect((await runOn(own, 'echo goes on')).stdout).toBe('goes on\n');
  });

  it('has fewer slots for processes that only read, so that changes go on', async () => {
    await using built = await buildHost(options);
    const { host } = built;
    const { computerId } = await startComputer(host);
    for (const mode of ['awake', 'asleep']) {
      if (mode === 'asleep') await host.stop(computerId);
      const { own } = await host.work(computerId);
      const look = (n: number) =>
        own.startProcess({ processId: `${mode}-look-${n}`, command: 'sleep 1000', isLook: true });
      for (let n = 1; n <= ownLimits.maxLooks; n++) await look(n);
      await expect(look(0)).rejects.toMatchObject({ kind: 'rateLimited', code: 'TOO_MANY_PROCESSES' });
      // Attaching takes no slot.
      expect((await look(1)).isNew).toBe(false);
      for (let n = ownLimits.maxLooks; n < ownLimits.maxProcesses; n++) {
        await own.startProcess({ processId: `${mode}-change-${n}`, command: 'sleep 1000' });
      }
      await expect(own.startProcess({ processId: 'change', command: 'true' })).rejects.toMatchObject({
        code: 'TOO_MANY_PROCESSES',
      });
      await own.signalProcess(`${mode}-look-1`, 'SIGKILL');
      await waitFor('the free slot', () => look(0).catch(() => undefined));
    }
  });

  full.it("limits the time of Atrium's processes on a stopped computer, but not on a running one", async () => {
    await using built = await buildHost({ ...options, deadlines: { workMs: 700 } });
    const { host } = built;
    const { computerId } = await startComputer(host);
    const run = async () => runOn((await host.work(computerId)).own, 'sleep 2', { timeoutMs: 60_000 });
    expect(await run()).toMatchObject({ exitCode: 0 });
    await host.stop(computerId);
    expect(await run()).toMatchObject({ killedBy: 'timeout' });
  });

  full.it("counts sandboxes for Atrium's processes separately from those for file access", async () => {
    await using built = await buildHost({ ...options, work: { perHost: 2, perSpace: 1, waitMs: 300, restMs: 0 } });
    const { host } = built;
    const stopped = async (spaceId: string) => {
      const { computerId } = await startComputer(host, { spaceId });
      await host.stop(computerId);
      return computerId;
    };
    const [a1, a2, b1] = [await stopped('spc_a'), await stopped('spc_a'), await stopped('spc_b')];
    const busy = await host.work(a1);
    await busy.own.startProcess({ processId: 'prc_long', command: 'sleep 1000' });
    await expect(host.work(a2)).rejects.toMatchObject({ kind: 'rateLimited', code: 'FILES_BUSY' });
    expect((await runOn((await host.work(b1)).own, 'echo other')).stdout).toBe('other\n');
    expect((await (await host.files(a2)).listFiles('.')).entries).toEqual([]);
    await busy.own.signalProcess('prc_long', 'SIGKILL');
    const room = await waitFor('a free slot', () => host.work(a2).catch(() => undefined));
    expect((await runOn(room.own, 'echo now')).stdout).toBe('now\n');
  });
});

if (usable.length === 0) {
  it('work on stopped computers is not tested on this machine, which has no driver', () => expect(usable).toEqual([]));
}
