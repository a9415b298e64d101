import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import type { Config } from '../../config/index.ts';
import { Answer } from './answer.ts';
import { callOptions } from './callOptions.ts';
import type { Catalogue } from './catalogue.ts';
import { ProviderError } from './errors.ts';
import { IdleWatch } from './idleWatch.ts';
import type { ModelCall, ModelCallResult, ModelRunner, OnModelPart } from './modelCall.ts';
import { toProviderError } from './normaliseError.ts';
import { ProviderFetch } from './providerFetch.ts';
import { createModels } from './providers.ts';
import { estimateUsage, reportedUsage } from './tokens.ts';

export interface ModelRunnerDependencies {
  config: Pick<Config, 'llm'>;
  catalogue: Catalogue;
  /** For tests and proxies; Node's own by default. */
  fetch?: typeof globalThis.fetch;
}

/** The reader's own failure (a fenced log writer, say): it ends the call and is nobody's provider error. */
class ReaderFailure {
  readonly reason: unknown;

  constructor(reason: unknown) {
    this.reason = reason;
  }
}

/** Runs model calls on the configured providers. It never retries, and never leaves a connection open behind it. */
export function createModelRunner({ config, catalogue, fetch }: ModelRunnerDependencies): ModelRunner {
  const { idleTimeoutMs } = config.llm;
  const wire = new ProviderFetch(fetch ?? globalThis.fetch);
  const modelOf = createModels(config.llm, wire.fetch);
  return {
    async run(call, onPart) {
      const { model: entry, effort } = catalogue.resolve({ modelId: call.modelId, effort: call.effort });
      const model = modelOf(entry);
      call.abortSignal.throwIfAborted();

      const startedMs = performance.now();
      const connection = new AbortController();
      const stop = () => connection.abort(call.abortSignal.reason);
      call.abortSignal.addEventListener('abort', stop, { once: true });
      const watch = new IdleWatch(idleTimeoutMs, () => connection.abort(new ProviderError('PROVIDER_STALLED')));
      wire.onBytes(connection.signal, watch.touch);
      try {
        const options = callOptions(call, entry, effort, connection.signal);
        return await streamAnswer({ call, model, options, onPart, watch, startedMs });
      } catch (error) {
        connection.abort(error);
        if (call.abortSignal.aborted) throw call.abortSignal.reason;
        throw error;
      } finally {
        watch.stop();
        call.abortSignal.removeEventListener('abort', stop);
      }
    },
  };
}

interface Streaming {
  call: ModelCall;
  model: LanguageModelV4;
  options: LanguageModelV4CallOptions & { abortSignal: AbortSignal };
  onPart: OnModelPart;
  watch: IdleWatch;
  startedMs: number;
}

async function streamAnswer({ call, model, options, onPart, watch, startedMs }: Streaming): Promise<ModelCallResult> {
  const answer = new Answer();
  const signal = options.abortSignal;
  let ttftMs: number | undefined;
  let headersSeen = false;
  try {
    const { stream } = await untilAborted(Promise.resolve(model.doStream(options)), signal);
    headersSeen = true;
    const reader = stream.getReader();
    // Cancelling resolves a pending read at once, whatever the provider's library does with the signal.
    signal.addEventListener('abort', () => void reader.cancel(signal.reason).catch(ignore), { once: true });
    for (;;) {
      const { done, value } = await reader.read();
      signal.throwIfAborted();
      if (done) break;
      watch.touch();
      if (value.type === 'error') throw value.error;
      const part = answer.take(value);
      if (part === undefined) continue;
      ttftMs ??= performance.now() - startedMs;
      await hand(part, onPart, watch);
    }
    const { finishReason, finish } = answer.end();
    return {
      finishReason,
      usage: reportedUsage(finish.usage) ?? estimateUsage(call.prompt, answer.outputCharacters),
      modelId: call.modelId,
      ttftMs: ttftMs ?? performance.now() - startedMs,
      durationMs: performance.now() - startedMs,
    };
  } catch (error) {
    if (error instanceof ReaderFailure) throw error.reason;
    // After an abort every library fails in a way of its own; what was meant is in the signal.
    throw toProviderError(signal.aborted ? signal.reason : error, headersSeen);
  }
}

/** Gives a part to the reader, and waits only where the reader asks for it. */
async function hand(part: Parameters<OnModelPart>[0], onPart: OnModelPart, watch: IdleWatch): Promise<void> {
  try {
    const busy = onPart(part);
    if (busy === undefined) return;
    watch.pause();
    await busy;
    watch.resume();
  } catch (error) {
    throw new ReaderFailure(error);
  }
}

/** Waits for the headers, but no longer than the signal allows: not every model listens to it. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

function ignore(): void {}
