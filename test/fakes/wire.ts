import type { FakeDelta, FakeScript, FakeUsage } from './script.ts';

/** How one provider's API writes an answer: each method returns the server-sent events for one step, ready to send. */
export interface Wire {
  start(): string;
  delta(delta: FakeDelta): string;
  /** The end of a good answer, or with null as finish reason the end of one that never says why. */
  finish(reason: NonNullable<FakeScript['finishReason']> | null, usage: FakeUsage | null): string;
  /** An error inside the stream. */
  error(): string;
  /** The body of an answer with an error status. */
  errorBody(status: number): string;
}

/** An event whose data cannot be parsed. */
export const brokenEvent = 'data: {"id":"broken","choices":[{"delta"\n\n';

export function event(data: unknown, name?: string): string {
  return `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
}
