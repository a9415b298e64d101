import { encodeRecord, isOutput, noteRecord, positionAfter } from '../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../integrations/computers/types.ts';

const most = { headBytes: 262_144, tailBytes: 786_432, lastBytes: 4_096 };

/** The output of a step as it is stored: the beginning and the end of a long one, with a gap between them. */
export class StepLog {
  readonly #head: OutputRecord[] = [];
  readonly #tail: OutputRecord[] = [];
  #headBytes = 0;
  #tailBytes = 0;
  /** The length of the whole output. */
  #position = 0;

  get position(): number {
    return this.#position;
  }

  push(record: OutputRecord): void {
    if (!isOutput(record.kind) && record.kind !== 'gap') return;
    this.#position = positionAfter(record);
    const { length } = record.payload;
    if (this.#tail.length === 0 && this.#headBytes + length <= most.headBytes) {
      this.#head.push(record);
      this.#headBytes += length;
      return;
    }
    this.#tail.push(record);
    this.#tailBytes += length;
    while (this.#tailBytes > most.tailBytes) this.#tailBytes -= this.#tail.shift()?.payload.length ?? 0;
  }

  encoded(): Buffer {
    const last = this.#head.at(-1);
    const end = last === undefined ? 0 : positionAfter(last);
    const begin = this.#tail[0]?.position ?? end;
    const gap = begin > end ? [noteRecord('gap', end, { droppedBytes: begin - end })] : [];
    return Buffer.concat([...this.#head, ...gap, ...this.#tail].map(encodeRecord));
  }

  /** The last bytes of the output. */
  last(): Buffer {
    const parts: Uint8Array[] = [];
    let length = 0;
    for (const { kind, payload } of [...this.#head, ...this.#tail].toReversed()) {
      if (length >= most.lastBytes) break;
      if (!isOutput(kind)) continue;
      parts.unshift(payload);
      length += payload.length;
    }
    const bytes = Buffer.concat(parts);
    return bytes.subarray(Math.max(0, bytes.length - most.lastBytes));
  }
}
