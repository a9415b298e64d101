/** One event of a turn's stream: `id` is the chunk's number in its turn. */
export interface ServerEvent {
  id: string | undefined;
  data: string;
}

/**
 * The events of a response (WHATWG server-sent events, of which a turn's stream uses `id` and `data`). `onBytes` is
 * called for everything that arrives, comments too, since they show that the other side is alive.
 */
export async function* serverEvents(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void = () => undefined,
): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let rest = '';
  let id: string | undefined;
  let data: string[] = [];
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines.map((text) => text.replace(/\r$/, ''))) {
        if (line === '') {
          if (data.length > 0) yield { id, data: data.join('\n') };
          [id, data] = [undefined, []];
        } else if (line.startsWith('id:')) id = line.slice(3).trimStart();
        else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
