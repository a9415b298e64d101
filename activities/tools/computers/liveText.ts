import { TextPieces } from '../../../integrations/computers/output/textPieces.ts';
import { isOutput } from '../../../integrations/computers/processes/records.ts';
import type { OutputKind, OutputRecord } from '../../../integrations/computers/types.ts';
import type { LiveOutput } from '../tool.ts';

/** Shows a process's output in the turn's stream as it arrives, from where an earlier run of the call stopped. */
export class LiveText {
  readonly #live: LiveOutput;
  readonly #from: number;
  readonly #pieces = new TextPieces();
  #kind: OutputKind | undefined;

  constructor(live: LiveOutput, from: number) {
    this.#live = live;
    this.#from = from;
  }

  push({ kind, position, payload }: OutputRecord): void {
    if (kind !== this.#kind) this.#show(this.#pieces.rest());
    this.#kind = kind;
    if (!isOutput(kind)) return;
    const known = Math.max(0, this.#from - position);
    if (known < payload.length) this.#show(this.#pieces.push(position + known, payload.subarray(known)));
  }

  #show(pieces: ReturnType<TextPieces['rest']>): void {
    const stream = this.#kind;
    if (stream !== 'stdout' && stream !== 'stderr' && stream !== 'pty') return;
    for (const { content, end } of pieces) {
      const text = 'text' in content ? content.text : Buffer.from(content.base64, 'base64').toString('utf8');
      this.#live.show(stream, text, end);
    }
  }
}
