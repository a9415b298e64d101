import type { Request } from 'express';
import { notFound } from '../../base/errors.ts';
import { chatModels } from '../../models/chat/models.ts';
import {
  createShare,
  findShareByToken,
  getShare,
  listShares,
  renewShareToken,
  revokeShare,
  type ThreadShare,
} from '../../models/chat/shares.ts';
import type { Thread } from '../../models/chat/thread.ts';
import { decodeCursor, encodeCursor } from '../../models/database/pages.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { authorityOf, callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { publicLink } from '../frame/links.ts';
import { wantsPage } from '../frame/middleware/pageErrors.ts';
import { sendPage } from '../frame/pages/page.ts';
import { bodyOf, pageOf, pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { authorizeListedThread } from './authorizeThread.ts';
import { presentShare, presentSharedMessage } from './presentShare.ts';
import { messageKey, messageKeyOf, placeOf } from './presentThread.ts';
import { sharePage } from './sharePage.ts';

const messagesPerPage = 50;

/** Links by which others read a thread: routes for the thread's owner, and for readers who have a link. */
export function shareRoutes(deps: RouteDeps) {
  const { config, database, identity } = deps;
  const router = createRouter();

  router.get('/api/threads/:threadId/shares', async (req, res) => {
    const thread = await threadOf(req);
    const { data, nextCursor } = await listShares(database, thread.id, pageOf(req));
    answer<'listThreadShares'>(res, 200, { data: data.map(presentShare), nextCursor });
  });

  router.post('/api/threads/:threadId/shares', async (req, res) => {
    const thread = await threadOf(req);
    const body = bodyOf<'shareThread'>(req) ?? {};
    const { toolCalls = false, fileNames = false, laterMessages = false, ttlSeconds = null } = body;
    const choice = { toolCalls, fileNames, laterMessages, ttlSeconds };
    const { apiKeyId } = authorityOf(callerOf(req));
    await makeOnce<'shareThread', { id: string }>(
      deps,
      req,
      res,
      'threadShare',
      async (id) => {
        await createShare(database, { id, threadId: thread.id, apiKeyId, choice }, actorOf(req));
        return { id };
      },
      {
        // The token is not stored, so a repeated request gets a new one.
        async show({ id }) {
          const token = await renewShareToken(database, id);
          return { ...presentShare(await getShare(database, id)), url: publicLink(config, `shared/${token}`) };
        },
      },
    );
  });

  router.delete('/api/threads/:threadId/shares/:shareId', async (req, res) => {
    const thread = await threadOf(req);
    const { shareId } = pathOf<'revokeThreadShare'>(req);
    await revokeShare(database, { id: shareId, thread }, actorOf(req));
    res.status(204).end();
  });

  router.get('/shared/:token', async (req, res) => {
    const { share, thread } = await openShare(pathOf<'readSharedThread'>(req).token);
    const { cursor } = queryOf<'readSharedThread'>(req);
    const { messages, hasMore } = await chatModels(database).Message.page({
      threadId: thread.id,
      ...(share.upToOrdinal !== null && { upToOrdinal: share.upToOrdinal }),
      after: placeOf(decodeCursor(cursor, messageKey)),
      limit: messagesPerPage,
    });
    const last = messages.at(-1);
    const view = {
      title: thread.title,
      data: messages.map((message) => presentSharedMessage(message, share)),
      nextCursor: hasMore && last !== undefined ? encodeCursor(messageKeyOf(last)) : null,
    };
    if (wantsPage(req)) sendPage(res, sharePage(view));
    else answer<'readSharedThread'>(res, 200, view);
  });

  function threadOf(req: Request): Promise<Thread> {
    const { threadId } = pathOf<'listThreadShares'>(req);
    return authorizeListedThread(deps, callerOf(req), threadId, queryOf<'listThreadShares'>(req).spaceId);
  }

  /**
   * A link ends with its thread, with its API key, and when its creator leaves the space. The answer does not tell
   * which.
   */
  async function openShare(token: string): Promise<{ share: ThreadShare; thread: Thread }> {
    const share = await findShareByToken(database, token);
    const thread = share && (await chatModels(database).Thread.open(share.threadId));
    const isMember = thread && (await identity.members.access(thread.spaceId, thread.userId)) !== undefined;
    if (!share || !thread || !isMember) throw notFound('link');
    if (share.apiKeyId !== null && !(await identity.keys.isValid(share.apiKeyId))) throw notFound('link');
    return { share, thread };
  }

  return router;
}
