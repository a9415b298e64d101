import type { operations } from '../../api/generated/types.gen.ts';
import type { MessagePart } from '../../models/chat/turnLog/foldChunks.ts';
import type { Identity } from '../../models/identity/index.ts';
import { type Collected, collect, type EventStream, openStream, type StreamRequest } from '../support/sseClient.ts';
import { waitFor } from '../support/waitFor.ts';
import { buildSpace, buildUser } from './identity.ts';

type Json<Id extends keyof operations, Status extends number> = operations[Id]['responses'] extends {
  [S in Status]: { content: { 'application/json': infer Body } };
}
  ? Body
  : never;

export type TurnBody = Json<'getTurn', 200>;
export type ThreadBody = Json<'getThread', 200>;
/** The contract says only that parts are objects. The AI SDK has their types. */
export type MessageBody = Omit<Json<'listMessages', 200>['data'][number], 'parts'> & { parts: MessagePart[] };
export type TurnPage = Json<'listTurns', 200>;

/** A chat user, as a client of the HTTP API. */
export interface ChatUser {
  id: string;
  email: string;
  token: string;
  spaceId: string;
  /** A response with any status. */
  fetch(path: string, init?: { method?: string; body?: unknown; headers?: Record<string, string> }): Promise<Response>;
  /** The body of a response that must be 2xx. */
  get<T>(path: string): Promise<T>;
  open(path: string, request?: Omit<StreamRequest, 'token'>): Promise<EventStream>;
  /** POST /chat/stream, without reading the stream. */
  send(body: Record<string, unknown>): Promise<EventStream>;
  /** POST /chat/stream, read to the end. */
  ask(body: Record<string, unknown>): Promise<Answer>;
  turn(turnId: string): Promise<TurnBody>;
  /** The turn, once it has ended. */
  ended(turnId: string): Promise<TurnBody>;
  messages(threadId: string): Promise<MessageBody[]>;
  /** The text of the turn's stored answer. */
  answerOf(turn: Pick<TurnBody, 'threadId' | 'assistantMessageId'>): Promise<string | undefined>;
}

export interface Answer extends Collected {
  turnId: string;
  threadId: string;
}

export async function buildChatUser(product: { url: string; identity: Identity }, name = 'chatter'): Promise<ChatUser> {
  const { user, token } = await buildUser(product.identity, name);
  const { spaceId } = await buildSpace(product.identity, user.id).then(({ space }) => ({ spaceId: space.id }));
  return asUser(product, { id: user.id, email: user.email, token, spaceId });
}

/** The same person with another credential. */
export function asUser(
  product: { url: string },
  { id, email, token, spaceId }: Pick<ChatUser, 'id' | 'email' | 'token' | 'spaceId'>,
): ChatUser {
  const user: ChatUser = {
    id,
    email,
    token,
    spaceId,
    fetch(path, { method = 'GET', body, headers } = {}) {
      return fetch(product.url + path, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
    },
    async get<T>(path: string) {
      const response = await user.fetch(path);
      if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
      return (await response.json()) as T;
    },
    open: (path, request) => openStream(product.url + path, { ...request, token }),
    send: (body) => user.open('/chat/stream', { body }),
    async ask(body) {
      const stream = await user.send(body);
      if (stream.response.status !== 200) {
        throw new Error(`The send was refused with ${stream.response.status}: ${await stream.response.text()}`);
      }
      return { ...(await collect(stream)), ...idsOf(stream) };
    },
    turn: (turnId) => user.get<TurnBody>(`/chat/turns/${turnId}`),
    ended: (turnId) =>
      waitFor(`the end of ${turnId}`, async () => {
        const turn = await user.turn(turnId);
        return turn.endedAt !== null && turn;
      }),
    async messages(threadId) {
      return (await user.get<{ data: MessageBody[] }>(`/api/threads/${threadId}/messages`)).data;
    },
    async answerOf({ threadId, assistantMessageId }) {
      const message = (await user.messages(threadId)).find(({ id: messageId }) => messageId === assistantMessageId);
      return message && textOf(message.parts);
    },
  };
  return user;
}

/** The ids in the headers of a turn's stream. */
export function idsOf({ response }: Pick<EventStream, 'response'>): { turnId: string; threadId: string } {
  return {
    turnId: response.headers.get('x-turn-id') ?? '',
    threadId: response.headers.get('x-thread-id') ?? '',
  };
}

/** The text parts of a message, joined. */
export function textOf(parts: readonly MessagePart[]): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

/** Functions of a client of OpenAI's API, which take any object. */
export const toolsNamed = (...names: string[]) =>
  names.map((name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } }));
