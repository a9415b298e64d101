import { execFileSync } from 'node:child_process';
import { createReadStream, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createHost } from '../integrations/computers/host/createHost.ts';
import type { Host } from '../integrations/computers/host/host.ts';
import { computerLayout, hostLayout } from '../integrations/computers/host/layout.ts';
import { collectOutput } from '../integrations/computers/output/collectOutput.ts';
import type { ComputerLimits } from '../integrations/computers/types.ts';
import { type HomeSaver, homeSavers } from './support/homeSavers.ts';
import { agentProgram } from './support/stack.ts';
import { quantile, quantiles, timed } from './support/times.ts';

/**
 * Measures saves, copies and moves of a home at its host: `npx node bench/homes.ts`, as root with btrfs. Beside each
 * figure is the same by hand, with btrfs alone, and with the other programs of `support/homeSavers.ts` that the machine
 * has. `HOME_MB` in `FILES`, `ROUNDS` of small changes and `SECONDS` of writing make it smaller.
 */
const size = (name: string, usual: number) => Number(process.env[name] ?? usual);
const megabytes = size('HOME_MB', 1_000);
const files = size('FILES', 100_000);
const rounds = size('ROUNDS', 20);
const seconds = size('SECONDS', 10);
const out = (line: string) => process.stdout.write(`${line}\n`);
const shell = (script: string, ...args: string[]) => execFileSync('sh', ['-c', script, 'sh', ...args]).toString();
const { signal } = new AbortController();
const limits: ComputerLimits = {
  cpuMilli: 2_000,
  memoryMiB: 1_024,
  diskMiB: 2 * megabytes + 1_024,
  maxTasks: 256,
  maxProcesses: 20,
  maxLogBytes: 16 * 1_048_576,
};
const computerId = 'cmp_bench';
const spec = { computerId, spaceId: 'spc_bench', generation: 1, limits, env: {} };

let count = 0;
async function runIn(host: Host, command: string | string[]): Promise<string> {
  const client = host.client(computerId);
  const processId = `p${count++}`;
  await client.startProcess({ processId, command });
  return (await collectOutput(client.output(processId, { follow: true }), { maxBytes: 1_000_000 })).stdout;
}

const bytesOf = async (bytes: AsyncIterable<Buffer>) => {
  let total = 0;
  for await (const chunk of bytes) total += chunk.length;
  return total;
};

/** By what is measured: the time of the host in milliseconds, which those of other programs are compared with. */
const ours: Record<'first' | 'change' | 'restore', number> = { first: 0, change: 0, restore: 0 };

/** Writes the files of a home. Two fifths of each are random. */
async function fillHome(host: Host): Promise<void> {
  const bytes = Math.round((megabytes * 1e6) / files);
  const random = Math.round(bytes * 0.4);
  const program = `open my $r, "<", "/dev/urandom"; for my $n (1 .. ${files}) { mkdir "d" . int($n / 100);
    sysread $r, my $text, ${random}; open my $f, ">", "d" . int($n / 100) . "/$n" or die; print $f $text, "a" x ${bytes - random} }`;
  await runIn(host, ['perl', '-e', program]);
}

/** A write, a move and a delete. */
const change = (host: Host, n: number) =>
  runIn(host, `echo ${n} > new${n}; mv d1/${100 + n} moved${n}; rm d2/${200 + n}; sync`);

