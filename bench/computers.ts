import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { collectOutput } from '../integrations/computers/collectOutput.ts';
import { createHost } from '../integrations/computers/host/createHost.ts';
import type { Host } from '../integrations/computers/host/host.ts';
import type { ComputerSpec } from '../integrations/computers/types.ts';
import { timesByApi } from './support/computerByApi.ts';
import { quantile } from './support/quantile.ts';

/**
 * What computers cost: `npx node bench/computers.ts`. Each wake has a bubblewrap by hand beside it, so that what else
 * the machine does falls on both. `WAKES`, `AT_ONCE`, `OUTPUT_MB` and `MINUTE` (wakes in a minute) make it smaller, and
 * `PARTS=wakes,one,flood,many,minute,api` chooses.
 */
const size = (name: string, usual: number) => Number(process.env[name] ?? usual);
const wakes = size('WAKES', 50);
const out = (line: string) => process.stdout.write(`${line}\n`);
const quantiles = (times: number[]) =>
  `${quantile(times, 0.5).toFixed(0)} ms p50, ${quantile(times, 0.95).toFixed(0)} ms p95`;

let count = 0;
const newSpec = (): ComputerSpec => ({
  computerId: `cmp_bench${count++}`,
  spaceId: 'spc_bench',
  generation: 1,
  limits: {
    cpuMilli: 2_000,
    memoryMiB: 512,
    diskMiB: 256,
    maxTasks: 256,
    maxProcesses: 20,
    maxLogBytes: 16 * 1_048_576,
  },
  env: {},
});

async function firstOutput(
  host: Host,
  { computerId }: ComputerSpec,
  processId: string,
  command: string | string[],
): Promise<void> {
  const client = host.client(computerId);
  await client.startProcess({ processId, command });
  for await (const { kind } of client.output(processId, { follow: true })) if (kind === 'stdout') return;
}

async function wake(host: Host, spec: ComputerSpec): Promise<number> {
  const begin = performance.now();
  await host.start(spec);
  await firstOutput(host, spec, `p${spec.generation}`, ['echo', 'awake']);
  return performance.now() - begin;
}

