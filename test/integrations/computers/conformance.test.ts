import { existsSync } from 'node:fs';
import type { Host } from '../../../integrations/computers/host/host.ts';
import { computerSpec, runOn, startComputer, usualLimits } from '../../builders/host.ts';
import { startHostProcess } from '../../builders/hostProcess.ts';
import { drivers } from './drivers.ts';

/** Every driver must do everything that workflows and the API rely on. */
describe.each(drivers)('a host with $name', ({ name, driver, options, missing }) => {
  if (missing !== undefined) {
    process.stderr.write(`\nNOT RUN: conformance of ${name}: ${missing}\n`);
    it(`is not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }
  let host: Host;
  let dispose: () => Promise<void>;
  beforeAll(async () => {
    const remote = await startHostProcess({ ...options, deadlines: { stopGraceMs: 500 } });
    ({ host } = remote);
    dispose = async () => remote[Symbol.asyncDispose]();
  });
  afterAll(() => dispose());

  it('starts a generation once for many simultaneous calls', async () => {
    const spec = computerSpec();
    const answers = await Promise.all(Array.from({ length: 20 }, () => host.start(spec)));
    expect(new Set(answers.map(({ startedAt }) => startedAt)).size).toBe(1);
    await expect(host.inspect(spec.computerId)).resolves.toMatchObject({
      state: 'running',
      generation: 1,
      runningProcesses: 0,
    });
    await host.stop(spec.computerId);
    await expect(host.start(spec)).rejects.toMatchObject({ code: 'GENERATION_ENDED' });
    await host.start({ ...spec, generation: 2 });
    await expect(host.start(spec)).rejects.toMatchObject({ code: 'GENERATION_OUTDATED' });
  });

  it('ends the older generation of a computer when a newer one starts', async () => {
    const { spec, client } = await startComputer(host);
    await client.startProcess({ processId: 'prc_old', command: 'exec sleep 600' });
    await host.start({ ...spec, generation: 2 });
    await expect(client.status()).resolves.toMatchObject({ generation: 2, runningProcesses: 0 });
    await expect(client.process('prc_old')).resolves.toMatchObject({ state: 'killed', killedBy: 'stop' });
  });

  it('runs commands as an unprivileged user with a home, a private network and the variables', async () => {
    const { client } = await startComputer(host, { env: { GREETING: 'good day' } });
    const ran = await runOn(
      client,
      'id -u; id -g; pwd; echo $GREETING $USUAL; hostname; grep -h Cap /proc/self/status; ls /sys/class/net /proc/sys/net/ipv4/conf',
      { usualEnv: { GREETING: 'not this', USUAL: 'to you' } },
    );
    // A container does not map user ids, so it shows the id of the computer's user on the host.
    const id = driver === 'docker' ? expect.stringMatching(/^[1-9]\d*$/) : '1000';
    expect(ran.stdout.split('\n').slice(0, 5)).toEqual([id, id, '/home/user', 'good day to you', 'computer']);
    expect(ran.stdout).toMatch(/CapEff:\t0{16}/);
    expect(ran.stdout).toMatch(/CapBnd:\t0{16}/);
  });

  it('lets a computer listen on its own low ports', async () => {
    const { client } = await startComputer(host);
    const ran = await runOn(client, [
      'perl',
      '-MIO::Socket::INET',
      '-e',
      'print IO::Socket::INET->new(LocalAddr => "127.0.0.1:443", Listen => 1) ? "yes" : $!',
    ]);
    expect(ran.stdout).toBe('yes');
  });

  it('keeps only the home and the logs when a computer stops', async () => {
    const { spec, computerId, client } = await startComputer(host);
    await runOn(client, 'echo kept > ~/kept; echo lost > /tmp/lost; echo lost > /dev/shm/lost', {
      processId: 'prc_first',
    });
    await host.stop(computerId);
    await expect(host.inspect(computerId)).resolves.toEqual({ state: 'gone' });
    await host.start({ ...spec, generation: 2 });
    expect((await runOn(client, 'cat ~/kept; ls -A /tmp /dev/shm')).stdout).toBe('kept\n/dev/shm:\n\n/tmp:\n');
    await expect(client.process('prc_first')).resolves.toMatchObject({ state: 'exited', exitCode: 0 });
  });

  it('freezes a paused computer, which continues after a resume', async () => {
    const { computerId, client } = await startComputer(host);
    await client.startProcess({ processId: 'prc_ticks', command: 'while :; do echo tick; sleep 0.01; done' });
    await host.pause(computerId);
    await host.pause(computerId);
    await expect(host.inspect(computerId)).resolves.toMatchObject({ state: 'paused', runningProcesses: 1 });
    await expect(client.status()).resolves.toMatchObject({ isPaused: true });
    const before = await host.metrics(computerId);
    const size = (await client.process('prc_ticks')).outputBytes;
    // During these calls a running process would have written more.
    for (let look = 0; look < 20; look += 1) await host.inspect(computerId);
    expect((await host.metrics(computerId)).cpuSeconds).toBe(before.cpuSeconds);
    expect((await client.process('prc_ticks')).outputBytes - size).toBeLessThan(10);
    await host.resume(computerId);
    await host.resume(computerId);
    expect((await runOn(client, 'echo awake')).stdout).toBe('awake\n');
    await expect(host.inspect(computerId)).resolves.toMatchObject({ state: 'running' });
    await expect(client.status()).resolves.toMatchObject({ isPaused: false });
  });

  it.each(['stop', 'destroy'] as const)('can %s a paused computer', async (method) => {
    const { computerId, client } = await startComputer(host);
    await client.startProcess({ processId: 'prc_sleeps', command: 'setsid sleep 600 & sleep 600' });
    await host.pause(computerId);
    await host[method](computerId);
    await host[method](computerId);
    await expect(host.inspect(computerId)).resolves.toEqual({ state: method === 'stop' ? 'gone' : 'absent' });
  });

  it('aborts a start if the computer is destroyed meanwhile', async () => {
    const spec = computerSpec();
    const starting = host.start(spec).catch((error: { code: string }) => error.code);
    await host.destroy(spec.computerId);
    expect(['START_FAILED', 'COMPUTER_ABSENT', 'object']).toContain(
      await starting.then((is) => (typeof is === 'string' ? is : typeof is)),
    );
    await expect(host.inspect(spec.computerId)).resolves.toEqual({ state: 'absent' });
  });

  it('forks a computer with a copy of its home at that moment', async () => {
    const { computerId, client } = await startComputer(host);
    await runOn(client, 'mkdir a; echo one > a/file; ln -s /etc/passwd a/link');
    const copy = computerSpec();
    await host.fork(computerId, { computerId: copy.computerId, limits: usualLimits });
    await host.fork(computerId, { computerId: copy.computerId, limits: usualLimits });
    await expect(host.inspect(copy.computerId)).resolves.toEqual({ state: 'gone' });
    await runOn(client, 'echo two > a/file');
    await host.start(copy);
    const ran = await runOn(
      host.client(copy.computerId),
      'cat a/file; readlink a/link; echo three > a/file && cat a/file',
    );
    expect(ran.stdout).toBe('one\n/etc/passwd\nthree\n');
    expect((await runOn(client, 'cat a/file')).stdout).toBe('two\n');
  });

  it('measures CPU time, memory, disk and tasks of a computer', async () => {
    const { computerId, client } = await startComputer(host);
    await runOn(client, 'head -c 20000000 /dev/urandom > big; sync; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done');
    await client.startProcess({
      processId: 'prc_holds',
      // Keeps writing to its memory, since some kernels reclaim idle memory.
      command: [
        'perl',
        '-e',
        '$| = 1; $x = "x" x 60_000_000; print "held"; for (;;) { for ($n = 0; $n < 60_000_000; $n += 4096) { substr($x, $n, 1) = "y" } select(undef, undef, undef, 0.1) }',
      ],
    });
    for await (const _ of client.output('prc_holds', { follow: true })) break;
    const metrics = await host.metrics(computerId);
    expect(metrics.cpuSeconds).toBeGreaterThan(0.05);
    expect(metrics.diskBytes).toBeGreaterThan(20_000_000);
    expect(metrics.memoryBytes).toBeGreaterThan(60_000_000);
    expect(metrics.tasks).toBeGreaterThan(0);
  });

  it('removes everything of a computer, also a home with deep and closed folders', async () => {
    const { computerId, client } = await startComputer(host);
    await runOn(
      client,
      'mkdir -p closed/in; chmod 0 closed/in closed; i=0; while [ $i -lt 300 ]; do mkdir dddddddddddddddddddd && cd dddddddddddddddddddd || break; i=$((i+1)); done',
    );
    await host.destroy(computerId);
    await expect(host.inspect(computerId)).resolves.toEqual({ state: 'absent' });
    await expect(host.metrics(computerId)).rejects.toMatchObject({ code: 'COMPUTER_ABSENT' });
    expect((await host.list()).map((one) => one.computerId)).not.toContain(computerId);
  });

  it('refuses an invalid id of a computer', async () => {
    await expect(host.start(computerSpec({ computerId: '../../etc' }))).rejects.toMatchObject({
      code: 'COMPUTER_ABSENT',
    });
    await expect(host.inspect('..')).resolves.toEqual({ state: 'absent' });
    await host.destroy('../../etc');
    expect(existsSync('/etc/passwd')).toBe(true);
  });
});