/** Saves small changes, and makes the same snapshots by hand in between. */
async function measureChanges(host: Host, dir: string): Promise<void> {
  const { homes } = hostLayout(dir);
  const { home } = computerLayout(hostLayout(dir), computerId);
  const byHand = join(homes, '.byhand');
  mkdirSync(byHand);
  const snapshot = 'btrfs subvolume snapshot -r "$1" "$2" > /dev/null';
  shell(snapshot, home, join(byHand, '0'));
  const times: number[] = [];
  const looks: number[] = [];
  const reference: number[] = [];
  const sizes: number[] = [];
  let parent = 'hsv_first';
  for (let n = 1; n <= rounds; n++) {
    await change(host, n);
    looks.push(await timed(() => host.saves.changed()));
    const saveId = `hsv_${n}`;
    const save = async () => {
      await host.saves.take(computerId, saveId);
      sizes.push(await bytesOf(host.saves.read(computerId, saveId, parent, signal)));
    };
    const hand = () =>
      shell(
        `${snapshot}; btrfs send --quiet -p "$3" "$2" | zstd -1 > /dev/null`,
        home,
        join(byHand, String(n)),
        join(byHand, String(n - 1)),
      );
    if (n % 2 === 0) reference.push(await timed(hand));
    times.push(await timed(save));
    if (n % 2 === 1) reference.push(await timed(hand));
    await host.saves.keepOnly(computerId, [saveId]);
    shell('btrfs subvolume delete "$1" > /dev/null', join(byHand, String(n - 1)));
    parent = saveId;
  }
  shell('btrfs subvolume delete "$1" > /dev/null; rmdir "$2"', join(byHand, String(rounds)), byHand);
  ours.change = quantile(times, 0.5);
  const ratio = (ours.change / quantile(reference, 0.5)).toFixed(1);
  out(`a look for changes: ${quantiles(looks)}`);
  out(
    `a save after a write, a move and a delete: ${quantiles(times)}, ${quantile(sizes, 0.5)} bytes; snapshot and send | zstd by hand ${quantiles(reference)}: × ${ratio}`,
  );
}

async function measureWhole(host: Host, dir: string, folder: string): Promise<string> {
  await host.saves.take(computerId, 'hsv_first');
  const file = join(folder, 'first');
  const kept = join(hostLayout(dir).snapshots, 'hsv_first', 'home');
  const hand = await timed(() => shell('btrfs send --quiet "$1" > "$2"', kept, file));
  const ms = await timed(() => writeFile(file, host.saves.read(computerId, 'hsv_first', null, signal)));
  ours.first = ms;
  out(`a whole home to a file: ${ms.toFixed(0)} ms; send by hand ${hand.toFixed(0)} ms: × ${(ms / hand).toFixed(2)}`);
  return file;
}

/** Each saves the home, and again after small changes. Their stores are beside those of the host. */
async function measureOthers(host: Host, dir: string, savers: readonly HomeSaver[], folder: string): Promise<void> {
  const { home } = computerLayout(hostLayout(dir), computerId);
  for (const [index, { name, begin, save }] of savers.entries()) {
    const store = join(folder, name);
    mkdirSync(store);
    begin(store);
    const whole = () => {
      save(home, store);
      shell('sync -f "$1"', store);
    };
    const first = await timed(whole);
    const changes: number[] = [];
    for (let n = 1; n <= 3; n++) {
      await change(host, rounds + 3 * index + n);
      changes.push(await timed(whole));
    }
    const again = quantile(changes, 0.5);
    out(
      `${name}: the whole home ${first.toFixed(0)} ms: × ${(first / ours.first).toFixed(1)}; after small changes ${again.toFixed(0)} ms: × ${(again / ours.change).toFixed(1)}`,
    );
  }
}

/** A copy of a computer that runs, on its host. */
async function measureForks(host: Host): Promise<void> {
  const times: number[] = [];
  for (let n = 0; n < 5; n++)
    times.push(await timed(() => host.fork(computerId, { computerId: `cmp_fork${n}`, limits })));
  for (let n = 0; n < 5; n++) await host.destroy(`cmp_fork${n}`);
  out(`a copy of the computer: ${quantiles(times)}`);
}

