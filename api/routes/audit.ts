import { listAudit } from '../../models/audit.ts';
import type { RouteDeps } from '../deps.ts';
import { presentAuditEntry } from '../presenters/audit.ts';
import { pageOf, pathOf } from '../request.ts';
import { createRouter } from '../router.ts';

/** Who did what in a space. */
export function auditRoutes({ database }: RouteDeps) {
  const router = createRouter();

  router.get('/api/spaces/:spaceId/audit', async (req, res) => {
    const { spaceId } = pathOf<'listAudit'>(req);
    const { data, nextCursor } = await listAudit(database, spaceId, pageOf(req));
    res.json({ data: data.map(presentAuditEntry), nextCursor });
  });

  return router;
}
