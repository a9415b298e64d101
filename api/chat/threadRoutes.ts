import type { Request } from 'express';
import { deleteThread } from '../../models/chat/deleteThread.ts';
import { chatModels } from '../../models/chat/models.ts';
import { searchThreads } from '../../models/chat/search.ts';
import type { Thread } from '../../models/chat/thread.ts';
import { decodeCursor, toTwoWayPage } from '../../models/database/pages.ts';
import { answer } from '../frame/answer.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { bodyOf, pageOf, pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { decodeSearch, encodeSearch } from '../frame/searchCursor.ts';
import { authorizeListedThread } from './authorizeThread.ts';
import {
  messageKey,
  messageKeyOf,
  placeOf,
  presentFoundText,
  presentMessage,
  presentThread,
  presentTurns,
} from './presentThread.ts';

/** The formats of list cursors: time and id for threads, ordinal for turns. */
const threadKey = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \S+$/;
const turnKey = /^\d{1,9}$/;

/** Threads, with their messages and turns, for their owner only. */
export function threadRoutes(deps: RouteDeps) {
  const { Message, Thread, Turn } = chatModels(deps.database);
  const router = createRouter();

  router.get('/api/spaces/:spaceId/threads', async (req, res) => {
    const caller = callerOf(req);
    const { spaceId } = pathOf<'listThreads'>(req);
    const { needsInput, order = 'desc' } = queryOf<'listThreads'>(req);
    const { limit, cursor } = pageOf(req);
    const [updatedAt, id] = decodeCursor(cursor, threadKey)?.split(' ') ?? [];
    const threads = await Thread.page({
      spaceId,
      userId: caller.userId,
      needsInput,
      order,
      limit: limit + 1,
      cursor: updatedAt === undefined || id === undefined ? undefined : { updatedAt: new Date(updatedAt), id },
    });
    const page = toTwoWayPage(threads, { limit, cursor }, (thread) => `${thread.updatedAt.toISOString()} ${thread.id}`);
    const waiting = await Turn.waitingOf(page.data.map(({ activeTurnId }) => activeTurnId));
    answer<'listThreads'>(res, 200, {
      ...page,
      data: page.data.map((thread) => presentThread(thread, waiting)),
    });
  });

  router.post('/api/spaces/:spaceId/threads', async (req, res) => {
    const { userId } = callerOf(req);
    const { spaceId } = pathOf<'createThread'>(req);
    const title = bodyOf<'createThread'>(req)?.title ?? null;
    await makeOnce<'createThread'>(deps, req, res, 'thread', async (id) => {
      return presentThread(await Thread.make({ id, spaceId, userId, title }));
    });
  });

  router.get('/api/spaces/:spaceId/threads/search', async (req, res) => {
    const { userId } = callerOf(req);
    const { spaceId } = pathOf<'searchThreads'>(req);
    const { q, in: field, limit = 20, cursor } = queryOf<'searchThreads'>(req);
    const { found, next } = await searchThreads(deps.database, {
      spaceId,
      userId,
      query: q,
      fields: field === undefined ? ['title', 'text'] : [field],
      limit,
      after: decodeSearch(cursor),
    });
    answer<'searchThreads'>(res, 200, {
      data: found.map(presentFoundText),
      nextCursor: next === undefined ? null : encodeSearch(next),
    });
  });

  router.get('/api/threads/:threadId', async (req, res) => {
    answer<'getThread'>(res, 200, await present(await threadOf(req)));
  });

  router.patch('/api/threads/:threadId', async (req, res) => {
    const thread = await threadOf(req);
    await thread.rename(bodyOf<'updateThread'>(req).title);
    answer<'updateThread'>(res, 200, await present(thread));
  });

  router.delete('/api/threads/:threadId', async (req, res) => {
    const thread = await threadOf(req);
    const operation = await deleteThread(deps.database, thread.id);
    void deps.launcher.startOperation(operation);
    res.status(204).location(`/api/operations/${operation.id}`).end();
  });

  router.get('/api/threads/:threadId/messages', async (req, res) => {
    const thread = await threadOf(req);
    const { limit, cursor } = pageOf(req);
    const { messages, hasMore } = await Message.page({
      threadId: thread.id,
      order: queryOf<'listMessages'>(req).order ?? 'asc',
      limit,
      after: placeOf(decodeCursor(cursor, messageKey)),
    });
    const page = toTwoWayPage(messages, { limit, cursor, hasMore }, messageKeyOf);
    answer<'listMessages'>(res, 200, { ...page, data: messages.map(presentMessage) });
  });

  router.get('/api/threads/:threadId/turns', async (req, res) => {
    const thread = await threadOf(req);
    const { limit, cursor } = pageOf(req);
    const key = decodeCursor(cursor, turnKey);
    const turns = await Turn.page({
      threadId: thread.id,
      order: queryOf<'listTurns'>(req).order ?? 'asc',
      limit: limit + 1,
      after: key === undefined ? undefined : Number(key),
    });
    const page = toTwoWayPage(turns, { limit, cursor }, (turn) => String(turn.ordinal));
    const data = await presentTurns(deps.database, page.data);
    answer<'listTurns'>(res, 200, { ...page, data });
  });

  /** Finds a thread by its own id or its client's chat id; all operations on one thread name it in the same places. */
  function threadOf(req: Request): Promise<Thread> {
    const { threadId } = pathOf<'getThread'>(req);
    return authorizeListedThread(deps, callerOf(req), threadId, queryOf<'getThread'>(req).spaceId);
  }

  async function present(thread: Thread) {
    return presentThread(thread, await Turn.waitingOf([thread.activeTurnId]));
  }

  return router;
}
