import { once } from 'node:events';
import { APICallError, JSONParseError } from '@ai-sdk/provider';
import { keepBounded } from '../../base/freshCache.ts';
import type { DemoCommand } from './demoCommands.ts';

type Fail = Extract<DemoCommand, { name: 'fail' }>;

/** For how many prompts failures are remembered; a demo needs no more. */
const maxRemembered = 1_000;

/**
 * The failures of the demo model, which look like those of real providers. `/fail CODE TIMES` fails that many calls
 * with the same prompt and then lets one pass, as a retry sees it. Each process counts for itself and starts anew once
 * a call has passed.
 */
export class DemoFailures {
  private readonly failed = new Map<string, number>();

  /** Throws like a provider, or returns how the answer ends early; undefined if this prompt has failed often enough. */
  async fail(
    key: string,
    { failure, times, retryAfterSeconds }: Fail,
    abortSignal: AbortSignal | undefined,
  ): Promise<'withoutReason' | 'empty' | undefined> {
    const before = this.failed.get(key) ?? 0;
    if (before >= times) return undefined;
    keepBounded(this.failed, maxRemembered, key, before + 1);
    switch (failure) {
      case '429':
      case '500':
      case '529':
        throw httpError(Number(failure), retryAfterSeconds);
      case 'cut':
        throw new TypeError('terminated', {
          cause: Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' }),
        });
      case 'badjson':
        throw new JSONParseError({ text: '{"broken', cause: new SyntaxError('Unexpected end of JSON input') });
      case 'stall':
        if (abortSignal?.aborted !== true) await once(abortSignal ?? new EventTarget(), 'abort');
        throw abortSignal?.reason;
      case 'empty':
        return 'empty';
      case 'end':
        return 'withoutReason';
    }
  }

  /** A call with this prompt has passed, so the count starts anew. */
  survived(key: string): void {
    this.failed.delete(key);
  }
}

function httpError(statusCode: number, retryAfterSeconds: number | undefined): APICallError {
  return new APICallError({
    message: `The demo model was asked to fail with ${statusCode}.`,
    url: 'demo:',
    requestBodyValues: {},
    statusCode,
    responseHeaders: retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) },
  });
}
