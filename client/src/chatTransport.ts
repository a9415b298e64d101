import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai';
import { type Connection, request } from './connection.ts';
import { AtriumError } from './errors.ts';
import { persistently, turnChunks } from './turnStream.ts';
import { nameParts } from './visibleParts.ts';

export interface ChatTransportOptions extends Connection {
  /** The space of the chats. Default: the user's default space. */
  spaceId?: string;
  /**
   * More fields for each message: `modelId`, `mode`, `notification`, `openTabs` … Options of `sendMessage` take
   * precedence.
   */
  body?: Record<string, unknown> | (() => Record<string, unknown>);
  /** Whether `stop()` also stops the turn, or only hangs up. Default: true. */
  stopsTurns?: boolean;
  /** How long to try to reconnect without hearing from the server. Default: five minutes. */
  giveUpAfterMs?: number;
}

type SendOptions<Message extends UIMessage> = Parameters<ChatTransport<Message>['sendMessages']>[0];
type ReconnectOptions<Message extends UIMessage> = Parameters<ChatTransport<Message>['reconnectToStream']>[0];

const defaultGiveUpAfterMs = 5 * 60_000;

/**
 * The AI SDK's chat transport for Atrium: `useChat({ transport: new AtriumChatTransport({ baseUrl, token }) })`.
 * Repeated requests send a message only once, and an answer is read to its end in spite of broken connections.
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
      messages: newOf(messages, trigger),
      trigger,
      messageId,
      outboxItemId: crypto.randomUUID(),
    });
    const headers = { ...headersOf(options.headers), 'content-type': 'application/json' };
    const first = await this.#begin(
      // Safe to repeat: the outbox item's id makes it one message, and of a tool's results the first counts.
      () => request(this.#options, '/chat/stream', { method: 'POST', headers, body: text }),
      abortSignal,
    );
    return this.#read(first, abortSignal);
  }

  async reconnectToStream(options: ReconnectOptions<Message>): Promise<ReadableStream<UIMessageChunk> | null> {
    const { spaceId } = this.#options;
    const query = spaceId === undefined ? '' : `?spaceId=${encodeURIComponent(spaceId)}`;
    const path = `/chat/stream/${encodeURIComponent(options.chatId)}/stream${query}`;
    const headers = headersOf(options.headers);
    const first = await this.#begin(() => request(this.#options, path, { headers })).catch((error: unknown) => {
      // A chat that was never sent has nothing to resume.
      if (error instanceof AtriumError && error.status === 404) return null;
      throw error;
    });
    return first === null || first.status === 204 ? null : this.#read(first, undefined);
  }

  /**
   * The first response. A stop before it rejects at once, but the pending request goes on, since only its response
   * names the turn to stop.
   */
  async #begin(ask: () => Promise<Response>, abortSignal: AbortSignal = new AbortController().signal) {
    const asking = persistently(
      async () => {
        const response = await ask();
        if (abortSignal.aborted) {
          this.#stop(response);
          void response.body?.cancel().catch(() => undefined);
        }
        return response;
      },
      { giveUpAfterMs: this.#giveUpAfterMs, signal: abortSignal },
    );
    const aborted = new Promise<never>((_resolve, reject) => {
      abortSignal.addEventListener('abort', () => reject(abortSignal.reason), { once: true });
    });
    return Promise.race([asking, aborted]);
  }

  #read(first: Response, abortSignal: AbortSignal | undefined): ReadableStream<UIMessageChunk> {
    const left = new AbortController();
    const signal = abortSignal === undefined ? left.signal : AbortSignal.any([left.signal, abortSignal]);
    if (abortSignal?.aborted) this.#stop(first);
    abortSignal?.addEventListener('abort', () => this.#stop(first), { once: true });
    const chunks = nameParts(turnChunks(this.#options, first, { giveUpAfterMs: this.#giveUpAfterMs, signal }));
    return new ReadableStream<UIMessageChunk>({
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => left.abort(reason),
    });
  }

  get #giveUpAfterMs(): number {
    return this.#options.giveUpAfterMs ?? defaultGiveUpAfterMs;
  }

  #stop(first: Response): void {
    const turnId = first.headers.get('x-turn-id');
    if (turnId === null || this.#options.stopsTurns === false) return;
    void request(this.#options, `/chat/turns/${turnId}/stop`, { method: 'POST' }).catch(() => undefined);
  }
}

/**
 * The messages that the server does not have yet, since it keeps the thread. Usually the newest message of the user. If
 * the client added tool results or approvals to an answer, the calls of its last step: only those can be waiting.
 */
function newOf(messages: UIMessage[], trigger: SendOptions<UIMessage>['trigger']): UIMessage[] {
  const last = messages.at(-1);
  if (last?.role === 'assistant' && trigger === 'submit-message') {
    const step = last.parts.slice(last.parts.findLastIndex(({ type }) => type === 'step-start') + 1);
    const calls = step.filter(({ type }) => type === 'dynamic-tool' || type.startsWith('tool-'));
    if (calls.length > 0) return [{ ...last, parts: calls }];
  }
  return messages.filter(({ role }) => role === 'user').slice(-1);
}

function headersOf(headers: Record<string, string> | Headers | undefined): Record<string, string> {
  return headers instanceof Headers ? Object.fromEntries(headers) : { ...headers };
}
