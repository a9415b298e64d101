import { orAfter } from '../../../base/async.ts';
import type { ByteForms, StreamMask } from '../../../telemetry/streamMask.ts';
import type { OutputRequest } from '../hostClient.ts';
import { type Gap, isOutput, maxPayloadBytes, noteRecord, positionAfter } from '../processes/records.ts';
import type { OutputKind, OutputRecord } from '../types.ts';

/** The current secrets of a space. */
interface Masks {
  readonly isEmpty: boolean;
  readonly bytes: ByteForms;
  mask(options?: { beginsCut?: boolean }): StreamMask;
}

/** How many bytes before the requested position are read, so that a reader never sees half of a secret. */
const lookbackBytes = 16_384;
/** How long a possible beginning of a secret is held back. */
const quietMs = 100;
/** How soon new secrets are masked in output that is being read. */
const refreshMs = 5_000;

/**
 * Output with asterisks in place of the values of the space's secrets.
 *
 * - A mask is as long as the value, so positions stay the same. It reveals the length of the value.
 * - Each stream is searched by itself. A value is found even if the process wrote it in pieces, with output of the
 *   other stream in between.
 * - A reader that begins at a position gets what a reader from the beginning gets there, because earlier output is read
 *   too. If that is not enough (the stream was silent for long, or earlier output is not kept), a possible end of a
 *   value is masked.
 * - A possible beginning of a value is held back for a moment. It is released when no more output comes, when the other
 *   stream writes, or when all existing output is read. It is released masked, unless it is one or two bytes long,
 *   which nearly every text shares with a value. At the process's end the rest of the value can no longer come, so the
 *   beginning is released as it is.
 */
export async function* maskedOutput(
  open: (request: OutputRequest) => AsyncIterable<OutputRecord>,
  masks: () => Promise<Masks>,
  { after = 0, follow = false, signal }: OutputRequest = {},
): AsyncGenerator<OutputRecord, void, undefined> {
  let known = await masks();
  let askedAt = Date.now();
  const over = new AbortController();
  const from = known.isEmpty ? after : Math.max(0, after - lookbackBytes);
  const until = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
  const records = open({ after: from, follow, signal: until })[Symbol.asyncIterator]();
  const output = new MaskedOutput(known, { after, beginsCut: from > 0 && !known.isEmpty });
  let next: Promise<IteratorResult<OutputRecord, unknown>> | undefined;
  try {
    for (;;) {
      next ??= records.next();
      const result = await (output.isHolding ? orAfter(next, quietMs, 'quiet' as const) : next);
      if (result === 'quiet') {
        yield* output.pause();
        continue;
      }
      next = undefined;
      if (result.done === true) break;
      if (Date.now() - askedAt > refreshMs) {
        // If the database is away for a moment, the stream goes on with the known secrets and asks again later.
        known = await masks().catch(() => known);
        askedAt = Date.now();
        output.use(known);
      }
      yield* output.push(result.value);
    }
    yield* output.pause();
  } finally {
    // The signal ends a source that waits for output. Any other source ends here, before its connection does.
    if (next === undefined) await records.return?.();
    over.abort();
    next?.catch(() => undefined);
  }
}

class MaskedOutput {
  #known: Masks;
  readonly #after: number;
  #beginsCut: boolean;
  readonly #streams = new Map<OutputKind, StreamMask>();
  /** The stream that holds bytes back, and their position. */
  #holding: OutputKind | undefined;
  #heldAt = 0;

  constructor(known: Masks, { after, beginsCut }: { after: number; beginsCut: boolean }) {
    this.#known = known;
    this.#after = after;
    this.#beginsCut = beginsCut;
  }

  get isHolding(): boolean {
    return this.#holding !== undefined;
  }

  use(known: Masks): void {
    if (known === this.#known) return;
    this.#known = known;
    for (const stream of this.#streams.values()) stream.use(known.bytes);
  }

  *push(record: OutputRecord): Generator<OutputRecord> {
    if (isOutput(record.kind)) return yield* this.#pushOutput(record);
    if (record.kind === 'gap') return yield* this.#pushGap(record);
    yield* record.kind === 'exit' ? this.#release((stream) => stream.end()) : this.pause();
    if (record.kind === 'exit' || record.position >= this.#after) yield record;
  }

  /** Releases everything that is held. */
  *pause(): Generator<OutputRecord> {
    yield* this.#release((stream) => stream.pause());
  }

  *#pushOutput(record: OutputRecord): Generator<OutputRecord> {
    // A space without secrets costs nothing here.
    if (this.#known.isEmpty && this.#streams.size === 0) return yield record;
    const { kind, position, payload } = record;
    if (this.#holding !== kind) yield* this.pause();
    const stream = this.#streamOf(kind);
    const seen = Math.min(Math.max(0, this.#after - position), payload.length);
    if (seen > 0) stream.recall(payload.subarray(0, seen));
    if (seen === payload.length) return;
    const begin = this.#holding === undefined ? position + seen : this.#heldAt;
    yield* recordsOf(kind, begin, stream.push(payload.subarray(seen)));
    this.#holding = stream.held > 0 ? kind : undefined;
    this.#heldAt = position + payload.length - stream.held;
  }

  *#pushGap(record: OutputRecord): Generator<OutputRecord> {
    yield* this.#release((stream) => stream.cut());
    for (const stream of this.#streams.values()) stream.cut();
    this.#beginsCut = true;
    const end = positionAfter(record);
    const position = Math.max(record.position, this.#after);
    if (position === record.position) yield record;
    else if (end > position) yield noteRecord('gap', position, { droppedBytes: end - position } satisfies Gap);
  }

  *#release(give: (stream: StreamMask) => Buffer): Generator<OutputRecord> {
    const kind = this.#holding;
    if (kind === undefined) return;
    this.#holding = undefined;
    yield* recordsOf(kind, this.#heldAt, give(this.#streamOf(kind)));
  }

  #streamOf(kind: OutputKind): StreamMask {
    const stream = this.#streams.get(kind) ?? this.#known.mask({ beginsCut: this.#beginsCut });
    this.#streams.set(kind, stream);
    return stream;
  }
}

function* recordsOf(kind: OutputKind, position: number, bytes: Buffer): Generator<OutputRecord> {
  for (let at = 0; at < bytes.length; at += maxPayloadBytes) {
    yield { kind, position: position + at, payload: bytes.subarray(at, at + maxPayloadBytes) };
  }
}
