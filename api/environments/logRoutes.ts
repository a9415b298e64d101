import { getVersion } from '../../models/environments/version.ts';
import { afterOf, positionUnknown, sendText, wantsEvents } from '../computers/processes/sendText.ts';
import { streamOutput } from '../computers/processes/streamOutput.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { buildLogOf } from './buildLog.ts';

/** The logs of builds. */
export function environmentLogRoutes(deps: RouteDeps) {
  const router = createRouter();

  router.get('/api/spaces/:spaceId/environments/:environmentId/log', async (req, res) => {
    const { spaceId, environmentId } = pathOf<'readEnvironmentLog'>(req);
    const { version: number, after: asked } = queryOf<'readEnvironmentLog'>(req);
    const version = await getVersion(deps.database, { spaceId, environmentId, number });
    const after = afterOf(req, asked);
    const log = await buildLogOf(deps, version);
    if (after > log.bytes) throw positionUnknown();
    if (wantsEvents(req)) {
      const open = (signal: AbortSignal) => log.records(after, { follow: true, signal });
      return streamOutput(deps, req, res, { open });
    }
    await sendText(req, res, log.bytes, (signal) => log.records(after, { follow: false, signal }));
  });

  return router;
}
