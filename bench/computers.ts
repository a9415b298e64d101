import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { createHost } from '../integrations/computers/host/createHost.ts';
import type { Host } from '../integrations/computers/host/host.ts';
import { collectOutput } from '../integrations/computers/output/collectOutput.ts';
import type { ComputerSpec } from '../integrations/computers/types.ts';
import { timesByApi } from './support/computerByApi.ts';
import { bareOutput, bareProcess, byHand, memoryOfChildren, memoryOfNode } from './support/computerReferences.ts';
import { agentProgram } from './support/stack.ts';
import { quantile, quantiles, timed } from './support/times.ts';

/**
 * Measures what computers cost: `npx node bench/computers.ts`. Each figure has a reference that is measured in between,
 * so that other load on the machine affects both: bubblewrap by hand for wakes, a bare process for commands, a pipe
 * into a file for output. `WAKES`, `AT_ONCE`, `IDLE`, `OUTPUT_MB` and `MINUTE` (wakes in a minute) make it smaller.
 * `PARTS=api,wakes,one,many,minute,flood` chooses.
 */
const size = (name: string, usual: number) => Number(process.env[name] ?? usual);
const wakes = size('WAKES', 50);
const out = (line: string) => process.stdout.write(`${line}\n`);
const ratios = (times: number[], reference: number[]) =>
  [0.5, 0.95].map((q) => `× ${(quantile(times, q) / quantile(reference, q)).toFixed(1)}`).join(' and ');
/** Prints times beside those of a reference without Atrium. */
const beside = (times: number[], name: string, reference: number[]) =>
  `${quantiles(times)}; ${name} ${quantiles(reference)}: ${ratios(times, reference)}`;

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

const wake = (host: Host, spec: ComputerSpec): Promise<number> =>
  timed(async () => {
    await host.start(spec);
    await firstOutput(host, spec, `p${spec.generation}`, ['echo', 'awake']);
  });

/** Wakes a computer that has run before, or a new one whose home must be made; with a waiting holder, or without. */
async function measureWakes(name: string, spareHolders: number, isNew: boolean): Promise<void> {
  await withHost(spareHolders, async (host) => {
    const times: number[] = [];
    const bare: number[] = [];
    let spec = newSpec();
    await wake(host, spec);
    for (let n = 0; n < wakes; n++) {
      await host.stop(spec.computerId, { graceMs: 0 });
      spec = isNew ? newSpec() : { ...spec, generation: spec.generation + 1 };
      // The next holder starts a moment after the last was taken, and then rehearses.
      await delay(1_000);
      bare.push(await byHand());
      times.push(await wake(host, spec));
    }
    out(`wake to first output at the host, ${name}: ${beside(times, 'bwrap by hand', bare)}`);
  });
}

async function measureOne(): Promise<void> {
  await withHost(1, async (host, folder) => {
    await delay(2_000);
    const idle = size('IDLE', 5);
    const before = memoryOfChildren();
    const specs = Array.from({ length: idle }, newSpec);
    for (const each of specs) await wake(host, each);
    await delay(2_000);
    const each = (memoryOfChildren() - before) / idle / 1_048_576;
    const bareNode = (await memoryOfNode()) / 1_048_576;
    out(
      `memory of an idle computer: ${each.toFixed(1)} MiB (PSS of its holder and its sandbox, of ${idle}); a bare Node ${bareNode.toFixed(1)}: × ${(each / bareNode).toFixed(1)}`,
    );
    const [spec] = specs as [ComputerSpec];
    const times: number[] = [];
    const bare: number[] = [];
    for (let n = 0; n < wakes; n++) {
      bare.push(await bareProcess());
      const begin = performance.now();
      const client = host.client(spec.computerId);
      await client.startProcess({ processId: `e${n}`, command: ['true'] });
      for await (const { kind } of client.output(`e${n}`, { follow: true })) if (kind === 'exit') break;
      times.push(performance.now() - begin);
    }
    out(`exec of true at the host, to its exit: ${beside(times, 'a bare process', bare)}`);
    const megabytes = size('OUTPUT_MB', 256);
    const client = host.client(spec.computerId);
    const late = monitorEventLoopDelay({ resolution: 5 });
    late.enable();
    const begin = performance.now();
    await client.startProcess({ processId: 'much', command: `head -c ${megabytes}M /dev/zero` });
    let bytes = 0;
    for await (const { kind, payload } of client.output('much', { follow: true }))
      if (kind === 'stdout') bytes += payload.length;
    const seconds = (performance.now() - begin) / 1_000;
    late.disable();
    const bareSeconds = await bareOutput(megabytes, folder);
    out(
      `output: ${(megabytes / seconds).toFixed(0)} MiB/s written down; a pipe into a file ${(megabytes / bareSeconds).toFixed(0)}: × ${(bareSeconds / seconds).toFixed(2)}; its reader got ${(bytes / 1_048_576).toFixed(0)} of ${megabytes} MiB, its event loop late by ${(late.max / 1e6).toFixed(0)} ms at most`,
    );
  });
}

/** Measures the CPU time to read four commands of one computer, for different sizes of writes. */
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
      `${atOnce} at once: all awake after ${ms.toFixed(0)} ms; bwrap by hand ${bareMs.toFixed(0)} ms: × ${(ms / bareMs).toFixed(1)}; each ${quantiles(times)}`,
    );
  });
}

/** Wakes some dozens of computers one after the other, and stops each once it has answered. */
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
      woken.catch(() => undefined); // awaited below
      done.push(woken);
      if (n % 10 === 5) bare.push(await byHand());
    }
    const times = await Promise.all(done);
    const seconds = ((performance.now() - begin) / 1_000).toFixed(0);
    out(`${inMinute} wakes of ${specs.length} computers in ${seconds} s: ${beside(times, 'bwrap by hand', bare)}`);
  });
}

async function measureByApi(): Promise<void> {
  const { wakes: times, execs, bare, processes } = await timesByApi(wakes, { byHand, bareProcess });
  out(`wake to first output, through the API: ${beside(times, 'bwrap by hand', bare)}`);
  out(`exec of true, through the API, to its answer: ${beside(execs, 'a bare process', processes)}`);
}

async function withHost(spareHolders: number, work: (host: Host, folder: string) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'atrium-bench-'));
  const host = await createHost({ dir, agent: await agentProgram(), spareHolders, imageMiB: 4_096 });
  try {
    await work(host, dir);
  } finally {
    for (const { computerId } of await host.list()) await host.destroy(computerId);
    await host.shutdown();
    rmSync(dir, { recursive: true, force: true });
  }
}

const parts: Record<string, () => Promise<void>> = {
  api: measureByApi,
  async wakes() {
    await measureWakes('warm (a holder waits)', 1, false);
    await measureWakes('cold (no holder waits, a new home)', 0, true);
  },
  one: measureOne,
  many: measureMany,
  minute: measureMinute,
  flood: measureFlood,
};
for (const part of process.env.PARTS?.split(',') ?? Object.keys(parts)) await parts[part]?.();
