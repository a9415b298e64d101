import type { DeltaKind, EventReader } from './deltaEvents.ts';
import { DeltaTemplate, dataOf, parse } from './deltaTemplate.ts';

const carriageReturn = 13;
const eventEnd = Buffer.from('\n\n');
/** An event this long is no delta. */
const maxCarryBytes = 1024 * 1024;

/**
 * A way around the SDK for the one kind of event that makes up nearly all of a stream: a plain delta of text or
 * reasoning. The SDK's chain of streams and its validation cost about 60 µs for each event, this about 3 µs. Everything else
 * goes to the SDK as it came, byte for byte.
 *
 * Order is kept by a rule: a delta goes around only when the SDK has nothing left to say, that is, when the last event
 * that went to it was a plain delta and each delta expected of it has come out, text for text. So the SDK opens every part, and an
 * event that this cannot foresee the outcome of closes the lane for good.
 */
export class FastLane {
  private readonly read: EventReader;
  private readonly deliver: (kind: DeltaKind, text: string) => void;
  private carry: Buffer | undefined;
  /** Nothing goes around any more. */
  private closed = false;
  private paused = false;
  /** What the SDK still has to emit. */
  private readonly expected: string[] = [];
  private lastForwarded: DeltaKind | undefined;
  private template: DeltaTemplate | undefined;
  /** Learning is put off for longer and longer where each event looks different. */
  private skips = 0;
  private skipsAfterMiss = 1;

  constructor(read: EventReader, deliver: (kind: DeltaKind, text: string) => void) {
    this.read = read;
    this.deliver = deliver;
  }

  /** Takes what came from the network, and returns what the SDK is to see of it. */
  bytes(chunk: Buffer): Buffer | undefined {
    const data = this.carry === undefined ? chunk : Buffer.concat([this.carry, chunk]);
    this.carry = undefined;
    if (this.closed) return data;
    // JSON has no raw carriage return: these events end another way than is looked for here.
    if (chunk.includes(carriageReturn)) return this.close(data);

    const forwarded: Buffer[] = [];
    let around = '';
    let start = 0;
    while (!this.closed) {
      const found = data.indexOf(eventEnd, start);
      if (found < 0) break;
      const end = found + eventEnd.length;
      const text = this.open() ? this.template?.match(data, start, end) : undefined;
      if (text !== undefined) {
        around += text;
        this.skipsAfterMiss = 1;
      } else {
        around = this.flush(around);
        forwarded.push(data.subarray(start, end));
        this.foresee(data, start, end);
      }
      start = end;
    }
    this.flush(around);
    const rest = data.subarray(start);
    if (this.closed || rest.length > maxCarryBytes) forwarded.push(this.close(rest));
    else if (rest.length > 0) this.carry = rest;
    return forwarded.length > 1 ? Buffer.concat(forwarded) : forwarded[0];
  }

  /** The network has ended: what is left of an unfinished event. */
  end(): Buffer | undefined {
    return this.carry;
  }

  /** A delta has come out of the SDK, and is with the reader. */
  emitted(text: string): void {
    if (this.expected.shift() !== text) this.closed = true;
  }

  /** While the reader is busy, everything goes to the SDK, which holds the network back. */
  pause(paused: boolean): void {
    this.paused = paused;
  }

  private open(): boolean {
    if (this.paused || this.expected.length > 0) return false;
    return this.lastForwarded !== undefined && this.lastForwarded === this.template?.kind;
  }

  private flush(text: string): '' {
    if (text !== '' && this.template) this.deliver(this.template.kind, text);
    return '';
  }

  private close(rest: Buffer): Buffer {
    this.closed = true;
    return rest;
  }

  /** Notes what the SDK will make of an event that goes to it, and learns its form if it is a plain delta. */
  private foresee(bytes: Buffer, start: number, end: number): void {
    const known = this.template?.match(bytes, start, end);
    if (known !== undefined) {
      this.expected.push(known);
      this.lastForwarded = this.template?.kind;
      return;
    }
    const event = bytes.toString('utf8', start, end);
    const data = dataOf(event);
    if (data === '[DONE]' || event.startsWith(':')) return;
    const expected = data === undefined ? undefined : this.read(parse(data));
    if (expected === undefined) {
      this.closed = true;
      return;
    }
    this.expected.push(...expected.deltas);
    this.lastForwarded = expected.plain;
    if (expected.plain === undefined || --this.skips > 0) return;
    this.skips = this.skipsAfterMiss;
    this.skipsAfterMiss = Math.min(this.skipsAfterMiss * 2, 1_024);
    this.template = DeltaTemplate.learn(event, expected.plain, this.read);
  }
}
