import { type EventSourceMessage, EventSourceParserStream } from 'eventsource-parser/stream';

/** One event of a turn's stream: `id` is the chunk's number in its turn. */
export type ServerEvent = EventSourceMessage;

/**
 * The events of a response. `onBytes` is called for everything that arrives, comments too, since they show that the
 * other side is alive.
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
