import { type BenchedAtrium, startAtrium, startProgram } from './support/atrium.ts';
import { cpuByProgram } from './support/processTree.ts';
import { readAtrium, readProvider } from './support/streams.ts';

/**
 * What one short turn costs, whatever it says: `npx node bench/turnCost.ts`. Turns of five tokens, 16 at once, each in
 * a thread of its own. CPU time is that of each of Atrium's programs. The reference is the same answers read from the
 * provider itself by the same client, in the same run.
 */
const model = 'flat-5';
const atOnce = 16;
const turns = Number(process.env.BENCH_TURNS ?? 800);
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);

async function answers(count: number, read: () => Promise<void>): Promise<number> {
  const begin = performance.now();
  let begun = 0;
  const lane = async () => {
    while (begun++ < count) await read();
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return (performance.now() - begin) / 1_000;
}

function cpuOf(atrium: BenchedAtrium): Map<string, number> {
  const cpu = new Map<string, number>();
  for (const [pid, { program, seconds }] of cpuByProgram(atrium.pid)) {
    const part = pid === atrium.pid ? 'node' : program;
    cpu.set(part, (cpu.get(part) ?? 0) + seconds);
  }
  return cpu;
}

await using running = new AsyncDisposableStack();
const provider = await startProgram('test/fakes/openaiServerProcess.ts');
running.defer(() => void provider.process.kill());
const atrium = await startAtrium({
  ATRIUM_COMPATIBLE_BASE_URL: provider.line,
  ATRIUM_COMPATIBLE_MODELS: model,
  ATRIUM_RATE_LIMIT_PER_MINUTE: '0',
  ATRIUM_LOG_LEVEL: 'warn',
});
running.defer(() => atrium.stop());
const throughAtrium = () => readAtrium(atrium.url, atrium.token, model, () => undefined);

// The first answers compile what the others run.
await answers(400, throughAtrium);
for (let round = 0; round < rounds; round++) {
  const directSeconds = await answers(turns, () => readProvider(provider.line, model, () => undefined));
  const before = cpuOf(atrium);
  const seconds = await answers(turns, throughAtrium);
  const used = [...cpuOf(atrium)].map(
    ([part, cpu]) => [part, ((cpu - (before.get(part) ?? 0)) / turns) * 1_000] as const,
  );
  const all = used.reduce((sum, [, cpuMs]) => sum + cpuMs, 0);
  const parts = used.filter(([, cpuMs]) => cpuMs >= 0.05).sort(([, a], [, b]) => b - a);
  console.log(
    `${(turns / seconds).toFixed(1)} turns/s (${(seconds / directSeconds).toFixed(1)} × the time of the provider alone), ` +
      `${all.toFixed(1)} ms of CPU a turn: ${parts.map(([part, cpuMs]) => `${part} ${cpuMs.toFixed(1)}`).join(', ')}`,
  );
}
