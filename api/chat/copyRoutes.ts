import { pipeline } from 'node:stream/promises';
import type { Request } from 'express';
import { forkThread } from '../../models/chat/forkThread.ts';
import type { Thread } from '../../models/chat/thread.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { bodyOf, pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { authorizeListedThread } from './authorizeThread.ts';
import { exportJson, exportMarkdown } from './exportThread.ts';
import { presentThread } from './presentThread.ts';

/** Copies of a thread for its owner: another thread that continues from one of its messages, and exports. */
export function copyRoutes(deps: RouteDeps) {
  const { database } = deps;
  const router = createRouter();

  router.post('/api/threads/:threadId/fork', async (req, res) => {
    const { id: threadId } = await threadOf(req);
    const { messageId, title } = bodyOf<'forkThread'>(req) ?? {};
    await makeOnce<'forkThread'>(deps, req, res, 'thread', async (id) => {
      return presentThread(await forkThread(database, { id, threadId, messageId, title }));
    });
  });

  router.get('/api/threads/:threadId/export', async (req, res) => {
    const thread = await threadOf(req);
    const { format = 'json' } = queryOf<'exportThread'>(req);
    if (format === 'markdown') res.type('text/markdown').attachment(`${thread.id}.md`);
    else res.type('application/json').attachment(`${thread.id}.json`);
    // Written at the reader's pace, since a thread may be long.
    await pipeline((format === 'markdown' ? exportMarkdown : exportJson)(database, thread), res);
  });

  function threadOf(req: Request): Promise<Thread> {
    const { threadId } = pathOf<'exportThread'>(req);
    return authorizeListedThread(deps, callerOf(req), threadId, queryOf<'exportThread'>(req).spaceId);
  }

  return router;
}
