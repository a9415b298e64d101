import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sandboxAdvice } from '../../../integrations/computers/drivers/bubblewrap/driver.ts';
import { readUsage } from '../../../integrations/computers/host/confinement/cgroupConfinement.ts';
import {
  type CgroupRoots,
  findCgroups,
  makeRoots,
} from '../../../integrations/computers/host/confinement/cgroupRoots.ts';
import {
  holderCgroups,
  isFrozen,
  killOnce,
  makeComputerCgroup,
  moveTo,
  pidsIn,
  removeComputerCgroup,
  setFrozen,
} from '../../../integrations/computers/host/confinement/computerCgroup.ts';
import {
  describeMachine,
  type MachineDescription,
  socketAdvice,
} from '../../../integrations/computers/host/machine/describeMachine.ts';
import { stampByPs } from '../../../integrations/computers/system/stamps.ts';
import type { DriverName } from '../../../integrations/computers/types.ts';
import { usualLimits } from '../../builders/host.ts';
import { startHostProcess } from '../../builders/hostProcess.ts';
import { canBeOtherUser } from '../../support/otherUser.ts';
import { drivers } from './drivers.ts';

const isUsable = drivers[0]?.missing === undefined;
// A v2 hierarchy beside v1 has no limits, but it can freeze and kill.
const unified = ['/sys/fs/cgroup/unified', '/sys/fs/cgroup'].find((path) =>
  existsSync(join(path, 'cgroup.subtree_control')),
);

/** A test that needs root and the machine's support. Elsewhere a line says that it was not run. */
function itAsRoot(name: string, isHere: boolean | undefined, test: () => Promise<void>): void {
  if (canBeOtherUser && isHere === true) return void it(name, test);
  process.stderr.write(`\nNOT RUN: ${name}\n`);
  it(`${name} (not run here)`, () => expect(canBeOtherUser && isHere).not.toBe(true));
}

describe('the reason why a machine cannot run computers', () => {
  it.each([
    ['user/max_user_namespaces', '0', 'sysctl -w user.max_user_namespaces=10000'],
    ['kernel/unprivileged_userns_clone', '0', 'sysctl -w kernel.unprivileged_userns_clone=1'],
    ['kernel/apparmor_restrict_unprivileged_userns', '1', 'AppArmor keeps bwrap from user namespaces'],
  ])('is that %s is %s', (setting, value, advice) => {
    const settings: Record<string, string> = { 'user/max_user_namespaces': '10000', [setting]: value };
    expect(sandboxAdvice('No permissions', (name) => settings[name])).toContain(advice);
  });

  it("is the sandbox's own error if no setting explains it", () => {
    expect(sandboxAdvice('Can’t mount proc', () => undefined)).toContain('Can’t mount proc');
  });

  itAsRoot('says so where user namespaces are off', isUsable, async () => {
    // Use a user namespace that allows no further ones, so that nothing changes for this machine.
    const program = `
      import { describeMachine } from ${JSON.stringify(new URL('../../../integrations/computers/host/machine/describeMachine.ts', import.meta.url).href)};
      console.log(JSON.stringify(await describeMachine('/nonexistent')));`;
    const script = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"';
    const command = ['unshare', '--user', '--map-root-user', 'sh', '-c', script, 'sh'];
    const [file = '', ...args] = [...command, process.execPath, '--no-warnings', '--input-type=module', '-e', program];
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk;
    });
    await once(child, 'close');
    const refused = expect.stringContaining('user.max_user_namespaces is 0');
    expect((JSON.parse(output) as MachineDescription).drivers).toContainEqual({ name: 'bubblewrap', refused });
  });
});

describe('doctor', () => {
  it('changes nothing on the machine', async () => {
    const dir = join(tmpdir(), `atrium-none-${process.pid}`);
    const { off, drivers } = await describeMachine(dir);
    expect(drivers.map(({ name }) => name)).toEqual(['bubblewrap', 'gvisor', 'docker']);
    for (const { refused } of drivers) expect(refused === undefined || refused.length > 10).toBe(true);
    expect(Array.isArray(off)).toBe(true);
    expect(existsSync(dir)).toBe(false);
  });
});

