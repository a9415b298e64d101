import type { LanguageModelV4 } from '@ai-sdk/provider';
import type { Config } from '../../config/index.ts';
import { Answer } from './answer.ts';
import { type CallOptions, callOptions } from './callOptions.ts';
import { CallWire, createWires } from './callWire.ts';
import type { Catalogue } from './catalogue.ts';
import { ProviderError } from './errors.ts';
import { Handover, IdleWatch, ReaderFailure } from './handover.ts';
import type { ModelCall, ModelCallResult, ModelRunner } from './modelCall.ts';
import { effortOrDefault } from './modelRules.ts';
import { toProviderError } from './normaliseError.ts';
import { createModels } from './providers.ts';
import { estimateUsage, reportedUsage } from './tokens.ts';

export interface ModelRunnerDependencies {
  config: Pick<Config, 'llm'>;
  catalogue: Catalogue;
  /** Replaces our own HTTP client (httpFetch.ts). Every byte then goes through the SDK. */
  fetch?: typeof globalThis.fetch;
}

/** Runs model calls on the configured providers. It never retries, and never leaves a connection open behind it. */
export function createModelRunner({ config, catalogue, fetch }: ModelRunnerDependencies): ModelRunner {
  const { wires, fetch: ownFetch } = createWires();
  const modelOf = createModels(config.llm, fetch ?? ownFetch);
  return {
    async run(call, onPart) {
      const { model: entry } = catalogue.resolve({ modelId: call.modelId });
      call.abortSignal.throwIfAborted();

      const connection = new AbortController();
      const { signal } = connection;
      const stop = () => connection.abort(call.abortSignal.reason);
      call.abortSignal.addEventListener('abort', stop, { once: true });
      const watch = new IdleWatch(config.llm.idleTimeoutMs, () =>
        connection.abort(new ProviderError('PROVIDER_STALLED')),
      );
      const answer = new Answer();
      const handover = new Handover(onPart, watch, connection);
      const wire = new CallWire(entry.adapter, watch.touch, (text) => handover.now(answer.more(text)));
      handover.onBusy = (busy) => wire.lane?.pause(busy);
      wires.set(signal, wire);
      try {
        const options = callOptions(call, entry, effortOrDefault(entry, call.effort), signal);
        return await streamAnswer(call, await modelOf(entry), options, { answer, handover, wire, watch });
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

interface Ends {
  answer: Answer;
  handover: Handover;
  wire: CallWire;
  watch: IdleWatch;
}

async function streamAnswer(
  call: ModelCall,
  model: LanguageModelV4,
  options: CallOptions,
  { answer, handover, wire, watch }: Ends,
): Promise<ModelCallResult> {
  const signal = options.abortSignal;
  const startedMs = performance.now();
  let headersSeen = false;
  try {
    const { stream } = await untilAborted(Promise.resolve(model.doStream(options)), signal);
    headersSeen = true;
    const reader = stream.getReader();
    // Cancelling ends a pending read at once, even if the provider's SDK ignores the signal.
    signal.addEventListener('abort', () => void reader.cancel(signal.reason).catch(ignore), { once: true });
    for (;;) {
      const { done, value } = await reader.read();
      signal.throwIfAborted();
      if (done) break;
      watch.touch();
      if (value.type === 'error') throw value.error;
      await handover.next(answer.take(value));
      if (value.type === 'text-delta' || value.type === 'reasoning-delta') wire.lane?.emitted(value.delta);
    }
    await handover.idle();
    const { finishReason, finish } = answer.end();
    const durationMs = performance.now() - startedMs;
    return {
      finishReason,
      usage: reportedUsage(finish.usage) ?? estimateUsage(call.prompt, answer.outputCharacters),
      modelId: call.modelId,
      ttftMs: (handover.firstMs ?? startedMs + durationMs) - startedMs,
      durationMs,
    };
  } catch (error) {
    // After an abort each library fails in its own way; the signal has the real reason.
    const failure: unknown = signal.aborted ? signal.reason : error;
    if (failure instanceof ReaderFailure) throw failure.reason;
    throw toProviderError(failure, headersSeen || wire.answered);
  }
}

/** Waits for a promise, but only until the signal is aborted: not every model and every tool listens to it. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

function ignore(): void {}
