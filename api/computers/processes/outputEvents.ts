import { type TextPiece, TextPieces } from '../../../integrations/computers/output/textPieces.ts';
import {
  type Exit,
  type Gap,
  isOutput,
  noteOf,
  positionAfter,
  type Size,
} from '../../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../../integrations/computers/types.ts';

/** Where the next attempt begins in the log of something that is tried again, and how the one before has ended. */
export interface AttemptMark {
  kind: 'attempt';
  position: number;
  attempt: number;
  after: {
    status: string | null;
    exitCode: number | null;
    signal: string | null;
    error: { code: string; detail: string } | null;
  };
}

export type ShownRecord = OutputRecord | AttemptMark;

/**
 * A process’s output as server-sent events. The id of each is the position after it, so that a reader goes on exactly
 * where it was cut.
 */
export class OutputEvents {
  readonly #pieces = new TextPieces();
  #kind: ShownRecord['kind'] | undefined;

  /** The events that this record completes. */
  push(record: ShownRecord): string {
    const { kind, position } = record;
    let events = '';
    if (this.#kind !== kind) events += this.#asEvents(this.#pieces.rest());
    this.#kind = kind;
    if (record.kind === 'attempt') {
      const { attempt, after } = record;
      return events + event('attempt', position, { position, attempt, after });
    }
    const { payload } = record;
    if (isOutput(record.kind)) return events + this.#asEvents(this.#pieces.push(position, payload));
    return events + noteEvent(record);
  }

  #asEvents(pieces: readonly TextPiece[]): string {
    const stream = this.#kind;
    return pieces.map(({ position, end, content }) => event('output', end, { stream, position, ...content })).join('');
  }
}

function noteEvent(record: OutputRecord): string {
  const after = positionAfter(record);
  switch (record.kind) {
    case 'gap':
      return event('gap', after, { position: record.position, droppedBytes: noteOf<Gap>(record).droppedBytes });
    case 'resize': {
      const { cols, rows } = noteOf<Size>(record);
      return event('resize', after, { cols, rows });
    }
    default: {
      const { state, exitCode, signal, killedBy } = noteOf<Exit>(record);
      return event('exit', after, { state, exitCode, signal, killedBy });
    }
  }
}

/** One event; JSON has no raw line feed. */
export function event(name: string, id: number | undefined, data: unknown): string {
  return `event: ${name}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
}