itAsRoot('a folder that other users cannot enter is refused, with what to do', isUsable, async () => {
  const parent = mkdtempSync(join(tmpdir(), 'atrium-closed-'));
  chmodSync(parent, 0o700);
  try {
    const dir = join(parent, 'computers');
    const advice = new RegExp(`${parent} may be entered by root only.*ATRIUM_COMPUTERS_DIR.*chmod o\\+x ${parent}`);
    // Doctor reports this before a start.
    const refused = expect.stringMatching(advice);
    expect((await describeMachine(dir)).drivers[0]).toEqual({ name: 'bubblewrap', refused });
    await expect(startHostProcess({ dir })).rejects.toMatchObject({
      code: 'COMPUTERS_OFF',
      message: expect.stringMatching(advice),
    });
    chmodSync(parent, 0o711);
    expect((await describeMachine(dir)).drivers[0]?.refused).toBeUndefined();
  } finally {
    rmSync(parent, { recursive: true, force: true });
  }
});

it('a process has a stable stamp also without /proc', () => {
  const stamp = stampByPs(process.pid);
  expect(stamp).toEqual({ pid: process.pid, startTime: expect.stringMatching(/\d\d:\d\d:\d\d/) });
  expect(stampByPs(process.pid)).toEqual(stamp);
  expect(stampByPs(4_194_305)).toBeUndefined();
});

describe("doctor reports a driver's missing requirement", () => {
  const refusal = async (name: DriverName, options: Parameters<typeof describeMachine>[1]) => {
    const { drivers } = await describeMachine('/nonexistent', { drivers: [name], ...options });
    return drivers[0]?.refused;
  };

  it('for gVisor: the program', async () => {
    expect(await refusal('gvisor', { runsc: '/nonexistent/runsc' })).toContain('ATRIUM_COMPUTERS_RUNSC');
  });

  it('for docker: the engine or the image', async () => {
    const at = (address: string) => refusal('docker', { docker: { address } });
    expect(await at('ssh://somewhere')).toContain('ssh://somewhere');
    expect(await at('unix:///nonexistent/docker.sock')).toContain('cannot be used');
    const engine = createServer((_request, response) => response.writeHead(404).end('{"message":"No such image"}'));
    engine.listen(0, '127.0.0.1');
    await once(engine, 'listening');
    expect(await at(`tcp://127.0.0.1:${(engine.address() as AddressInfo).port}`)).toContain('no image atrium-computer');
    engine.close();
  });
});

