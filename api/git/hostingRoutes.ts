import type { RequestHandler } from 'express';
import { makeDue } from '../../models/git/installationRows.ts';
import { syncInstallations } from '../../models/git/installations.ts';
import { answer } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { bodyOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';

/** For all installations of a space. One alone may take ten seconds. */
const syncTimeoutMs = 30_000;
const eventsOfInstallations = new Set(['installation', 'installation_repositories']);

/** The synchronization of installations, under both of its paths, and the hosting provider's notifications. */
export function hostingRoutes(deps: RouteDeps) {
  const { database, gitHosting, limits } = deps;
  const router = createRouter();

  const sync: RequestHandler = async (req, res) => {
    const { spaceId } = pathOf<'syncInstallations'>(req);
    const { name: provider, gitHost, installation } = gitHosting.require('tokens');
    const signal = AbortSignal.timeout(syncTimeoutMs);
    const look = (id: string) => installation(id, signal);
    const credentials = await syncInstallations(database, { spaceId, provider, gitHost }, look);
    const body = { synced: credentials.length, credentials };
    answer<'syncInstallations' | 'syncGithubInstallations'>(res, 200, body);
  };
  const base = '/api/spaces/:spaceId/git';
  router.post([`${base}/hosting/sync-installations`, `${base}/github/sync-installations`], sync);

  // A notification is only a hint, because a lost one is not sent again. The sweeper asks the provider then, and daily.
  router.post('/api/webhooks/github', async (req, res) => {
    try {
      gitHosting.verify(req.rawBody ?? Buffer.alloc(0), req.get('x-hub-signature-256'));
    } catch (error) {
      // Forged notifications count against their address. Genuine ones are not limited.
      await limits.failedAuthentication(req, res);
      throw error;
    }
    const { installation } = bodyOf<'receiveGithubEvent'>(req);
    if (installation !== undefined && eventsOfInstallations.has(req.get('x-github-event') ?? '')) {
      await makeDue(database, 'github', String(installation.id));
    }
    answer<'receiveGithubEvent'>(res, 200, { received: true });
  });

  return router;
}
