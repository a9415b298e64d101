import { availableParallelism } from 'node:os';
import type { HostClient } from '../../../integrations/computers/hostClient.ts';
import { runOn, startComputer, usualLimits } from '../../builders/host.ts';
import { type RemoteHost, startHostProcess } from '../../builders/hostProcess.ts';
import { drivers } from './drivers.ts';

const limits = { ...usualLimits, cpuMilli: 500, memoryMiB: 320, diskMiB: 96 };
const tested = drivers.filter(({ driver, missing }) => driver === 'bubblewrap' && missing === undefined);

describe.each(tested)('with $name, programs see', ({ options }) => {
  let remote: RemoteHost;
  let client: HostClient;
  beforeAll(async () => {
    remote = await startHostProcess(options);
    ({ client } = await startComputer(remote.host, { limits }));
  });
  afterAll(() => remote[Symbol.asyncDispose]());

  const said = async (command: string | string[], isPrivate = false) =>
    (await runOn(client, command, { isPrivate })).stdout.trim();

  it.each([false, true])('the memory and CPUs of their computer (private process: %s)', async (isPrivate) => {
    expect(await said("free -m | awk '/^Mem:/ {print $2}'", isPrivate)).toBe('320');
    expect(await said('nproc', isPrivate)).toBe('1');
    const node = `const os = require('os'); console.log(os.cpus().length, os.totalmem() / 2 ** 20)`;
    expect(await said(['/opt/node', '-e', node], isPrivate)).toBe('1 320');
    expect(await said('grep -c ^processor /proc/cpuinfo; grep -c "^cpu[0-9]" /proc/stat', isPrivate)).toBe('1\n1');
    expect(await said('echo $ATRIUM_CPUS $ATRIUM_MEMORY_MIB $ATRIUM_DISK_MIB $GOMAXPROCS')).toBe('0.5 320 96 1');
  });

  it('the free memory of their computer', async () => {
    const free = `awk '/^MemAvailable/ {print $2}' /proc/meminfo`;
    const before = Number(await said(free));
    expect(before).toBeLessThanOrEqual(320 * 1_024);
    const written = await runOn(client, 'echo 1 > /proc/meminfo; echo 1 > /proc/stat');
    expect(written.stderr).toContain('/proc/meminfo');
    if (remote.host.rights.cgroups !== true) return;
    // The value is updated while a program runs.
    const keep = `const held = Buffer.alloc(100 * 2 ** 20, 1);
      const look = () => {
        const left = Number(/MemAvailable: *(\\d+)/.exec(require('fs').readFileSync('/proc/meminfo', 'utf8'))[1]);
        if (left > ${before} - 90 * 1_024) setTimeout(look, 100);
        else console.log(held.length);
      };
      look();`;
    expect(await runOn(client, ['/opt/node', '-e', keep])).toMatchObject({ exitCode: 0 });
  });

  it('at most as many CPUs as the host has', async () => {
    const { client: large } = await startComputer(remote.host, { limits: { ...limits, cpuMilli: 64_000 } });
    const count = (await runOn(large, 'grep -c ^processor /proc/cpuinfo')).stdout.trim();
    expect(Number(count)).toBe(availableParallelism());
  });
});
