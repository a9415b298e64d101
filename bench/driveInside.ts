import { performance } from 'node:perf_hooks';
import { startAtrium } from './support/atrium.ts';
import { CpuMeter } from './support/cpuMeter.ts';
import { quantile } from './support/times.ts';

/**
 * Measures the drive in a computer: `npx node bench/driveInside.ts`. Copies a tree of `FILES` files of 1 KiB (2,000 by
 * default), lists and reads it, and waits for changes by the API, all beside the same in a folder of the computer's
 * home. The copy is also beside `rsync`, if the machine has it. The commands measure themselves, inside.
 */
const files = Number(process.env.FILES ?? 2_000);
const rounds = Number(process.env.ROUNDS ?? 3);

await using running = new AsyncDisposableStack();
const atrium = await startAtrium({ ATRIUM_LOG_LEVEL: 'warn', ATRIUM_RATE_LIMIT_PER_MINUTE: '0' });
running.defer(() => atrium.stop());
const { defaultSpaceId } = await atrium.call<{ defaultSpaceId: string }>('GET', '/api/me');
const space = `/api/spaces/${defaultSpaceId}`;
const { id } = await atrium.call<{ id: string }>('POST', `${space}/computers`, { name: 'bench' });

async function exec(command: string): Promise<string> {
  const answer = await atrium.call<{ stdout: string; stderr: string; exitCode: number }>(
    'POST',
    `${space}/computers/${id}/exec`,
    { command: ['bash', '-c', command] },
  );
  if (answer.exitCode !== 0) throw new Error(`${command}: ${answer.stderr}`);
  return answer.stdout;
}

/** Milliseconds that a command takes inside. */
async function inside(command: string): Promise<number> {
  const printed = await exec(`a=$EPOCHREALTIME; ${command} >/dev/null; b=$EPOCHREALTIME; echo $a $b`);
  const [from = 0, to = 0] = printed.trim().split('\n').at(-1)?.split(' ').map(Number) ?? [];
  return (to - from) * 1_000;
}

const out = (line: string) => process.stdout.write(`${line}\n`);
const median = (times: readonly number[]) => quantile([...times], 0.5);

/** Alternates, so that other load on the machine affects both. */
async function compare(name: string, drive: string, local: string): Promise<void> {
  const times: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    times[0].push(await inside(drive));
    times[1].push(await inside(local));
  }
  const [mine, theirs] = times.map(median) as [number, number];
  out(`${name}: ${mine.toFixed(0)} ms in the drive, ${theirs.toFixed(0)} ms locally: × ${(mine / theirs).toFixed(1)}`);
}

await exec(`mkdir -p tree && cd tree && for i in $(seq ${files}); do
  mkdir -p $((i / 100)); head -c 1024 /dev/urandom > $((i / 100))/$i; done`);
const copies = { drive: [] as number[], arrived: [] as number[], local: [] as number[], rsync: [] as number[] };
const meter = new CpuMeter({ rootPid: atrium.pid, atriumPid: atrium.pid });
const hasRsync = (await exec('command -v rsync || true')) !== '';
for (let round = 0; round < rounds; round++) {
  const begun = performance.now();
  copies.drive.push(await meter.during(() => inside(`cp -r tree drive/copy${round}`)));
  copies.arrived.push(performance.now() - begun);
  copies.local.push(await inside(`cp -r tree copy${round}`));
  if (hasRsync) copies.rsync.push(await inside(`rsync -a tree/ rsync${round}/`));
}
out(
  `${files} files of 1 KiB: ${median(copies.drive).toFixed(0)} ms until they are written, ` +
    `${median(copies.arrived).toFixed(0)} ms until they are in the drive; cp locally ` +
    `${median(copies.local).toFixed(0)} ms${hasRsync ? `, rsync ${median(copies.rsync).toFixed(0)} ms` : ''}`,
);
out(`Each of these files costs ${meter.each(files * rounds)}`);
for (const folder of ['drive/copy0', 'copy0']) await exec(`grep -r nothing ${folder} || true`); // warm
await compare('find', 'find drive/copy0', 'find copy0');
await compare('du', 'du -s drive/copy0', 'du -s copy0');
await compare('grep -r', '{ grep -r nothing drive/copy0 || true; }', '{ grep -r nothing copy0 || true; }');
await compare('tar', 'tar -cf - drive/copy0 | cat', 'tar -cf - copy0 | cat');

async function upload(name: string): Promise<void> {
  const form = new FormData();
  form.append('path', '/');
  form.append('file', new Blob(['text']), name);
  await atrium.send('POST', `${space}/drive/upload`, form);
}

const arrivals: number[] = [];
for (let round = 0; round < 10; round++) {
  const waiting = exec(`until [ -e drive/new${round} ]; do sleep 0.01; done; echo $EPOCHREALTIME`);
  await new Promise((resolve) => setTimeout(resolve, 300)); // it waits by then
  await upload(`new${round}`);
  const uploaded = Date.now();
  arrivals.push(Number(await waiting) * 1_000 - uploaded);
}
let missed = 0;
for (let round = 0; round < 20; round++) {
  await upload(`before${round}`);
  if ((await exec(`cat drive/before${round} 2>/dev/null || true`)) !== 'text') missed += 1;
}
out(`Of 20 commands right after an upload, ${missed} did not see it`);
out(`An upload is seen inside after ${median(arrivals).toFixed(0)} ms, at most ${Math.max(...arrivals).toFixed(0)} ms`);
