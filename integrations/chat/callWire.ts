import type { ProviderName } from './catalogue.ts';
import { type EventReader, readAnthropicEvent, readChatEvent, readResponsesEvent } from './deltaEvents.ts';
import { FastLane } from './fastLane.ts';
import { createHttpFetch } from './httpFetch.ts';

const readers: Partial<Record<ProviderName, EventReader>> = {
  openai: readResponsesEvent,
  anthropic: readAnthropicEvent,
  compatible: readChatEvent,
};

/** The connection of one model call: its fast lane, and whether an answer has begun. */
export class CallWire {
  readonly lane: FastLane | undefined;
  /** Whether an answer has begun: distinguishes an unreachable provider from an interrupted answer. */
  answered = false;
  private readonly onBytes: () => void;

  constructor(adapter: ProviderName, onBytes: () => void, onText: (text: string) => void) {
    const read = readers[adapter];
    this.onBytes = onBytes;
    this.lane = read && new FastLane(read, onText);
  }

  bytes(chunk: Buffer): Uint8Array | undefined {
    this.onBytes();
    return this.lane ? this.lane.bytes(chunk) : chunk;
  }

  end(): Uint8Array | undefined {
    return this.lane?.end();
  }
}

/**
 * The fetch for the SDKs, and the wires of the running calls: a call is identified by its signal, which the SDKs pass
 * through.
 */
export function createWires(): { fetch: typeof fetch; wires: WeakMap<AbortSignal, CallWire> } {
  const wires = new WeakMap<AbortSignal, CallWire>();
  const answered = (signal: AbortSignal | undefined) => {
    const wire = signal && wires.get(signal);
    if (wire) wire.answered = true;
    return wire;
  };
  return { wires, fetch: createHttpFetch(answered) };
}
