import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { Host } from '../../../integrations/computers/host/host.ts';
import { computerLayout, hostLayout, rootIn } from '../../../integrations/computers/host/layout.ts';
import type { ComputerRecord } from '../../../integrations/computers/host/records.ts';
import type { HostClient } from '../../../integrations/computers/hostClient.ts';
import type { ComputerSpec } from '../../../integrations/computers/types.ts';
import { runOn, startComputer, usualLimits } from '../../builders/host.ts';
import { type RemoteHost, startHostProcess } from '../../builders/hostProcess.ts';
import { nodeInside } from '../../support/computerPrograms.ts';
import { drivers, type TestedDriver } from './drivers.ts';
import { prelude, probes, type Twin } from './escapeProbes.ts';

const mark = 'atrium-canary-4711';

/** A process of the computer's own user on the host, with everything that a sandbox must not reach. */
const canaryProgram = `
  const net = require('node:net'); const dgram = require('node:dgram');
  const [path, abstract] = process.argv.slice(1);
  const tcp = net.createServer(); const udp = dgram.createSocket('udp4');
  tcp.listen(0, '0.0.0.0', () => udp.bind(0, '0.0.0.0', () => net.createServer().listen(path, () =>
    net.createServer().listen('\\0' + abstract, () => console.log(JSON.stringify({ port: tcp.address().port, udp: udp.address().port }))))));
`;

/** Makes an ELF program of a few instructions, for system calls through other entry points, which Perl cannot make. */
function elf64(code: number[]): Buffer {
  const header = Buffer.alloc(120);
  header.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  header.writeUInt16LE(2, 16);
  header.writeUInt16LE(62, 18);
  header.writeUInt32LE(1, 20);
  header.writeBigUInt64LE(0x400078n, 24);
  header.writeBigUInt64LE(64n, 32);
  header.writeUInt16LE(64, 52);
  header.writeUInt16LE(56, 54);
  header.writeUInt16LE(1, 56);
  header.writeUInt32LE(1, 64); // PT_LOAD
  header.writeUInt32LE(5, 68); // read and execute
  header.writeBigUInt64LE(0x400000n, 80);
  header.writeBigUInt64LE(0x400000n, 88);
  const size = BigInt(120 + code.length);
  header.writeBigUInt64LE(size, 96);
  header.writeBigUInt64LE(size, 104);
  header.writeBigUInt64LE(0x1000n, 112);
  return Buffer.concat([header, Buffer.from(code)]);
}

/** test eax, eax; exit(42) if the call was answered, exit(43) if it failed */
const ending = [
  ...[0x85, 0xc0, 0x78, 7, 0xbf, 42, 0, 0, 0, 0xeb, 5, 0xbf, 43, 0, 0, 0],
  ...[0xb8, 60, 0, 0, 0, 0x0f, 0x05],
];

const programs = {
  // mov eax, 20 (getpid); int 0x80
  'a system call by int 0x80': elf64([0xb8, 20, 0, 0, 0, 0xcd, 0x80, ...ending]),
  // mov eax, 0x40000027 (getpid of x32); syscall
  'a system call of x32': elf64([0xb8, 0x27, 0, 0, 0x40, 0x0f, 0x05, ...ending]),
};

/** What a sandbox with a root file system of its own may do to that: those probes lead nowhere else. */
const ofOwnSystem = ['chroot', 'to become root', 'a write to /usr', 'a write to /etc'];
const full: (TestedDriver & Pick<ComputerSpec, 'base'> & { own?: string[] })[] = drivers.filter(({ isFull }) => isFull);
const sandboxes = full.flatMap((each) =>
  each.driver === 'bubblewrap'
    ? [each, { ...each, name: `${each.name}, as root inside`, base: 'debian' as const, own: ofOwnSystem }]
    : [each],
);

