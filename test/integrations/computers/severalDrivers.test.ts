import type { Host } from '../../../integrations/computers/host/host.ts';
import { computerSpec, runOn } from '../../builders/host.ts';
import { type RemoteHost, startHostProcess } from '../../builders/hostProcess.ts';
import { drivers } from './drivers.ts';

const there = drivers.filter(({ isFull, missing }) => isFull && missing === undefined);
const names = there.map(({ driver }) => driver);
const options = Object.assign({}, ...there.map((one) => one.options), { drivers: ['bubblewrap', 'gvisor', 'docker'] });

/** Commands that recognise each driver from inside its sandbox. */
const signs = {
  bubblewrap: 'test ! -e /.dockerenv && ! grep -qi gvisor /proc/version && echo here',
  gvisor: 'grep -qi gvisor /proc/version && echo here',
  docker: 'test -e /.dockerenv && echo here',
};

describe('a host with several drivers', () => {
  if (there.length === 0) {
    process.stderr.write(`\nNOT RUN: a host with several drivers: ${drivers[0]?.missing}\n`);
    it(`is not tested on this machine: ${drivers[0]?.missing}`, () => expect(drivers[0]?.missing).not.toBe(''));
    return;
  }
  let remote: RemoteHost;
  let host: Host;
  beforeAll(async () => {
    remote = await startHostProcess(options);
    ({ host } = remote);
  });
  afterAll(() => remote[Symbol.asyncDispose]());

  it('offers all drivers that its machine has', () => {
    expect(host.drivers).toEqual(names);
  });

  it('runs a computer with each driver in turn, with the same home', async () => {
    const spec = computerSpec();
    for (const [at, driver] of names.entries()) {
      await host.start({ ...spec, driver, generation: at + 1 });
      const ran = await runOn(host.client(spec.computerId), `${signs[driver]}; echo ${driver} >> ~/drivers`);
      expect(ran.stdout).toBe('here\n');
    }
    const ran = await runOn(host.client(spec.computerId), 'cat drivers');
    expect(ran.stdout.trim().split('\n')).toEqual(names);
    await host.destroy(spec.computerId);
    expect(await host.sweep()).toEqual([]);
  });

  it('refuses to start a computer with a driver that it does not have', async () => {
    await using other = await startHostProcess({ ...options, drivers: names.slice(0, 1) });
    const driver = 'docker';
    if (names[0] === driver) return;
    const started = other.host.start(computerSpec({ driver }));
    await expect(started).rejects.toMatchObject({ code: 'START_FAILED', message: expect.stringContaining(driver) });
  });
});
