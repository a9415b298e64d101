import { DomainError } from '../../../base/errors.ts';
import { largestSize } from '../../../integrations/computers/processes/records.ts';

/** A message of a terminal's client. docs/computers.md describes both directions. */
export type ClientMessage =
  | { type: 'input'; seq: number; bytes: Buffer }
  | { type: 'resize'; cols: number; rows: number }
  | { type: 'signal'; signal: string };

/** A message to the client, beside the output itself. */
export type ServerMessage =
  | {
      type: 'attached';
      processId: string;
      writer: string;
      state: string;
      cols: number;
      rows: number;
    }
  /** `data` draws the screen as it was at `position`. The output from there follows. */
  | { type: 'screen'; position: number; cols: number; rows: number; data: string }
  /** The output from here on follows. */
  | { type: 'position'; position: number }
  | { type: 'gap'; position: number; droppedBytes: number }
  | { type: 'resize'; cols: number; rows: number }
  | { type: 'accepted'; seq: number }
  | { type: 'exit'; state: string; exitCode: number | null; signal: string | null; killedBy: string | null }
  | { type: 'problem'; code: string; detail: string; seq?: number };

const signals = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGKILL', 'SIGUSR1', 'SIGUSR2', 'SIGTERM', 'SIGCONT', 'SIGSTOP'];

/** Throws 400 `MESSAGE_INVALID` for anything else. */
export function readMessage(data: Buffer, isBinary: boolean): ClientMessage {
  if (isBinary) throw invalid('Send messages as JSON text, not as binary.');
  const message = parse(data);
  switch (message.type) {
    case 'input': {
      const { seq, text, base64 } = message;
      if (!isCount(seq)) throw invalid('`seq` must be a whole number of at least 1.');
      if (typeof text === 'string') return { type: 'input', seq, bytes: Buffer.from(text) };
      if (typeof base64 === 'string') return { type: 'input', seq, bytes: Buffer.from(base64, 'base64') };
      throw invalid('An `input` message needs `text` or `base64`.');
    }
    case 'resize': {
      const { cols, rows } = message;
      if (!isCount(cols) || !isCount(rows) || cols > largestSize.cols || rows > largestSize.rows) {
        throw invalid(`A terminal has at most ${largestSize.cols} columns and ${largestSize.rows} rows.`);
      }
      return { type: 'resize', cols, rows };
    }
    case 'signal': {
      const { signal } = message;
      if (typeof signal !== 'string' || !signals.includes(signal)) {
        throw invalid(`\`signal\` must be one of ${signals.join(', ')}.`);
      }
      return { type: 'signal', signal };
    }
    default:
      throw invalid('`type` must be `input`, `resize` or `signal`.');
  }
}

function parse(data: Buffer): Record<string, unknown> {
  try {
    const value = JSON.parse(data.toString('utf8')) as unknown;
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {}
  throw invalid('This is not a JSON object.');
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function invalid(detail: string): DomainError {
  return new DomainError('invalid', 'MESSAGE_INVALID', detail);
}
