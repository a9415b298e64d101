import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type CgroupRoots, findCgroups } from '../../../integrations/computers/host/confinement/cgroupRoots.ts';
import { agentTasks } from '../../../integrations/computers/host/confinement/computerCgroup.ts';
import type { Host } from '../../../integrations/computers/host/host.ts';
import { computerLayout, hostLayout } from '../../../integrations/computers/host/layout.ts';
import { hostLimits, maxTerminals } from '../../../integrations/computers/host/machine/machine.ts';
import { buildHost, runOn, startComputer, usualLimits } from '../../builders/host.ts';
import { startHostProcess } from '../../builders/hostProcess.ts';
import { until } from '../../support/processes.ts';
import { drivers } from './drivers.ts';

/** Every Debian has Perl, but not every machine has a C compiler. */
const perl = (program: string) => ['perl', '-e', `$| = 1; ${program}`];
const limits = { ...usualLimits, cpuMilli: 250, memoryMiB: 128, diskMiB: 32, maxTasks: 40 };
const mebibyte = 1_048_576;
const cgroupsOf = ({ hostId }: Host): CgroupRoots => {
  const found = findCgroups(readFileSync('/proc/self/mountinfo', 'utf8'), `atrium-${hostId}`);
  if ('missing' in found) throw new Error(found.missing);
  return found.roots;
};
const cgroupFile = (host: Host, controller: 'cpu' | 'memory', computerId: string, path: string) =>
  readFileSync(join(cgroupsOf(host)[controller], computerId, path), 'utf8');
