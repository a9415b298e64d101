import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai';
import { type Connection, request } from './connection.ts';
import { AtriumError } from './errors.ts';
import { persistently, turnChunks } from './turnStream.ts';
import { nameParts } from './visibleParts.ts';

export interface ChatTransportOptions extends Connection {
  /** Where chats are; without it, in the user's default space. */
  spaceId?: string;
  /**
   * Further fields of each message: `modelId`, `mode`, `notification`, `openTabs` … Options of `sendMessage` take
   * precedence.
   */
  body?: Record<string, unknown> | (() => Record<string, unknown>);
  /** Whether `stop()` stops the turn too, or only hangs up. Default: true. */
  stopsTurns?: boolean;
  /** How long to try to reconnect without hearing from the server. Default: five minutes. */
  giveUpAfterMs?: number;
}

type SendOptions<Message extends UIMessage> = Parameters<ChatTransport<Message>['sendMessages']>[0];
type ReconnectOptions<Message extends UIMessage> = Parameters<ChatTransport<Message>['reconnectToStream']>[0];

const defaultGiveUpAfterMs = 5 * 60_000;

/**
 * The AI SDK's chat transport on Atrium: `useChat({ transport: new AtriumChatTransport({ baseUrl, token }) })`. A
 * message is sent once however often its request is, and an answer is read to its end however often its connection
 * breaks.
 */
export class AtriumChatTransport<Message extends UIMessage = UIMessage> implements ChatTransport<Message> {
  /** Reconnecting replays the running answer from its beginning, as `useChat` expects. */
  readonly resumeStreamIsReplay = true;
  readonly #options: ChatTransportOptions;

  constructor(options: ChatTransportOptions) {
    this.#options = options;
  }

  async sendMessages(options: SendOptions<Message>): Promise<ReadableStream<UIMessageChunk>> {
    const { chatId, messages, trigger, messageId, abortSignal } = options;
    const { spaceId, body } = this.#options;
    const text = JSON.stringify({
      ...(typeof body === 'function' ? body() : body),
      ...options.body,
      ...(spaceId !== undefined && { spaceId }),
      id: chatId,
      // The server keeps the thread: it only needs the new message, or the one in question.
      messages: messages.filter(({ role }) => role === 'user').slice(-1),
      trigger,
      messageId,
      outboxItemId: crypto.randomUUID(),
    });
    const headers = { ...headersOf(options.headers), 'content-type': 'application/json' };
    return this.#stream(abortSignal, (signal) =>
      // Repeating is safe: the outbox item's id makes it one message.
      request(this.#options, '/chat/stream', { method: 'POST', headers, body: text, signal }),
    );
  }

  async reconnectToStream(options: ReconnectOptions<Message>): Promise<ReadableStream<UIMessageChunk> | null> {
    const { spaceId } = this.#options;
    const query = spaceId === undefined ? '' : `?spaceId=${encodeURIComponent(spaceId)}`;
    const path = `/chat/stream/${encodeURIComponent(options.chatId)}/stream${query}`;
    let nothingRuns = false;
    const stream = await this.#stream(undefined, async (signal) => {
      const response = await request(this.#options, path, { headers: headersOf(options.headers), signal });
      nothingRuns = response.status === 204;
      return response;
    }).catch((error: unknown) => {
      // A chat that was never sent has nothing to resume.
      if (error instanceof AtriumError && error.status === 404) return null;
      throw error;
    });
    return nothingRuns ? null : stream;
  }

  async #stream(
    abortSignal: AbortSignal | undefined,
    ask: (signal: AbortSignal) => Promise<Response>,
  ): Promise<ReadableStream<UIMessageChunk>> {
    const left = new AbortController();
    const signal = abortSignal === undefined ? left.signal : AbortSignal.any([left.signal, abortSignal]);
    const options = { giveUpAfterMs: this.#options.giveUpAfterMs ?? defaultGiveUpAfterMs, signal };
    const first = await persistently(() => ask(signal), options);
    const turnId = first.headers.get('x-turn-id');
    if (turnId !== null && this.#options.stopsTurns !== false) {
      abortSignal?.addEventListener('abort', () => void this.#stop(turnId), { once: true });
    }
    const chunks = nameParts(turnChunks(this.#options, first, options));
    return new ReadableStream<UIMessageChunk>({
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => left.abort(reason),
    });
  }

  async #stop(turnId: string): Promise<void> {
    await request(this.#options, `/chat/turns/${turnId}/stop`, { method: 'POST' }).catch(() => undefined);
  }
}

function headersOf(headers: Record<string, string> | Headers | undefined): Record<string, string> {
  return headers instanceof Headers ? Object.fromEntries(headers) : { ...headers };
}
