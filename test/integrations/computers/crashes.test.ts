import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { computerLayout, hostLayout } from '../../../integrations/computers/host/layout.ts';
import { type ComputerRecord, readRecord } from '../../../integrations/computers/host/records.ts';
import { processesOf } from '../../../integrations/computers/system/stamps.ts';
import { computerSpec, runOn, startComputer } from '../../builders/host.ts';
import { startHostProcess } from '../../builders/hostProcess.ts';
import { inFull } from '../../support/inFull.ts';
import { drivers } from './drivers.ts';

const full = inFull('computers');

const [{ missing, options } = drivers[0] ?? { missing: 'no driver', options: {} }] = drivers;

/** A killed host, holder or sandbox leaves nothing without an owner. */
describe('a host of computers', () => {
  if (missing !== undefined) {
    process.stderr.write(`\nNOT RUN: crashes of computers: ${missing}\n`);
    it(`is not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }
  const recordOf = (dir: string, computerId: string) =>
    JSON.parse(readFileSync(computerLayout(hostLayout(dir), computerId).record, 'utf8')) as ComputerRecord;
  const cgroupsOf = (computerId: string) =>
    ['cpu', 'memory', 'pids', 'freezer', '.']
      .map((controller) => join('/sys/fs/cgroup', controller))
      .filter((folder) => existsSync(folder))
      .flatMap((folder) =>
        readdirSync(folder)
          .filter((name) => name.startsWith('atrium-'))
          .map((name) => join(folder, name, computerId)),
      )
      .filter((folder) => existsSync(folder));
  const gone = async (uid: number | null) => {
    // The processes should end within 5 s. The test's time limit ends a longer wait.
    while (processesOf(uid ?? -1).length > 0) await new Promise(setImmediate);
  };

  it('takes over the running and paused computers of a killed host', async () => {
    const first = await startHostProcess(options);
    const { spec, computerId, client } = await startComputer(first.host);
    await client.startProcess({
      processId: 'prc_counts',
      command: 'i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done',
    });
    const paused = await startComputer(first.host);
    await first.host.pause(paused.computerId);
    const { startedAt } = await first.host.start(spec);
    await first.kill();
    await using second = await startHostProcess({ ...options, dir: first.dir });
    expect(second.host.hostId).toBe(first.host.hostId);
    await expect(second.host.start(spec)).resolves.toEqual({ startedAt });
    await expect(second.host.inspect(computerId)).resolves.toMatchObject({ state: 'running', runningProcesses: 1 });
    await expect(second.host.inspect(paused.computerId)).resolves.toMatchObject({ state: 'paused' });
    let seen = '';
    for await (const { kind, payload } of client.output('prc_counts', { follow: true })) {
      if (kind === 'stdout') seen += Buffer.from(payload).toString();
      if (seen.split('\n').length > 40) break;
    }
    const numbers = seen.split('\n').filter(Boolean).map(Number);
    expect(numbers.slice(0, 40)).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
  });

  it('ends a computer whose holder is killed, and reports the reason', async () => {
    await using remote = await startHostProcess({ ...options, deadlines: { watchMs: 20 } });
    const { spec, computerId, client } = await startComputer(remote.host);
    await client.startProcess({ processId: 'prc_stays', command: 'setsid sleep 600 & exec sleep 600' });
    const { uid, run } = recordOf(remote.dir, computerId);
    expect(processesOf(uid ?? -1).length).toBeGreaterThan(4);
    process.kill(run?.holder?.pid ?? 0, 'SIGKILL');
    await gone(uid);
    while (remote.ended.length === 0) await remote.host.inspect(computerId);
    expect(remote.ended).toMatchObject([
      { computerId, end: { generation: 1, reason: 'its holder ended without a word' } },
    ]);
    await expect(remote.host.start(spec)).rejects.toMatchObject({ code: 'GENERATION_ENDED' });
    await remote.host.start({ ...spec, generation: 2 });
    expect((await runOn(client, 'echo again')).stdout).toBe('again\n');
    await expect(client.process('prc_stays')).resolves.toMatchObject({ state: 'lost' });
  });

  it.each(['holder', 'agent'] as const)('ends a computer whose %s is frozen, and reports the reason', async (who) => {
    const deadlines = { watchMs: 20, askMs: 100, silentMs: 2_000 };
    await using remote = await startHostProcess({ ...options, deadlines });
    const { spec, computerId, client } = await startComputer(remote.host);
    await client.startProcess({ processId: 'prc_stays', command: 'exec sleep 600' });
    const { run } = recordOf(remote.dir, computerId);
    if (who === 'holder') process.kill(run?.holder?.pid ?? 0, 'SIGSTOP');
    // The agent may be frozen before it has reported the start of this process.
    else await client.startProcess({ processId: 'prc_stops', command: 'kill -STOP $PPID' }).catch(() => undefined);
    // A caller who waits for a command gets an error.
    const waiting = runOn(client, 'sleep 600').catch((error: { code: string }) => error.code);
    while (remote.ended.length === 0) await remote.host.list();
    const reason = `its ${who} did not answer for 2 s`;
    expect(remote.ended).toMatchObject([{ computerId, end: { reason, code: 'COMPUTER_NOT_ANSWERING' } }]);
    await expect(remote.host.inspect(computerId)).resolves.toEqual({ state: 'gone', code: 'COMPUTER_NOT_ANSWERING' });
    await waiting;
    await remote.host.start({ ...spec, generation: 2 });
    expect((await runOn(client, 'echo again')).stdout).toBe('again\n');
    await expect(client.process('prc_stays')).resolves.toMatchObject({ state: 'lost' });
  });

  it('does not end a paused computer as one that does not answer', async () => {
    const deadlines = { watchMs: 20, askMs: 100, silentMs: 1_000 };
    await using remote = await startHostProcess({ ...options, deadlines });
    const { computerId, client } = await startComputer(remote.host);
    await remote.host.pause(computerId);
    for (let looks = 0; looks < 500; looks++) await remote.host.list();
    await remote.host.resume(computerId);
    expect((await runOn(client, 'echo on')).stdout).toBe('on\n');
    expect(remote.ended).toEqual([]);
  });

  it('ends a computer whose first process is killed', async () => {
    await using remote = await startHostProcess({ ...options, deadlines: { watchMs: 20 } });
    const { computerId } = await startComputer(remote.host);
    const { uid, run } = recordOf(remote.dir, computerId);
    process.kill(run?.sandbox?.init.pid ?? 0, 'SIGKILL');
    await gone(uid);
    while (remote.ended.length === 0) await remote.host.inspect(computerId).catch(() => undefined);
    expect(remote.ended[0]?.end.reason).toContain('sandbox has ended');
  });

  it.each(['stop', 'destroy'] as const)('leaves no process or cgroup after %s, even hidden ones', async (method) => {
    await using remote = await startHostProcess({ ...options, deadlines: { stopGraceMs: 100 } });
    const { computerId, client } = await startComputer(remote.host);
    const { uid } = recordOf(remote.dir, computerId);
    const hidden =
      'trap "" TERM HUP INT; for i in 1 2 3 4 5; do (setsid env -i sh -c "trap \\"\\" TERM; while :; do sleep 100; done" &) & done; echo hidden; exec sleep 600';
    await client.startProcess({ processId: 'prc_hides', command: hidden });
    for await (const _ of client.output('prc_hides', { follow: true })) break;
    expect(cgroupsOf(computerId).length).toBeGreaterThan(0);
    await remote.host[method](computerId);
    expect(processesOf(uid ?? -1)).toEqual([]);
    expect(cgroupsOf(computerId)).toEqual([]);
  });

  it('kills a fork bomb', async () => {
    await using remote = await startHostProcess({ ...options, deadlines: { stopGraceMs: 0 } });
    const { computerId, client } = await startComputer(remote.host);
    const { uid } = recordOf(remote.dir, computerId);
    await client.startProcess({
      processId: 'prc_forks',
      command: [
        'perl',
        '-e',
        '$| = 1; print "on"; while (1) { my $pid = fork; next if $pid; $pid = fork; exit if $pid }',
      ],
    });
    for await (const _ of client.output('prc_forks', { follow: true })) break;
    await remote.host.stop(computerId);
    expect(processesOf(uid ?? -1)).toEqual([]);
  });

  it('can start a computer again whose first start was interrupted by kill -9', async () => {
    const first = await startHostProcess({ ...options, spareHolders: 0 });
    const spec = computerSpec();
    void first.host.start(spec).catch(() => undefined);
    const { record } = computerLayout(hostLayout(first.dir), spec.computerId);
    while (!existsSync(record) || recordOf(first.dir, spec.computerId).run?.holder == null)
      await new Promise(setImmediate);
    await first.kill();
    const { uid } = recordOf(first.dir, spec.computerId);
    await using second = await startHostProcess({ ...options, dir: first.dir });
    const state = (await second.host.inspect(spec.computerId)).state;
    // The host was killed during the start, or just after it.
    if (state === 'gone') expect(processesOf(uid ?? -1)).toEqual([]);
    await second.host.start({ ...spec, generation: 2 });
    expect((await runOn(second.host.client(spec.computerId), 'echo well')).stdout).toBe('well\n');
  });

  it('finishes a removal that was interrupted by kill -9', async () => {
    const first = await startHostProcess(options);
    const { computerId, client } = await startComputer(first.host);
    await runOn(client, 'echo data > file');
    const paths = computerLayout(hostLayout(first.dir), computerId);
    void first.host.destroy(computerId).catch(() => undefined);
    for (;;) {
      const record = readRecord(hostLayout(first.dir), computerId);
      if (record === undefined || record.removing === true) break;
      await new Promise(setImmediate);
    }
    await first.kill();
    await using second = await startHostProcess({ ...options, dir: first.dir });
    await expect(second.host.inspect(computerId)).resolves.toEqual({ state: 'absent' });
    expect([paths.home, paths.dir, paths.run].filter((path) => existsSync(path))).toEqual([]);
  });

  it('refuses a folder that another host uses', async () => {
    await using first = await startHostProcess(options);
    await expect(startHostProcess({ ...options, dir: first.dir })).rejects.toMatchObject({ code: 'FOLDER_TAKEN' });
  });

  full.it('lists all computers while one holder is frozen, and can stop that one', async () => {
    await using remote = await startHostProcess({ ...options, deadlines: { stopGraceMs: 100 } });
    const hung = await startComputer(remote.host);
    const well = await startComputer(remote.host);
    process.kill(recordOf(remote.dir, hung.computerId).run?.holder?.pid ?? 0, 'SIGSTOP');
    const listed = await remote.host.list();
    expect(listed.map(({ computerId }) => computerId).sort()).toEqual([hung.computerId, well.computerId].sort());
    expect(listed.every(({ hosted }) => hosted.state === 'running')).toBe(true);
    await remote.host.stop(hung.computerId);
    await expect(remote.host.inspect(hung.computerId)).resolves.toEqual({ state: 'gone' });
  });

  it('removes its mounts and cgroups when it shuts down', async () => {
    const remote = await startHostProcess(options);
    const { hostId } = remote.host;
    const { computerId } = await startComputer(remote.host);
    expect(cgroupsOf(computerId).length).toBeGreaterThan(0);
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).toContain(remote.dir);
    await remote[Symbol.asyncDispose]();
    const roots = ['cpu', 'memory', 'pids', 'freezer', '.'].map((name) =>
      join('/sys/fs/cgroup', name, `atrium-${hostId}`),
    );
    expect(roots.filter((root) => existsSync(root))).toEqual([]);
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(remote.dir);
  });

  it("keeps each computer's files from the users of other computers", async () => {
    await using remote = await startHostProcess(options);
    const one = await startComputer(remote.host);
    const two = await startComputer(remote.host);
    const uids = [one, two].map(({ computerId }) => recordOf(remote.dir, computerId).uid);
    expect(new Set(uids).size).toBe(2);
    for (const { computerId } of [one, two]) {
      const { home, processes, run } = computerLayout(hostLayout(remote.dir), computerId);
      for (const path of [home, processes, run]) expect(statSync(path).mode & 0o077).toBe(0);
    }
  });
});
