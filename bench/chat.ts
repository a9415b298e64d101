import { stampNow } from '../test/fakes/script.ts';
import { type BenchedAtrium, startAtrium, startProgram } from './support/atrium.ts';
import { CpuMeter } from './support/cpuMeter.ts';
import { residentMiBOfTree } from './support/processTree.ts';
import { type OnText, readAtrium, readProvider } from './support/streams.ts';
import { quantile } from './support/times.ts';

/**
 * Measures what Atrium adds to a model's answer: `npx node bench/chat.ts`. The reference is the same paced provider
 * called directly, in the same run and by the same client. Each round runs one after the other. Tokens carry the time
 * at which the provider sent them, so a lag is a token's own time from the provider to the client.
 */
const tokens = 400;
const intervalMs = 20;
const flatTokens = 20_000;
const pacedModel = `paced-${tokens}-${intervalMs}-stamps`;
const flatModel = `flat-${flatTokens}`;
const warmModel = 'flat-10';
/** Answers begin spread over `overMs`, as those of different people do. The last row is a flood. */
const paced = [
  { streams: 1, overMs: 0, rounds: 12 },
  { streams: 32, overMs: 2_000, rounds: 2 },
  { streams: 128, overMs: 2_000, rounds: 2 },
  { streams: 128, overMs: intervalMs, rounds: 2 },
];

interface Sample {
  firstTokenMs: number[];
  lagMs: number[];
  tokens: number;
  elapsedMs: number;
}

type Read = (onText: OnText) => Promise<void>;

/** Runs `streams` answers side by side, the last begun `overMs` after the first. */
async function sample(read: Read, streams: number, overMs = 0, stamped = false): Promise<Sample> {
  const result: Sample = { firstTokenMs: [], lagMs: [], tokens: 0, elapsedMs: 0 };
  const begin = performance.now();
  const one = async (index: number) => {
    await new Promise((resolve) => setTimeout(resolve, (index * overMs) / streams));
    const sentAt = performance.now();
    let first = true;
    await read((text) => {
      if (first) result.firstTokenMs.push(performance.now() - sentAt);
      first = false;
      const now = stamped ? stampNow() : 0;
      for (const token of text.split(' ')) {
        if (token === '') continue;
        result.tokens++;
        if (stamped) result.lagMs.push((now - Number(token)) / 1000);
      }
    });
  };
  await Promise.all(Array.from({ length: streams }, (_, index) => one(index)));
  result.elapsedMs = performance.now() - begin;
  return result;
}

function merge(samples: Sample[]): Sample {
  return {
    firstTokenMs: samples.flatMap(({ firstTokenMs }) => firstTokenMs),
    lagMs: samples.flatMap(({ lagMs }) => lagMs),
    tokens: samples.reduce((total, one) => total + one.tokens, 0),
    elapsedMs: samples.reduce((total, one) => total + one.elapsedMs, 0),
  };
}

const ms = (value: number) => `${value.toFixed(1)} ms`;

function printAdded(name: string, direct: number[], through: number[]): void {
  const parts = ([0.5, 0.95] as const).map((share) => {
    const [reference, measured] = [quantile(direct, share), quantile(through, share)];
    return `p${share * 100} ${ms(measured - reference)} (${ms(measured)} against ${ms(reference)} directly)`;
  });
  console.log(`  added ${name}: ${parts.join(', ')}`);
}

async function benchPaced(
  atrium: BenchedAtrium,
  providerUrl: string,
  { streams, overMs, rounds }: (typeof paced)[number],
): Promise<void> {
  const direct: Sample[] = [];
  const through: Sample[] = [];
  const meter = new CpuMeter({ rootPid: atrium.pid, atriumPid: atrium.pid });
  for (let round = 0; round < rounds; round++) {
    direct.push(await sample((onText) => readProvider(providerUrl, pacedModel, onText), streams, overMs, true));
    const read: Read = (onText) => readAtrium(atrium.url, atrium.token, pacedModel, onText);
    through.push(await meter.during(() => sample(read, streams, overMs, true)));
  }
  const [reference, measured] = [merge(direct), merge(through)];
  console.log(`${streams} streams of ${tokens} tokens, one every ${intervalMs} ms, begun over ${overMs} ms`);
  printAdded('time to the first token', reference.firstTokenMs, measured.firstTokenMs);
  printAdded('lag per token', reference.lagMs, measured.lagMs);
  const perSecond = (one: Sample) => (one.tokens / one.elapsedMs) * 1000;
  console.log(
    `  carried ${measured.tokens} of ${reference.tokens} tokens, ${perSecond(measured).toFixed(0)} tokens/s, ${(perSecond(measured) / perSecond(reference)).toFixed(2)} of the direct rate`,
  );
  console.log(`  1,000 tokens ${meter.each(measured.tokens / 1_000)}`);
}

async function benchFlat(atrium: BenchedAtrium, providerUrl: string): Promise<void> {
  const streams = 8;
  const direct = await sample((onText) => readProvider(providerUrl, flatModel, onText), streams);
  const meter = new CpuMeter({ rootPid: atrium.pid, atriumPid: atrium.pid });
  const read: Read = (onText) => readAtrium(atrium.url, atrium.token, flatModel, onText);
  const through = await meter.during(() => sample(read, streams));
  const rate = (one: Sample) => (one.tokens / one.elapsedMs) * 1000;
  console.log(`${streams} streams of ${flatTokens} tokens, as fast as they come`);
  console.log(
    `  ${rate(through).toFixed(0)} tokens/s, ${(rate(through) / rate(direct)).toFixed(2)} of the ${rate(direct).toFixed(0)} read directly; ${through.tokens} of ${direct.tokens} tokens`,
  );
  console.log(`  1,000 tokens ${meter.each(through.tokens / 1_000)}`);
}

await using running = new AsyncDisposableStack();
const provider = await startProgram('test/fakes/openaiServerProcess.ts');
running.defer(() => void provider.process.kill());
const atrium = await startAtrium({
  ATRIUM_COMPATIBLE_BASE_URL: provider.line,
  ATRIUM_COMPATIBLE_MODELS: [pacedModel, flatModel, warmModel].join(','),
  ATRIUM_RATE_LIMIT_PER_MINUTE: '0',
  ATRIUM_LOG_LEVEL: 'warn',
});
running.defer(() => atrium.stop());

// The first answers compile the code that later ones run.
for (let round = 0; round < 25; round++) {
  await sample((onText) => readAtrium(atrium.url, atrium.token, warmModel, onText), 8);
}
for (const one of paced) await benchPaced(atrium, provider.line, one);
await benchFlat(atrium, provider.line);
console.log(`memory of all of Atrium's processes: ${residentMiBOfTree(atrium.pid).toFixed(0)} MiB`);
