import { startAtrium, startProgram } from './support/atrium.ts';
import { CpuMeter } from './support/cpuMeter.ts';
import { readAtrium, readProvider } from './support/streams.ts';
import { besideYardstick } from './support/yardstick.ts';

/**
 * Measures what one short turn costs: `npx node bench/turnCost.ts`. Turns have five tokens, 16 run at once, each in its
 * own thread. Prints the CPU time of each of Atrium's programs, also in yardsticks: a fixed piece of work timed beside
 * it. The other reference is the same answers read from the provider by the same client. Each round ends with a
 * line. `BENCH_TURNS` is the number of turns in a round (800 by default), and `BENCH_ROUNDS` the number of rounds (3).
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

// The first answers compile the code that later ones run.
await answers(400, throughAtrium);
for (let round = 0; round < rounds; round++) {
  const directSeconds = await answers(turns, () => readProvider(provider.line, model, () => undefined));
  const meter = new CpuMeter({ rootPid: atrium.pid, atriumPid: atrium.pid });
  const { result: seconds, yardstickMs } = await besideYardstick(() =>
    meter.during(() => answers(turns, throughAtrium)),
  );
  const inYardsticks = (meter.eachMs(turns) / yardstickMs).toFixed(2);
  const timesDirect = (seconds / directSeconds).toFixed(1);
  const rate = `${(turns / seconds).toFixed(1)} turns/s (${timesDirect} × the time of the provider alone)`;
  console.log(`${rate}; a turn ${inYardsticks} yardsticks of ${yardstickMs.toFixed(1)} ms, ${meter.each(turns)}`);
}
