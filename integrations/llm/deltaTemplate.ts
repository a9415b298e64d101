import type { DeltaKind, EventReader } from './deltaEvents.ts';

/** The names under which the streams carry text and reasoning. */
const fields = /"(?:content|reasoning_content|reasoning|text|thinking)"\s*:\s*"/g;
const probe = 'probe';

/** The `data:` of a server-sent event that has exactly one such line, and no other field than `event`. */
const singleData = /^(?:event: ?[^\n]*\n)?data: ?([^\n]*)\n\n$/;

export function dataOf(event: string): string | undefined {
  return singleData.exec(event)?.[1];
}

/**
 * The bytes before and after the text of a plain delta. In one stream they are the same from token to token, so an
 * event that has them and a JSON string between them *is* a plain delta, with nothing left to parse.
 */
export class DeltaTemplate {
  readonly kind: DeltaKind;
  private readonly prefix: Buffer;
  private readonly suffix: Buffer;

  private constructor(kind: DeltaKind, prefix: string, suffix: string) {
    this.kind = kind;
    this.prefix = Buffer.from(prefix);
    this.suffix = Buffer.from(suffix);
  }

  /** Learns from an event that the reader calls plain. Undefined when it cannot tell where the text is. */
  static learn(event: string, kind: DeltaKind, read: EventReader): DeltaTemplate | undefined {
    for (const match of event.matchAll(fields)) {
      const start = match.index + match[0].length;
      const prefix = event.slice(0, start);
      const suffix = event.slice(endOfString(event, start));
      const probed = dataOf(prefix + probe + suffix);
      const expected = probed === undefined ? undefined : read(parse(probed));
      if (expected?.plain === kind && expected.deltas[0] === probe) return new DeltaTemplate(kind, prefix, suffix);
    }
    return undefined;
  }

  /** The text of the event that lies in `bytes` from `start` to `end`; undefined when it is not of this form. */
  match(bytes: Buffer, start: number, end: number): string | undefined {
    const from = start + this.prefix.length;
    const to = end - this.suffix.length;
    if (from > to) return undefined;
    if (this.prefix.compare(bytes, start, from) !== 0 || this.suffix.compare(bytes, to, end) !== 0) return undefined;
    // A whole JSON string or nothing: an unescaped quote or a control character does not parse.
    const text = parse(`"${bytes.toString('utf8', from, to)}"`);
    return typeof text === 'string' ? text : undefined;
  }
}

/** Where the JSON string that begins at `start` ends: the index of its closing quote. */
function endOfString(event: string, start: number): number {
  let index = start;
  while (index < event.length && event[index] !== '"') index += event[index] === '\\' ? 2 : 1;
  return index;
}

/** JSON, or undefined. */
export function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
