import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../config/index.ts';
import { createCatalogue } from '../integrations/chat/catalogue.ts';
import { createModelRunner } from '../integrations/chat/modelRunner.ts';
import { type FakeScript, stampNow } from '../test/fakes/script.ts';
import { readDirectly } from './llmDirect.ts';

/**
 * Measures what one model call costs, with a paced fake provider in another process: `npx node bench/llm.ts [paced]
 * [flat]`. The reference `direct` reads the same answers in the same run with just fetch and JSON.parse. The other rows
 * are the model runner with each provider's library.
 */
type Read = (prompt: string, onText: (text: string) => void) => Promise<void>;

interface Case {
  streams: number;
  stamps: boolean;
  script: FakeScript;
}

const cases: Record<string, Case> = {
  paced: { streams: 128, stamps: true, script: { tokens: 400, intervalMs: 20, stamps: true } },
  flat: { streams: 8, stamps: false, script: { tokens: 20_000, tokensPerWrite: 64 } },
};

const server = spawn(
  process.execPath,
  [fileURLToPath(new URL('../test/fakes/openaiServerProcess.ts', import.meta.url))],
  {
    stdio: ['ignore', 'pipe', 'inherit'],
  },
);
const [line] = (await once(server.stdout, 'data')) as [Buffer];
const url = line.toString().trim();

const config = loadConfig({
  ATRIUM_DATABASE_URL: 'mysql://unused:unused@unused:3306/unused',
  ATRIUM_TEMPORAL_ADDRESS: 'unused',
  ATRIUM_COMPATIBLE_BASE_URL: url,
  ATRIUM_COMPATIBLE_MODELS: 'local',
  ATRIUM_OPENAI_API_KEY: 'unused',
  ATRIUM_OPENAI_BASE_URL: url,
  ATRIUM_ANTHROPIC_API_KEY: 'unused',
  ATRIUM_ANTHROPIC_BASE_URL: url,
});
const runner = createModelRunner({ config, catalogue: createCatalogue(config.llm) });

function readByRunner(modelId: string): Read {
  return async (text, onText) => {
    const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text }] }];
    await runner.run({ modelId, prompt, abortSignal: new AbortController().signal }, (part) => {
      if (part.type === 'text-delta') onText(part.delta);
    });
  };
}

const readers: Record<string, Read> = {
  direct: (prompt, onText) => readDirectly(url, prompt, onText),
  compatible: readByRunner('local'),
  anthropic: readByRunner('claude-haiku-4-5'),
  openai: readByRunner('gpt-4.1'),
};

async function measure(read: Read, { streams, stamps, script }: Case) {
  const prompt = `fake ${JSON.stringify(script)}`;
  const lags: number[] = [];
  let tokens = 0;
  const onText = (text: string) => {
    const now = stamps ? stampNow() : 0;
    for (const token of text.split(' ')) {
      if (token === '') continue;
      tokens += 1;
      if (stamps) lags.push((now - Number(token)) / 1000);
    }
  };
  const cpu = process.cpuUsage();
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: streams }, () => read(prompt, onText)));
  const seconds = (performance.now() - startedMs) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  lags.sort((a, b) => a - b);
  const lagMs = (share: number) => Number((lags[Math.floor(lags.length * share)] ?? 0).toFixed(2));
  return {
    tokensPerSecond: Math.round(tokens / seconds),
    cpuSecondsPer1000: Number(((user + system) / 1e3 / tokens).toFixed(4)),
    lagP50Ms: lagMs(0.5),
    lagP95Ms: lagMs(0.95),
  };
}

try {
  const wanted = process.argv.slice(2);
  for (const [name, each] of Object.entries(cases)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const rows: Record<string, object> = {};
    let reference: Awaited<ReturnType<typeof measure>> | undefined;
    for (const [reader, read] of Object.entries(readers)) {
      await measure(read, { ...each, streams: 8, script: { ...each.script, tokens: 20 } });
      const row = await measure(read, each);
      reference ??= row;
      const cpu = Number((row.cpuSecondsPer1000 / reference.cpuSecondsPer1000).toFixed(2));
      rows[reader] = {
        ...row,
        cpuToDirect: cpu,
        speedToDirect: Number((row.tokensPerSecond / reference.tokensPerSecond).toFixed(2)),
      };
    }
    console.log(`${name}: ${each.streams} streams of ${JSON.stringify(each.script)}`);
    console.table(rows);
  }
} finally {
  server.kill();
}
