import { startApi } from '../../api/frame/server.ts';
import { createLiveComputers } from '../../bin/computers/liveComputers.ts';
import type { HostClient } from '../../integrations/computers/hostClient.ts';
import type { LiveHost } from '../../integrations/computers/liveComputers.ts';
import { defaultComputer } from '../../models/computers/defaultComputer.ts';
import { buildApi } from './api.ts';
import { buildSpace, buildUser } from './identity.ts';

/** The API over HTTP, in front of running computers that all have one client. */
export interface ServedComputers {
  url: string;
  /** The computer of a new user. */
  computer(): Promise<{ token: string; path: string }>;
  close(): Promise<void>;
}

export async function serveComputers(client: HostClient): Promise<ServedComputers> {
  const host: LiveHost = {
    client: () => client,
    files: async () => client,
    work: () => Promise.reject(new Error('No test asks for it.')),
    metrics: () => Promise.reject(new Error('No test asks for it.')),
  };
  const api = await buildApi();
  const { config, database, launcher } = api.deps;
  const liveComputers = createLiveComputers({ database, config, launcher, hostOf: async () => host });
  const http = { ...config.http, port: 0 };
  const server = await startApi({ ...api.deps, liveComputers, config: { ...config, http } });
  return {
    url: server.url,
    async computer() {
      const { user, token } = await buildUser(api.identity);
      const { space } = await buildSpace(api.identity, user.id);
      const { id } = await defaultComputer(database, space.id);
      const sql = "UPDATE computers SET status = 'running', host_id = 'hst_test' WHERE id = ?";
      await database.pool.query(sql, [id]);
      return { token, path: `/api/spaces/${space.id}/computers/${id}` };
    },
    async close() {
      await server.close({ graceMs: 0 });
      await api.close();
    },
  };
}
