import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../config/index.ts';
import { createCatalogue } from '../integrations/llm/catalogue.ts';
import { createModelRunner } from '../integrations/llm/modelRunner.ts';
import { stampNow } from '../test/fakes/script.ts';
import { readDirectly } from './llmDirect.ts';

/**
 * What one model call costs, against a paced fake provider in another process: `node bench/llm.ts [paced] [flat]`.
 * The reference is `direct`: the same answers read by fetch and JSON.parse and nothing else, in the same run.
 */
type Read = (url: string, model: string, onText: (text: string) => void) => Promise<void>;

const paced = { streams: 128, tokens: 400, intervalMs: 20 };
const flat = { streams: 8, tokens: 20_000 };

const server = spawn(
  process.execPath,
  [fileURLToPath(new URL('../test/fakes/openaiServerProcess.ts', import.meta.url))],
  {
    stdio: ['ignore', 'pipe', 'inherit'],
  },
);
const [line] = (await once(server.stdout, 'data')) as [Buffer];
const url = line.toString().trim();
const pacedModel = `paced-${paced.tokens}-${paced.intervalMs}-stamps`;
const flatModel = `flat-${flat.tokens}`;

const config = loadConfig({
  ATRIUM_DATABASE_URL: 'mysql://unused',
  ATRIUM_TEMPORAL_ADDRESS: 'unused',
  ATRIUM_COMPATIBLE_BASE_URL: url,
  ATRIUM_COMPATIBLE_MODELS: [pacedModel, flatModel, 'flat-100'].join(','),
});
const runner = createModelRunner({ config, catalogue: createCatalogue(config.llm) });

const readByRunner: Read = async (_url, modelId, onText) => {
  const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hello' }] }];
  await runner.run({ modelId, prompt, abortSignal: new AbortController().signal }, (part) => {
    if (part.type === 'text-delta') onText(part.delta);
  });
};

interface Measured {
  tokensPerSecond: number;
  cpuSecondsPer1000: number;
  lagP50Ms: number;
  lagP95Ms: number;
}

async function measure(read: Read, model: string, streams: number, stamps: boolean): Promise<Measured> {
  const lags: number[] = [];
  let tokens = 0;
  const cpu = process.cpuUsage();
  const startedMs = performance.now();
  const onText = (text: string) => {
    const now = stamps ? stampNow() : 0;
    for (const token of text.split(' ')) {
      if (token === '') continue;
      tokens += 1;
      if (stamps) lags.push((now - Number(token)) / 1000);
    }
  };
  await Promise.all(Array.from({ length: streams }, () => read(url, model, onText)));
  const seconds = (performance.now() - startedMs) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  lags.sort((a, b) => a - b);
  return {
    tokensPerSecond: Math.round(tokens / seconds),
    cpuSecondsPer1000: Number(((user + system) / 1e6 / (tokens / 1000)).toFixed(4)),
    lagP50Ms: Number((lags[Math.floor(lags.length * 0.5)] ?? 0).toFixed(2)),
    lagP95Ms: Number((lags[Math.floor(lags.length * 0.95)] ?? 0).toFixed(2)),
  };
}

async function compare(name: string, model: string, streams: number, stamps: boolean) {
  const direct = await measure(readDirectly, model, streams, stamps);
  const runnerResult = await measure(readByRunner, model, streams, stamps);
  console.log(name);
  console.table({ direct, runner: runnerResult });
  const cpu = (runnerResult.cpuSecondsPer1000 / direct.cpuSecondsPer1000).toFixed(2);
  const speed = (runnerResult.tokensPerSecond / direct.tokensPerSecond).toFixed(2);
  console.log(`runner / direct: CPU per token ${cpu}, tokens per second ${speed}\n`);
}

const wanted = process.argv.slice(2);
const wants = (name: string) => wanted.length === 0 || wanted.includes(name);
try {
  await measure(readByRunner, 'flat-100', 8, false);
  await measure(readDirectly, 'flat-100', 8, false);
  if (wants('paced')) {
    await compare(`${paced.streams} streams, a token each ${paced.intervalMs} ms`, pacedModel, paced.streams, true);
  }
  if (wants('flat')) await compare(`${flat.streams} streams, unpaced`, flatModel, flat.streams, false);
} finally {
  server.kill();
}