describe('cgroups', () => {
  const line = (path: string, type: string, options: string) =>
    `31 23 0:28 / ${path} rw - ${type} ${type} rw,${options}`;

  it("are found in v1 by each controller's mount", () => {
    const mountinfo = ['cpu,cpuacct', 'memory', 'pids', 'freezer']
      .map((name) => line(`/cg/${name}`, 'cgroup', name))
      .join('\n');
    expect(findCgroups(mountinfo, 'ours')).toEqual({
      roots: {
        version: 1,
        cpu: '/cg/cpu,cpuacct/ours',
        cpuacct: '/cg/cpu,cpuacct/ours',
        memory: '/cg/memory/ours',
        pids: '/cg/pids/ours',
        freezer: '/cg/freezer/ours',
      },
    });
  });

  it('are found in v2 only with all controllers', () => {
    const root = mkdtempSync(join(tmpdir(), 'atrium-cgroup-'));
    const mountinfo = line(root, 'cgroup2', '');
    writeFileSync(join(root, 'cgroup.controllers'), 'hugetlb\n');
    expect(findCgroups(mountinfo, 'ours')).toHaveProperty('missing');
    writeFileSync(join(root, 'cgroup.controllers'), 'cpuset cpu io memory pids\n');
    expect(findCgroups(mountinfo, 'ours')).toHaveProperty('roots.version', 2);
    rmSync(root, { recursive: true });
  });

  it('of v1 that do not count the memory of sockets are reported with advice', () => {
    const top = mkdtempSync(join(tmpdir(), 'atrium-cgroup-'));
    const memory = join(top, 'ours');
    const roots: CgroupRoots = { version: 1, cpu: memory, cpuacct: memory, memory, pids: memory, freezer: memory };
    expect(socketAdvice(roots)).toContain('cgroups v2');
    expect(socketAdvice({ ...roots, version: 2 })).toBeUndefined();
    writeFileSync(join(top, 'memory.kmem.tcp.limit_in_bytes'), '0');
    expect(socketAdvice(roots)).toBeUndefined();
    rmSync(top, { recursive: true });
  });

  it('of v2 get the limits written to their files', () => {
    const top = mkdtempSync(join(tmpdir(), 'atrium-cgroup-'));
    const root = join(top, 'ours');
    const roots: CgroupRoots = { version: 2, cpu: root, cpuacct: root, memory: root, pids: root, freezer: root };
    expect(makeRoots(roots)).toBeUndefined();
    expect(readFileSync(join(top, 'cgroup.subtree_control'), 'utf8')).toBe('+cpu +memory +pids');
    mkdirSync(join(root, 'cmp_a/box/work'), { recursive: true });
    makeComputerCgroup(roots, 'cmp_a', { ...usualLimits, cpuMilli: 1_500, memoryMiB: 100, maxTasks: 50 }, 'apart');
    const read = (path: string) => readFileSync(join(root, 'cmp_a', path), 'utf8');
    expect(read('box/cpu.max')).toBe('150000 100000');
    expect(read('box/work/memory.max')).toBe(String(100 * 1_048_576));
    expect(read('box/work/pids.max')).toBe('50');
    expect(read('box/cgroup.subtree_control')).toBe('+cpu +memory +pids');
    writeFileSync(join(root, 'cmp_a/box/cpu.stat'), 'usage_usec 2500000\nuser_usec 1\n');
    writeFileSync(join(root, 'cmp_a/box/work/memory.current'), '4096\n');
    writeFileSync(join(root, 'cmp_a/box/work/memory.peak'), '8192\n');
    writeFileSync(join(root, 'cmp_a/box/work/pids.current'), '3\n');
    writeFileSync(join(root, 'cmp_a/box/work/memory.events'), 'oom 4\noom_kill 2\n');
    expect(readUsage(roots, 'cmp_a')).toEqual({
      cpuSeconds: 2.5,
      memoryBytes: 4096,
      memoryPeakBytes: 8192,
      tasks: 3,
      oomKills: 2,
    });
    rmSync(top, { recursive: true });
  });

  itAsRoot('of v2 freeze, and kill what is frozen', unified !== undefined, async () => {
    const root = join(unified ?? '', `atrium-test-${process.pid}`);
    const roots: CgroupRoots = { version: 2, cpu: root, cpuacct: root, memory: root, pids: root, freezer: root };
    for (const path of ['holder', 'box/agent', 'box/work']) mkdirSync(join(root, 'cmp_a', path), { recursive: true });
    const child = spawn('sleep', ['600'], { stdio: 'ignore' });
    try {
      moveTo(roots, 'cmp_a', 'box/agent', [child.pid ?? 0]);
      expect(pidsIn(roots, 'cmp_a')).toEqual([child.pid]);
      expect(holderCgroups(roots, 'cmp_a', 0, 'apart').settle?.workProcs).toEqual([
        join(root, 'cmp_a/box/work/cgroup.procs'),
      ]);
      setFrozen(roots, 'cmp_a', true);
      while (!isFrozen(roots, 'cmp_a')) await new Promise(setImmediate);
      killOnce(roots, 'cmp_a');
      expect((await once(child, 'exit'))[1]).toBe('SIGKILL');
      while (!removeComputerCgroup(roots, 'cmp_a')) await new Promise(setImmediate);
      expect(existsSync(join(root, 'cmp_a'))).toBe(false);
    } finally {
      child.kill('SIGKILL');
      rmdirSync(root);
    }
  });
});