async function measureFill(file: string, savers: readonly HomeSaver[], formerHome: string): Promise<void> {
  await withHost(async (host, dir) => {
    const byHand = join(hostLayout(dir).homes, '.byhand');
    mkdirSync(byHand);
    const hand = await timed(() => shell('btrfs receive --quiet "$1" < "$2"; sync -f "$1"', byHand, file));
    shell('btrfs subvolume delete "$1/home" > /dev/null; btrfs subvolume sync "$1" > /dev/null; rmdir "$1"', byHand);
    const open = () => createReadStream(file) as AsyncIterable<Buffer>;
    const chain = [{ saveId: 'hsv_first', format: 'btrfs' as const, uid: null, homeBytes: megabytes * 1e6, open }];
    const options = { limits, spaceId: spec.spaceId, signal };
    const ms = await timed(() => host.saves.fill(computerId, chain, options));
    out(
      `a home filled and given to its user: ${ms.toFixed(0)} ms; receive by hand ${hand.toFixed(0)} ms: × ${(ms / hand).toFixed(2)}`,
    );
    ours.restore = ms;
    const woken = await timed(async () => {
      await host.start({ ...spec, generation: 2 });
      await runIn(host, 'true');
    });
    out(`the computer awake with it: ${(ms + woken).toFixed(0)} ms: × ${((ms + woken) / hand).toFixed(2)}`);
    const copies: number[] = [];
    for (let n = 0; n < 5; n++) copies.push(await timed(() => host.saves.fill(`cmp_copy${n}`, chain, options)));
    const volume = join(hostLayout(dir).homes, '.copy');
    const snapshot = 'btrfs subvolume snapshot "$1/home" "$2" > /dev/null; chown -R 9999 "$2"; sync -f "$2"';
    const reference = await timed(() => shell(snapshot, join(hostLayout(dir).snapshots, 'hsv_first'), volume));
    shell('btrfs subvolume delete "$1" > /dev/null', volume);
    const ratio = (quantile(copies, 0.5) / reference).toFixed(2);
    out(`a copy of it on the same host: ${quantiles(copies)}; by hand ${reference.toFixed(0)} ms: × ${ratio}`);
    for (const { name, restore } of savers) {
      const to = join(hostLayout(dir).homes, `.${name}`);
      mkdirSync(to);
      const theirs = await timed(() => {
        restore(formerHome, join(dirname(file), name), to);
        shell('sync -f "$1"', to);
      });
      rmSync(to, { recursive: true, force: true });
      out(`${name}: restored in ${theirs.toFixed(0)} ms: × ${(theirs / ours.restore).toFixed(1)}`);
    }
  });
}

/** How many small files a program writes in a second, in turns with and without a save every second. */
async function measureWriter(host: Host): Promise<void> {
  const program = `my $end = time + ${seconds}; my $n = 0; while (time < $end) { open my $f, ">", "w/" . $n++ % 1000; print $f "a" x 20000 } print $n`;
  await runIn(host, 'mkdir w');
  const rates: Record<'with' | 'without', number[]> = { with: [], without: [] };
  let parent = host.saves.kept(computerId)[0] ?? null;
  let n = 0;
  for (const how of ['without', 'with', 'without', 'with', 'without'] as const) {
    const writing = runIn(host, ['perl', '-e', program]);
    let isOver = false;
    void writing.finally(() => (isOver = true));
    while (how === 'with' && !isOver) {
      const saveId = `hsv_w${n++}`;
      await host.saves.changed();
      await host.saves.take(computerId, saveId);
      await bytesOf(host.saves.read(computerId, saveId, parent, signal));
      await host.saves.keepOnly(computerId, [saveId]);
      parent = saveId;
      await delay(1_000);
    }
    rates[how].push(Number(await writing) / seconds);
  }
  const [saved, alone] = [quantile(rates.with, 0.5), quantile(rates.without, 0.5)];
  out(
    `files of 20 kB that a program writes: ${saved.toFixed(0)} a second with a save every second (${n} saves), ${alone.toFixed(0)} without: × ${(saved / alone).toFixed(2)}`,
  );
}

async function withHost(work: (host: Host, dir: string) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'atrium-bench-'));
  execFileSync('chmod', ['711', dir]);
  const host = await createHost({ dir, agent: await agentProgram() });
  try {
    if (!host.rights.diskLimits) throw new Error(`this machine has no snapshots: ${host.rights.off.join('; ')}`);
    await work(host, dir);
  } finally {
    for (const each of await host.list()) await host.destroy(each.computerId);
    await host.shutdown();
    rmSync(dir, { recursive: true, force: true });
  }
}

const folder = mkdtempSync(join(tmpdir(), 'atrium-bench-'));
const { found: savers, missing } = homeSavers();
if (missing.length > 0) out(`not on this machine, and so not measured: ${missing.join(', ')}`);
try {
  await withHost(async (host, dir) => {
    await host.start(spec);
    out(`${megabytes} MB in ${files} files, written in ${(await timed(() => fillHome(host))).toFixed(0)} ms`);
    const file = await measureWhole(host, dir, folder);
    await measureChanges(host, dir);
    await measureForks(host);
    await measureOthers(host, dir, savers, folder);
    await measureWriter(host);
    await measureFill(file, savers, computerLayout(hostLayout(dir), computerId).home);
  });
} finally {
  rmSync(folder, { recursive: true, force: true });
}
