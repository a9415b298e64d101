import { type AuditEntry, listAudit } from '../../models/audit/audit.ts';
import { answer } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';
import type { components } from '../generated/types.gen.ts';

/** Who did what in a space. */
export function auditRoutes({ database }: RouteDeps) {
  const router = createRouter();

  router.get('/api/spaces/:spaceId/audit', async (req, res) => {
    const { spaceId } = pathOf<'listAudit'>(req);
    const { data, nextCursor } = await listAudit(database, spaceId, pageOf(req));
    answer<'listAudit'>(res, 200, { data: data.map(presentAuditEntry), nextCursor });
  });

  return router;
}

function presentAuditEntry(entry: AuditEntry): components['schemas']['AuditEntry'] {
  const { id, action, target, userId, credentialId, address, at } = entry;
  return { id, action, target, userId, credentialId, address, at: time(at) };
}
