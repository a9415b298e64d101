import type { OutputRecord } from '../../../integrations/computers/types.ts';

/** How a log is read that joins the outputs of several processes. */
export interface JoinedLogOptions {
  /** Whether to wait for further records until the whole has ended. */
  follow: boolean;
  signal: AbortSignal;
}

/** The outputs of several processes, one after the other. */
export interface JoinedLog<Shown = OutputRecord> {
  /** The current length. */
  bytes: number;
  /** The records from a position on. With `follow`, the last record is an `exit`. */
  records(after: number, options: JoinedLogOptions): AsyncIterable<Shown>;
}

/** Between two looks at whether the next process has begun, or this one has ended. */
export const joinedLogPauses = { firstMs: 50, mostMs: 1_000 };
