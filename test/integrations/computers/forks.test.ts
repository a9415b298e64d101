import { existsSync, readdirSync } from 'node:fs';
import { computerLayout, hostLayout } from '../../../integrations/computers/host/layout.ts';
import { computerSpec, runOn, startComputer, usualLimits } from '../../builders/host.ts';
import { type RemoteHost, startHostProcess } from '../../builders/hostProcess.ts';
import { inFull } from '../../support/inFull.ts';
import { pidsWith } from '../../support/processes.ts';
import { drivers } from './drivers.ts';

const full = inFull('computers');

const [{ missing, options } = drivers[0] ?? { missing: 'no driver', options: {} }] = drivers;

/** A fork of many files takes long, and must not block other work. */
describe('a fork', () => {
  if (missing !== undefined) {
    process.stderr.write(`\nNOT RUN: copies of computers: ${missing}\n`);
    it(`is not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }

  /** Starts a fork, and stops it half-way by freezing the program that changes the owner of its files. */
  async function halfCopied(remote: RemoteHost) {
    const { host, dir } = remote;
    const source = await startComputer(host);
    const many = 'mkdir "many"; for (1 .. 20_000) { open my $f, ">", "many/$_" or die }';
    await runOn(source.client, ['perl', '-e', many]);
    const { computerId } = computerSpec();
    const { home } = computerLayout(hostLayout(dir), computerId);
    const ended = host.fork(source.computerId, { computerId, limits: usualLimits }).then(
      () => 'made',
      (error: { code: string }) => error.code,
    );
    const chown = () => pidsWith(`${home}.fork`, 'chown');
    while (chown().length === 0) await new Promise(setImmediate);
    const [pid = 0] = chown();
    process.kill(pid, 'SIGSTOP');
    return { source, computerId, home, ended, pid, chown };
  }

  it('allows its source to be used, paused, stopped and destroyed meanwhile', async () => {
    await using remote = await startHostProcess(options);
    const { host } = remote;
    const { source, computerId, home, ended, pid } = await halfCopied(remote);
    expect((await runOn(source.client, 'echo used')).stdout).toBe('used\n');
    await host.pause(source.computerId);
    await host.stop(source.computerId);
    await host.start({ ...source.spec, generation: 2 });
    await host.destroy(source.computerId);
    expect(existsSync(home)).toBe(false);
    process.kill(pid, 'SIGCONT');
    await expect(ended).resolves.toBe('made');
    await host.start(computerSpec({ computerId }));
    const counted = await runOn(host.client(computerId), 'find many -type f -user user | wc -l');
    expect(counted.stdout).toBe('20000\n');
  });

  it('is aborted when its new computer is destroyed, and leaves nothing', async () => {
    await using remote = await startHostProcess(options);
    const { computerId, ended, chown } = await halfCopied(remote);
    await remote.host.destroy(computerId);
    await expect(ended).resolves.toBe('COMPUTER_ABSENT');
    expect(chown()).toEqual([]);
    const { homes } = hostLayout(remote.dir);
    expect(readdirSync(homes).filter((name) => name.startsWith(computerId))).toEqual([]);
  });

  full.it('succeeds at the next attempt after the host was killed half-way', async () => {
    const first = await startHostProcess(options);
    const { source, computerId, pid } = await halfCopied(first);
    await first.kill();
    process.kill(pid, 'SIGKILL');
    await using second = await startHostProcess({ ...options, dir: first.dir });
    await second.host.fork(source.computerId, { computerId, limits: usualLimits });
    await second.host.start(computerSpec({ computerId }));
    expect((await runOn(second.host.client(computerId), 'ls many | wc -l')).stdout).toBe('20000\n');
  });
});