const hasSysResource = () => {
  const effective = /^CapEff:\s*(\w+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return (BigInt(`0x${effective}`) >> 24n) % 2n === 1n;
};
const terminalsOfMachine = () => Number(readFileSync('/proc/sys/kernel/pty/nr', 'utf8'));

const [{ missing, options } = drivers[0] ?? { missing: 'no driver', options: {} }] = drivers;

/** Each limit is tested by a program that tries to exceed it. */
describe('a computer with limits', () => {
  if (missing !== undefined) {
    process.stderr.write(`\nNOT RUN: limits of computers: ${missing}\n`);
    it(`is not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }
  let host: Host;
  let dispose: () => Promise<void>;
  beforeAll(async () => {
    const remote = await startHostProcess(options);
    ({ host } = remote);
    dispose = async () => remote[Symbol.asyncDispose]();
  });
  afterAll(() => dispose());

  it('with a quarter of a core gets no more, although four processes spin', async () => {
    const { client, computerId } = await startComputer(host, { limits });
    const before = (await host.metrics(computerId)).cpuSeconds;
    // Four processes spin for 2 s.
    const spin = 'for (1 .. 3) { last unless fork } use Time::HiRes "time"; $end = time + 2; 1 while time < $end;';
    await runOn(client, perl(`${spin} 1 while wait > 0`));
    const usedSeconds = (await host.metrics(computerId)).cpuSeconds - before;
    // The limit allows 0.5 s, and at most a period at each end. Without it, they would use at least 2 s.
    expect(usedSeconds).toBeGreaterThan(0.05);
    expect(usedSeconds).toBeLessThan(1);
  });

  it('has a holder with half of its own CPU limit, but with at least a quarter of a core', async () => {
    const { computerId } = await startComputer(host, { limits: { ...limits, cpuMilli: 2_000 } });
    const smallest = await startComputer(host, { limits: { ...limits, cpuMilli: 100 } });
    const quota = (id: string, path: string) => {
      const { version } = cgroupsOf(host);
      const file = cgroupFile(host, 'cpu', id, `${path}/${version === 2 ? 'cpu.max' : 'cpu.cfs_quota_us'}`);
      return Number(file.split(' ')[0]);
    };
    expect(quota(computerId, 'box')).toBe(200_000);
    expect(quota(computerId, 'holder')).toBe(100_000);
    expect(quota(smallest.computerId, 'box')).toBe(10_000);
    expect(quota(smallest.computerId, 'holder')).toBe(25_000);
  });

  it('has processes that the kernel kills first if memory is short, and they cannot change that', async () => {
    const { client } = await startComputer(host, { limits });
    const score = '/proc/self/oom_score_adj';
    const ran = await runOn(client, `cat /proc/1/oom_score_adj; echo 0 > ${score}; cat ${score}`);
    const [first, own] = ran.stdout.split('\n').map(Number);
    expect(first).toBe(300);
    // Root without CAP_SYS_RESOURCE cannot prevent the change.
    expect(own).toBeGreaterThanOrEqual(hasSysResource() ? 300 : 0);
  });

  it('kills a process that exceeds the memory, reports the reason, and goes on', async () => {
    const { client, computerId } = await startComputer(host, { limits });
    const fits = await runOn(client, perl('$x = "x" x 40_000_000; print length $x'));
    expect(fits).toMatchObject({ state: 'exited', stdout: '40000000' });
    const greedy = await runOn(client, perl('for (1 .. 400) { push @x, "x" x 1_000_000 } print "got it"'));
    expect(greedy).toMatchObject({ state: 'killed', signal: 'SIGKILL', killedBy: 'memory', stdout: '' });
    expect((await host.metrics(computerId)).oomKills).toBeGreaterThan(0);
    expect((await host.metrics(computerId)).memoryPeakBytes).toBeLessThanOrEqual(limits.memoryMiB * mebibyte);
    expect((await runOn(client, 'echo still here')).stdout).toBe('still here\n');
  });

  it('counts temporary files as memory, and bounds them', async () => {
    const { client, computerId } = await startComputer(host, { limits });
    for (const folder of ['/tmp', '/dev/shm', '/run']) {
      const ran = await runOn(
        client,
        `head -c 200000000 /dev/zero > ${folder}/big; stat -c %s ${folder}/big; rm ${folder}/big`,
      );
      expect(ran.stderr).toContain('No space left on device');
      expect(Number(ran.stdout)).toBeLessThanOrEqual((limits.memoryMiB / 2) * mebibyte);
    }
    // With all of them full, they can still be cleaned up.
    await runOn(client, 'for f in /tmp /dev/shm /run; do head -c 200000000 /dev/zero > $f/big; done');
    expect((await host.metrics(computerId)).memoryBytes).toBeGreaterThan((limits.memoryMiB / 2) * mebibyte);
    expect((await runOn(client, 'rm -f /tmp/big /dev/shm/big /run/big; echo still here')).stdout).toBe('still here\n');
  });

  it('stops a fork bomb, while another computer and file operations go on', async () => {
    const { client, computerId } = await startComputer(host, { limits });
    const neighbour = await startComputer(host, { limits });
    const bomb = perl(
      'while (1) { defined(my $pid = fork) or $failed++; last if $failed > 20 } print "full"; sleep 600',
    );
    await client.startProcess({ processId: 'prc_bomb', command: bomb });
    for await (const { kind } of client.output('prc_bomb', { follow: true })) if (kind === 'stdout') break;
    const mostTasks = limits.maxTasks + agentTasks(limits);
    expect((await host.metrics(computerId)).tasks).toBeGreaterThanOrEqual(limits.maxTasks);
    expect((await host.metrics(computerId)).tasks).toBeLessThan(mostTasks);
    expect((await runOn(neighbour.client, 'echo fine')).stdout).toBe('fine\n');
    // Files can still be written, and the bomb is killed as a whole.
    await client.writeFile('note', Buffer.from('while it is full'));
    await client.signalProcess('prc_bomb', 'SIGKILL');
    expect((await runOn(client, 'echo still here')).stdout).toBe('still here\n');
  });

  it('starts no thread for file operations, since the agent has all its threads from the start', async () => {
    const { client } = await startComputer(host, { limits });
    // Count only the agent's threads, since earlier processes may not be gone yet.
    const threads =
      'for p in /proc/[0-9]*; do case $(readlink $p/exe) in */node) set -- $p/task/*; echo $# ;; esac; done';
    const before = (await runOn(client, threads)).stdout;
    await client.writeFile('note', Buffer.from('the first file'));
    await Promise.all(Array.from({ length: 8 }, () => client.readFile('note').then(({ body }) => body.resume())));
    expect((await runOn(client, threads)).stdout).toBe(before);
  });

  it('finally moves processes that fork very fast from the cgroup of the agent to that of the work', async () => {
    const { client, computerId } = await startComputer(host, { limits });
    const processesIn = (path: string) =>
      readFileSync(join(cgroupsOf(host).pids, computerId, path, 'cgroup.procs'), 'utf8').split('\n').length;
    await runOn(client, 'true');
    const before = processesIn('box/agent');
    // For two seconds, each process ends before it can be moved. Then the processes stay.
    const chain = perl(
      'use Time::HiRes "time"; open STDOUT, ">", "/dev/null"; $end = time + 2; while (time < $end) { exit if fork } for (1 .. 30) { fork or last } sleep 600',
    );
    await client.startProcess({ processId: 'prc_chain', command: chain });
    await until(() => processesIn('box/agent') === before && processesIn('box/work') > 10);
    expect((await runOn(client, 'echo still here')).stdout).toBe('still here\n');
  });

  it('refuses writes above the size of its disk, in one file or in many', async () => {
    const { client, computerId } = await startComputer(host, { limits });
    const one = await runOn(client, 'head -c 60000000 /dev/urandom > big; sync; stat -c %s big');
    expect(one.stderr).toContain('Disk quota exceeded');
    expect((await host.metrics(computerId)).diskBytes).toBeLessThanOrEqual(limits.diskMiB * mebibyte);
    await runOn(client, 'rm big; sync');
    const many = await runOn(
      client,
      perl(
        'mkdir "many"; for (1 .. 1_000_000) { open my $f, ">", "many/" . ("n" x 200) . $_ or do { print "$!"; exit }; print $f "x" x 2000 }',
      ),
    );
    expect(many.stdout).toBe('Disk quota exceeded');
    expect((await host.metrics(computerId)).diskBytes).toBeLessThanOrEqual(limits.diskMiB * mebibyte);
    // A full disk can be cleaned up from inside.
    expect((await runOn(client, 'rm -rf many && echo cleared')).stdout).toBe('cleared\n');
  });

  it('gets a new limit with the next start', async () => {
    const { spec, client, computerId } = await startComputer(host, { limits });
    await host.start({ ...spec, generation: 2, limits: { ...limits, diskMiB: 128 } });
    expect((await runOn(client, 'head -c 100000000 /dev/urandom > big && sync && stat -c %s big')).stdout).toBe(
      '100000000\n',
    );
    expect((await host.metrics(computerId)).diskBytes).toBeGreaterThan(32 * mebibyte);
  });

  it.each([
    ['TCP', 'SOCK_STREAM', 'listen($l, 9)', 'accept(my $s, $l) or last; push @kept, $s;'],
    ['UDP', 'SOCK_DGRAM', '1', 'setsockopt($l, SOL_SOCKET, SO_RCVBUF, pack("i", 4_000_000));'],
  ])('bounds the unread data in its sockets: %s', async (_name, type, listening, accepting) => {
    const { client } = await startComputer(host, { limits });
    // Fills connections to itself up to three times the memory of the computer, then reads to count what they held.
    const hold = `use Socket; use Fcntl; $b = "x" x 60_000; $held = 0; my @kept;
      for (1 .. 100) {
        socket(my $l, PF_INET, ${type}, 0); bind($l, sockaddr_in(0, inet_aton("127.0.0.1"))); ${listening};
        socket(my $c, PF_INET, ${type}, 0); setsockopt($c, SOL_SOCKET, SO_SNDBUF, pack("i", 4_000_000));
        connect($c, getsockname $l) or last; ${accepting}
        fcntl($c, F_SETFL, O_NONBLOCK); for (1 .. 200) { defined syswrite($c, $b) or last } push @kept, $l, $c;
      }
      for my $s (@kept) { fcntl($s, F_SETFL, O_NONBLOCK); $held += $n while $n = sysread($s, my $x, 60_000) } print $held`;
    const held = Number((await runOn(client, perl(hold))).stdout);
    expect(held).toBeGreaterThan(mebibyte);
    expect(held).toBeLessThan((limits.memoryMiB / 2) * mebibyte);
    expect((await runOn(client, 'echo still here')).stdout).toBe('still here\n');
  });

  it('has a limited number of terminals, and another computer has its own', async () => {
    const before = terminalsOfMachine();
    const { client } = await startComputer(host, { limits });
    const neighbour = await startComputer(host, { limits });
    const open = 'for (1 .. 1_000) { open $f[$_], "+<", "/dev/ptmx" or last; $n = $_ }';
    await client.startProcess({ processId: 'prc_terminals', command: perl(`${open} print "$n $!\\n"; sleep 600`) });
    for await (const { payload } of client.output('prc_terminals', { follow: true })) {
      expect(Buffer.from(payload).toString()).toBe(`${maxTerminals} No space left on device\n`);
      break;
    }
    expect(terminalsOfMachine() - before).toBeLessThanOrEqual(maxTerminals + 20);
    const ran = await runOn(neighbour.client, 'tty', { pty: { cols: 80, rows: 24 } });
    expect(ran).toMatchObject({ exitCode: 0 });
  });

  it('bounds the descriptors of a process', async () => {
    const { client } = await startComputer(host, { limits });
    const ran = await runOn(
      client,
      perl('for (1 .. 100_000) { open $f[$_], "<", "/dev/null" or last } print scalar(@f), " $!"'),
    );
    expect(ran.stdout).toContain('Too many open files');
  });
});

/** The machine keeps memory and tasks for itself, however many computers run. */
describe('all computers of a host', () => {
  if (missing !== undefined) {
    it(`is not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }

  it('share the memory for computers, and a computer above it loses its own process', async () => {
    await using remote = await startHostProcess({ ...options, memoryMiB: 400 });
    const started = await Promise.all([0, 1, 2].map(() => startComputer(remote.host)));
    const hold = perl('$x = "x" x 180_000_000; print "held\\n"; sleep 600');
    const held = await Promise.all(
      started.map(async ({ client }) => {
        await client.startProcess({ processId: 'prc_holds', command: hold });
        for await (const { kind, payload } of client.output('prc_holds', { follow: true })) {
          if (kind === 'stdout') return 'held';
          if (kind === 'exit') return (JSON.parse(Buffer.from(payload).toString()) as { killedBy: string }).killedBy;
        }
        return 'nothing';
      }),
    );
    expect(held).toContain('memory');
    for (const { client } of started) expect((await runOn(client, 'echo still here')).stdout).toBe('still here\n');
    expect(remote.host.limits.memoryMiB).toBe(400);
    expect(remote.ended).toEqual([]);
  });

  it('share a limit of tasks that is below the limit of the machine', async () => {
    await using remote = await startHostProcess(options);
    const roots = cgroupsOf(remote.host);
    const tasks = Number(readFileSync(join(roots.pids, 'pids.max'), 'utf8'));
    expect(tasks).toBe(remote.host.limits.tasks);
    expect(tasks).toBeLessThan(Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8')));
  });

  it('leave the machine a tenth of its memory, at least 1 GiB but at most half', () => {
    expect(hostLimits(undefined, 65_536).memoryMiB).toBe(58_982);
    expect(hostLimits(undefined, 4_096).memoryMiB).toBe(3_072);
    expect(hostLimits(undefined, 1_024).memoryMiB).toBe(512);
    expect(hostLimits(2_000, 4_096).memoryMiB).toBe(2_000);
    expect(hostLimits(9_000, 4_096).memoryMiB).toBe(3_072);
  });
});

/** The kernel has no limit for the memory of unread netlink messages, so the host watches it. */
describe('unread netlink messages', () => {
  if (missing !== undefined) {
    it(`are not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }

  it('end only the computer that has too many', async () => {
    await using remote = await startHostProcess({ ...options, deadlines: { watchMs: 50 } });
    const neighbour = await startComputer(remote.host, { limits });
    const { client, computerId } = await startComputer(remote.host, { limits });
    const ask = 'pack("LSSLL CxSiLL", 32, 18, 1, 1, 0, 0, 0, 1, 0, 0)';
    // Programs that list the network interfaces do this.
    const list = `socket(my $s, 16, 3, 0) or die; send($s, ${ask}, 0); recv($s, my $all, 65_536, 0); print $all`;
    expect((await runOn(neighbour.client, perl(list))).stdout).toContain('lo');
    const hold = `for (1 .. 1_000) { socket(my $s, 16, 3, 0) or die; setsockopt($s, 1, 8, pack("i", 4_000_000)); for (1 .. 3_000) { send($s, ${ask}, 0x40) or last } push @kept, $s } sleep 600`;
    await runOn(client, perl(hold)).catch(() => undefined);
    while (remote.ended.length === 0) await remote.host.inspect(computerId).catch(() => undefined);
    expect(remote.ended).toMatchObject([{ computerId, end: { reason: expect.stringContaining('netlink') } }]);
    expect((await runOn(neighbour.client, 'echo still here')).stdout).toBe('still here\n');
  });
});

/** If the file system has no limit for a home, the host measures the home from time to time. */
describe('a home without a limit in its file system', () => {
  const watched = drivers.find(({ name }) => name.endsWith('an image'));
  if (watched === undefined || watched.missing !== undefined) {
    it(`is not tested on this machine: ${watched?.missing}`, () => expect(watched?.missing).toBeDefined());
    return;
  }

  const watchedNames = ['bubblewrap, as root without cgroups or an image', 'bubblewrap, not as root'];

  it('ends its computer with the reason when it exceeds its limit', async () => {
    await using remote = await startHostProcess({ ...watched.options, deadlines: { watchMs: 50 } });
    const { client, computerId } = await startComputer(remote.host, { limits });
    await runOn(client, 'head -c 200000000 /dev/zero > big; sleep 600').catch(() => undefined);
    while (remote.ended.length === 0) await remote.host.inspect(computerId).catch(() => undefined);
    await expect(remote.host.inspect(computerId)).resolves.toEqual({ state: 'gone' });
    expect(remote.ended).toMatchObject([{ computerId, end: { reason: 'its home is larger than its limit' } }]);
  });

  it.each([
    ['a folder that is closed to its owner', 'mkdir f; head -c 200000000 /dev/zero > f/big; chmod 000 f; sleep 600'],
    ['a deleted file that is open', 'exec 7> big; rm big; head -c 200000000 /dev/zero >&7; sleep 600'],
    [
      'a deleted file in memory',
      `python3 -c 'import ctypes, os, time
size, map_shared, libc = 200000000, 1, ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
fd = os.open("big", os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, size)
at = libc.mmap(None, ctypes.c_size_t(size), 3, map_shared, fd, ctypes.c_long(0))
os.unlink("big")
os.close(fd)
ctypes.memset(at, 120, size)
time.sleep(600)'`,
    ],
  ])('is measured with %s', async (_, command) => {
    for (const { options } of drivers.filter((each) => watchedNames.includes(each.name) && !each.missing)) {
      await using remote = await startHostProcess({ ...options, deadlines: { watchMs: 50 } });
      const { client, computerId } = await startComputer(remote.host, { limits });
      await runOn(client, command).catch(() => undefined);
      while (remote.ended.length === 0) await remote.host.inspect(computerId).catch(() => undefined);
      expect(remote.ended).toMatchObject([{ computerId, end: { reason: 'its home is larger than its limit' } }]);
    }
  });

  it('ends work on its stopped computer when it exceeds its limit, and refuses new work until there is room', async () => {
    await using built = await buildHost({ ...watched.options, deadlines: { watchMs: 50 } });
    const { host, dir } = built;
    const { computerId } = await startComputer(host, { limits });
    await host.stop(computerId);
    const { own } = await host.work(computerId);
    await runOn(own, 'head -c 200000000 /dev/zero > big; sleep 600').catch(() => undefined);
    const refused = { kind: 'unprocessable', code: 'DISK_FULL' };
    await expect(host.work(computerId)).rejects.toMatchObject(refused);
    expect((await (await host.files(computerId)).statFile('big')).size).toBeGreaterThan(limits.diskMiB * 1_048_576);
    rmSync(join(computerLayout(hostLayout(dir), computerId).home, 'big'));
    expect((await runOn((await host.work(computerId)).own, 'echo room')).stdout).toBe('room\n');
  });
});