async function byHand(): Promise<number> {
  const begin = performance.now();
  const namespaces = ['user', 'pid', 'net', 'ipc', 'uts'].map((name) => `--unshare-${name}`);
  const links = ['bin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]);
  const args = [
    ...namespaces,
    '--ro-bind',
    '/usr',
    '/usr',
    ...links,
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    'sh',
    '-c',
    'echo awake',
  ];
  const child = spawn('bwrap', args, { env: { PATH: '/usr/bin' }, stdio: ['ignore', 'pipe', 'ignore'] });
  await once(child.stdout, 'data');
  const time = performance.now() - begin;
  await once(child, 'close');
  return time;
}

/** A computer that has run before, or one whose home is made too; with a holder that waits, or without. */
async function measureWakes(name: string, spareHolders: number, isNew: boolean): Promise<void> {
  await withHost(spareHolders, async (host) => {
    const times: number[] = [];
    const bare: number[] = [];
    let spec = newSpec();
    await wake(host, spec);
    for (let n = 0; n < wakes; n++) {
      await host.stop(spec.computerId, { graceMs: 0 });
      spec = isNew ? newSpec() : { ...spec, generation: spec.generation + 1 };
      // The next holder is started a moment after the last was taken, and rehearses.
      await delay(1_000);
      bare.push(await byHand());
      times.push(await wake(host, spec));
    }
    out(`wake to first output, ${name}: ${quantiles(times)}; bwrap by hand ${quantiles(bare)}`);
  });
}

async function measureOne(): Promise<void> {
  await withHost(1, async (host) => {
    const spec = newSpec();
    await wake(host, spec);
    await delay(1_000);
    out(
      `memory of an idle computer: ${(idleMemory() / 1_048_576).toFixed(0)} MiB (PSS of its holder and its sandbox, and of a spare holder)`,
    );
    const times: number[] = [];
    for (let n = 0; n < wakes; n++) {
      const begin = performance.now();
      const client = host.client(spec.computerId);
      await client.startProcess({ processId: `e${n}`, command: ['true'] });
      for await (const { kind } of client.output(`e${n}`, { follow: true })) if (kind === 'exit') break;
      times.push(performance.now() - begin);
    }
    out(`exec of true, to its exit: ${quantiles(times)}`);
    const megabytes = size('OUTPUT_MB', 256);
    const client = host.client(spec.computerId);
    const begin = performance.now();
    await client.startProcess({ processId: 'much', command: `head -c ${megabytes}M /dev/zero` });
    let bytes = 0;
    for await (const { kind, payload } of client.output('much', { follow: true }))
      if (kind === 'stdout') bytes += payload.length;
    const seconds = (performance.now() - begin) / 1_000;
    out(
      `output: ${(megabytes / seconds).toFixed(0)} MiB/s written down; its reader got ${(bytes / 1_048_576).toFixed(0)} of ${megabytes} MiB`,
    );
  });
}

/** What reading four commands of one computer costs this process, by how they cut what they write. */
async function measureFlood(): Promise<void> {
  const writes = {
    'writes of 64 KiB': 'my $text = "a" x 65536; while (time < $end) { syswrite(STDOUT, $text) }',
    'writes of one byte, to both streams in turn':
      'while (time < $end) { syswrite(STDOUT, "a"); syswrite(STDERR, "b") }',
  };
  await withHost(1, async (host) => {
    const spec = newSpec();
    await wake(host, spec);
    const client = host.client(spec.computerId);
    for (const [name, program] of Object.entries(writes)) {
      const delay = monitorEventLoopDelay({ resolution: 5 });
      delay.enable();
      const before = process.cpuUsage();
      const beganAt = performance.now();
      const read = async (_: unknown, n: number) => {
        const processId = `${name.replaceAll(/\W/g, '')}${n}`;
        await client.startProcess({ processId, command: ['perl', '-e', `my $end = time + 6; ${program}`] });
        let records = 0;
        const onRecord = () => void records++;
        const output = client.output(processId, { follow: true });
        const { position } = await collectOutput(output, { maxBytes: 1_048_576, onRecord });
        return { records, bytes: position };
      };
      const all = await Promise.all(Array.from({ length: 4 }, read));
      const { user, system } = process.cpuUsage(before);
      delay.disable();
      const megabytes = all.reduce((sum, { bytes }) => sum + bytes, 0) / 1e6;
      const cpuMs = (user + system) / 1_000;
      const share = (cpuMs / (performance.now() - beganAt)) * 100;
      const records = all.reduce((sum, one) => sum + one.records, 0);
      out(
        `${name}: ${megabytes.toFixed(1)} MB in ${records} records; ${(cpuMs / megabytes).toFixed(1)} ms of its reader’s CPU a MB, ${share.toFixed(0)} % of a core, event loop late by ${(delay.max / 1e6).toFixed(0)} ms at most`,
      );
    }
  });
}

async function measureMany(): Promise<void> {
  await withHost(4, async (host) => {
    const atOnce = size('AT_ONCE', 50);
    const atOnceByHand = performance.now();
    await Promise.all(Array.from({ length: atOnce }, byHand));
    const bareMs = performance.now() - atOnceByHand;
    const begin = performance.now();
    const times = await Promise.all(Array.from({ length: atOnce }, () => wake(host, newSpec())));
    const ms = performance.now() - begin;
    out(
      `${atOnce} at once: all awake after ${ms.toFixed(0)} ms; bwrap by hand ${bareMs.toFixed(0)} ms; ${quantiles(times)}`,
    );
  });
}

/** Some dozens of computers, woken one after the other and stopped once they have answered. */
async function measureMinute(): Promise<void> {
  await withHost(4, async (host) => {
    const inMinute = size('MINUTE', 200);
    const specs = Array.from({ length: Math.min(inMinute, 40) }, newSpec);
    for (const spec of specs) {
      await wake(host, spec);
      await host.stop(spec.computerId, { graceMs: 0 });
    }
    const bare: number[] = [];
    const done: Promise<number>[] = [];
    const begin = performance.now();
    for (let n = 0; n < inMinute; n++) {
      await delay(Math.max(0, begin + (n * 60_000) / inMinute - performance.now()));
      const spec = specs[n % specs.length] as ComputerSpec;
      spec.generation++;
      const woken = wake(host, { ...spec }).then(async (time) => {
        await host.stop(spec.computerId, { graceMs: 0 });
        return time;
      });
      woken.catch(() => undefined); // it is waited for below
      done.push(woken);
      if (n % 10 === 5) bare.push(await byHand());
    }
    const times = await Promise.all(done);
    const seconds = ((performance.now() - begin) / 1_000).toFixed(0);
    out(
      `${inMinute} wakes of ${specs.length} computers in ${seconds} s: ${quantiles(times)}; bwrap by hand ${quantiles(bare)}`,
    );
  });
}

async function measureByApi(): Promise<void> {
  const { wakes: times, execs, bare } = await timesByApi(wakes, byHand);
  out(`wake to first output, through the API: ${quantiles(times)}; bwrap by hand ${quantiles(bare)}`);
  out(`exec of true, through the API, to its answer: ${quantiles(execs)}`);
}

async function withHost(spareHolders: number, work: (host: Host) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'atrium-bench-'));
  const host = await createHost({ dir, spareHolders, imageMiB: 4_096 });
  try {
    await work(host);
  } finally {
    for (const { computerId } of await host.list()) await host.destroy(computerId);
    await host.shutdown();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The proportional memory of all that we have started. */
function idleMemory(): number {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    const stat = read(`/proc/${name}/stat`);
    parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
  }
  const isOurs = (pid: number | undefined): boolean =>
    pid === process.pid || (pid !== undefined && pid > 1 && isOurs(parents.get(pid)));
  return [...parents.keys()]
    .filter((pid) => pid !== process.pid && isOurs(pid))
    .reduce((sum, pid) => sum + 1_024 * Number(/^Pss:\s+(\d+)/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0), 0);
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

const parts: Record<string, () => Promise<void>> = {
  async wakes() {
    await measureWakes('warm (a holder waits)', 1, false);
    await measureWakes('cold (no holder waits, a new home)', 0, true);
  },
  one: measureOne,
  flood: measureFlood,
  many: measureMany,
  minute: measureMinute,
  api: measureByApi,
};
for (const part of process.env.PARTS?.split(',') ?? Object.keys(parts)) await parts[part]?.();