/** Each probe runs inside a computer, where it must be stopped, and outside, where it must succeed. */
describe.each(sandboxes)('ways out of $name', ({ name: of, driver, missing, options, base, own = [] }) => {
  if (missing !== undefined) {
    process.stderr.write(`\nNOT RUN: ways out of ${of}: ${missing}\n`);
    it(`are not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }
  let remote: RemoteHost;
  let host: Host;
  let client: HostClient;
  let canary: Record<string, string>;
  let uids: Record<Twin, number>;
  let home: string;
  let outside: string;
  let end: () => Promise<unknown>;

  beforeAll(async () => {
    remote = await startHostProcess(options);
    ({ host } = remote);
    if (base !== undefined) await host.prepareBase(base);
    const spec = base === undefined ? {} : { base, limits: { ...usualLimits, diskMiB: 1_024 } };
    const one = await startComputer(host, spec);
    const other = await startComputer(host, spec);
    ({ client } = one);
    const layout = hostLayout(remote.dir);
    const uidOf = (computerId: string) =>
      (JSON.parse(readFileSync(computerLayout(layout, computerId).record, 'utf8')) as ComputerRecord).uid ?? 0;
    uids = { user: uidOf(one.computerId), otherUser: uidOf(other.computerId), root: 0 };
    const paths = computerLayout(layout, one.computerId);
    home = base === undefined ? paths.home : join(rootIn(paths.home), 'home', 'user');
    outside = join(remote.dir, '.canary');
    mkdirSync(outside);
    writeFileSync(join(outside, 'file'), mark, { mode: 0o600 });
    for (const path of [outside, join(outside, 'file')]) chownSync(path, uids.user, uids.user);
    const child = spawn(nodeInside.from, ['-e', canaryProgram, join(outside, 'sock'), mark], {
      cwd: '/',
      uid: uids.user,
      gid: uids.user,
      env: { CANARY: mark },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    end = async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    };
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const { port, udp } = JSON.parse(line.toString()) as { port: number; udp: number };
    const address = Object.values(networkInterfaces())
      .flat()
      .find((one) => one?.family === 'IPv4' && !one.internal)?.address;
    canary = {
      CANARY_FILE: join(outside, 'file'),
      CANARY_PID: String(child.pid),
      CANARY_PORT: String(port),
      CANARY_UDP: String(udp),
      CANARY_ADDRESS: address ?? '127.0.0.1',
      CANARY_SOCKET: join(outside, 'sock'),
      CANARY_ABSTRACT: mark,
      CANARY_HOLDER: paths.socket,
      CANARY_HOME: home,
      CANARY_OTHER: computerLayout(layout, other.computerId).home,
      CANARY_DIR: remote.dir,
    };
  });
  afterAll(async () => {
    await end();
    await remote[Symbol.asyncDispose]();
  });

  /** Assembles the mark in the probe, since a probe would find `CANARY_MARK` in its own environment. */
  const programOf = (code: string) => `${prelude} $c{mark} = join "-", "atrium", "canary", "4711"; ${code}`;

  async function bare(command: string[], who: Twin, more: { cwd?: string; extra?: boolean } = {}) {
    const [file = '', ...args] = command;
    const child = spawn(file, args, {
      cwd: more.cwd ?? '/',
      env: { ...canary, PATH: '/usr/bin:/bin:/usr/sbin:/sbin' },
      uid: uids[who],
      gid: uids[who],
      stdio: ['ignore', 'pipe', 'ignore', ...(more.extra === true ? (['pipe'] as const) : [])],
    });
    let stdout = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      stdout += chunk;
    });
    const [exitCode] = (await once(child, 'close')) as [number | null];
    return { stdout, exitCode };
  }

  it.each(probes.filter(({ name }) => !own.includes(name)))('$name', async ({ name, code, twin, mayBeLacking }) => {
    const command = ['perl', '-e', programOf(code)];
    const inside = await runOn(client, command, { env: canary });
    expect(inside.stdout).toMatch(/^STOPPED/);
    // On the disk, a root file system belongs to root.
    const ownsHomes = base !== undefined && /\$c\{(home|other)\}/.test(code);
    const outside = await bare(command, ownsHomes ? 'root' : twin, { extra: true });
    if (mayBeLacking === true && !outside.stdout.startsWith('THROUGH')) {
      process.stderr.write(`\nNOT SHOWN: ${name}: this machine has none (${outside.stdout.trim()})\n`);
    } else {
      expect(outside.stdout).toBe('THROUGH\n');
    }
  });

  const foreign = process.arch === 'x64' ? Object.entries(programs) : [];
  it.each(foreign)('%s', async (_name, bytes) => {
    await client.writeFile('program', bytes, { mode: 0o755 });
    const inside = await runOn(client, ['./program']);
    // gVisor's kernel has no such calls.
    if (driver === 'gvisor') expect(inside.exitCode).toBe(43);
    else expect(inside).toMatchObject({ state: 'killed', signal: 'SIGSYS' });
    const copy = join(remote.dir, 'program');
    writeFileSync(copy, bytes, { mode: 0o755 });
    chmodSync(copy, 0o755);
    // On a kernel without x32, the call fails.
    expect([42, 43]).toContain((await bare([copy], 'user')).exitCode);
  });

  it('a new subvolume, which would escape the limit of the home', async () => {
    const make =
      'opendir(my $d, "."); my $a = pack("Qx4088", 0); substr($a, 8, 5) = "extra"; ioctl($d, 0x5000940e, $a) ? through() : stopped()';
    const viaSyscall = make.replace(
      'ioctl($d, 0x5000940e, $a)',
      'syscall($nr{ioctl}, fileno($d), 0x5000940e, $a) >= 0',
    );
    const command = ['perl', '-e', programOf(viaSyscall)];
    expect((await runOn(client, command)).stdout).toMatch(/^STOPPED/);
    const owner = base === undefined ? 'user' : 'root';
    expect((await bare(command, owner, { cwd: home })).stdout).toBe('THROUGH\n');
    await bare(['rmdir', 'extra'], owner, { cwd: home });
  });

  it("a link in the home to a file of the host, through the host's file operations", async () => {
    await runOn(client, ['ln', '-s', canary.CANARY_FILE ?? '', 'link']);
    expect(readFileSync(join(home, 'link'), 'utf8')).toBe(mark);
    await expect(client.readFile('link')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    await client.writeFile('link', Buffer.from('mine'));
    expect(readFileSync(join(outside, 'file'), 'utf8')).toBe(mark);
  });
});
