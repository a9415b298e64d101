import { type EventSourceMessage, EventSourceParserStream } from 'eventsource-parser/stream';

/** An event of a turn's stream. `id` is the number of the chunk in its turn. */
export type ServerEvent = EventSourceMessage;

/**
 * Yields the events of a response. Calls `onBytes` for everything that arrives, even comments, since they show that the
 * server is alive.
 */
export async function* serverEvents(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void = () => undefined,
): AsyncGenerator<ServerEvent> {
  const heard = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(bytes, controller) {
      onBytes();
      controller.enqueue(bytes);
    },
  });
  const events = (body as ReadableStream<Uint8Array<ArrayBuffer>>)
    .pipeThrough(heard)
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  const reader = events.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
