import type { FakeDelta, FakeScript, FakeUsage } from './script.ts';

/** How a provider's API writes an answer. Each method returns the server-sent events for one step. */
export interface Wire {
  start(): string;
  delta(delta: FakeDelta): string;
  /** The end of a successful answer. With null as finish reason, the end of an answer that gives no reason. */
  finish(reason: NonNullable<FakeScript['finishReason']> | null, usage: FakeUsage | null): string;
  error(): string;
  /** The body of a response with an error status. */
  errorBody(status: number): string;
}

/** An event whose data is not valid JSON. */
export const brokenEvent = 'data: {"id":"broken","choices":[{"delta"\n\n';

export function event(data: unknown, name?: string): string {
  return `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
}
