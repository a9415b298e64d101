import type { LanguageModelV4FunctionTool, LanguageModelV4Prompt } from '@ai-sdk/provider';
import { loadConfig } from '../../../config/index.ts';
import { createCatalogue } from '../../../integrations/chat/catalogue.ts';
import type { ModelCall, ModelCallResult, ModelPart } from '../../../integrations/chat/modelCall.ts';
import { createModelRunner } from '../../../integrations/chat/modelRunner.ts';

/** One model of each real provider, in the catalogue of {@link llmConfig} with a fake's URL. */
export const providers = [
  ['openai', 'gpt-5.1'],
  ['anthropic', 'claude-sonnet-4-5'],
  ['compatible', 'local'],
] as const;

/** The `llm` part of a configuration; without settings no provider is configured. */
export function llmConfig(settings: Record<string, string> = {}) {
  const required = { ATRIUM_DATABASE_URL: 'mysql://unused/unused', ATRIUM_TEMPORAL_ADDRESS: 'unused' };
  return loadConfig({ ...required, ...settings }).llm;
}

/** Settings that send all three providers to the fake at this URL. */
export function fakeSettings(url: string): Record<string, string> {
  return {
    ATRIUM_OPENAI_API_KEY: 'openai-key',
    ATRIUM_OPENAI_BASE_URL: url,
    ATRIUM_ANTHROPIC_API_KEY: 'anthropic-key',
    ATRIUM_ANTHROPIC_BASE_URL: url,
    ATRIUM_COMPATIBLE_BASE_URL: url,
    ATRIUM_COMPATIBLE_MODELS: 'local',
    ATRIUM_DEMO_MODEL: 'true',
  };
}

export function runnerFor(url: string, options: { idleTimeoutMs?: number; fetch?: typeof fetch } = {}) {
  const llm = {
    ...llmConfig(fakeSettings(url)),
    ...(options.idleTimeoutMs && { idleTimeoutMs: options.idleTimeoutMs }),
  };
  return createModelRunner({ config: { llm }, catalogue: createCatalogue(llm), fetch: options.fetch });
}

export function user(text: string): LanguageModelV4Prompt[number] {
  return { role: 'user', content: [{ type: 'text', text }] };
}

export const addTool: LanguageModelV4FunctionTool = {
  type: 'function',
  name: 'add',
  inputSchema: { type: 'object', properties: { a: { type: 'number' } } },
};

export type Answered = { parts: ModelPart[]; result: ModelCallResult };

/** Runs a call to its end and collects the parts. */
export async function answer(
  runner: ReturnType<typeof runnerFor>,
  call: Partial<ModelCall> & { modelId: string },
): Promise<Answered> {
  const parts: ModelPart[] = [];
  const result = await runner.run(
    { prompt: [user('hello')], abortSignal: new AbortController().signal, ...call },
    (part) => void parts.push(part),
  );
  return { parts, result };
}

/** Joins the deltas of each part, since the number of deltas is chance. */
export function joined(parts: readonly ModelPart[]): ModelPart[] {
  const whole: ModelPart[] = [];
  for (const part of parts) {
    const last = whole.at(-1);
    if (last && 'delta' in last && 'delta' in part && last.type === part.type && last.id === part.id) {
      whole[whole.length - 1] = { ...last, delta: last.delta + part.delta };
    } else whole.push(part);
  }
  return whole;
}

export function textOf(parts: readonly ModelPart[]): string {
  return parts.map((part) => (part.type === 'text-delta' ? part.delta : '')).join('');
}
