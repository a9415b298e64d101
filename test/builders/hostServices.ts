import type { HostDeps } from '../../activities/computers/deps.ts';
import { createServices } from '../../bin/support/services.ts';
import type { Host } from '../../integrations/computers/host/host.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createLauncher } from '../../temporal/launcher.ts';
import { createTestEnvironment } from '../support/environment.ts';

/** The services of a worker without a process of its own, for the activities of hosts in a test. */
export async function buildHostServices() {
  const environment = await createTestEnvironment();
  const { config, database } = environment;
  const logger = createLogger({ level: 'silent' });
  const services = await createServices({ config, logger, readers: false, remoteWriters: false, database });
  return {
    services,
    depsOn(host: Host): HostDeps {
      const { client } = services.temporal;
      const workflows = createLauncher({ client, config, logger, sharesWorkersConnection: false });
      return { ...services, workflows, host, environment: {} };
    },
    async close() {
      await services.close();
      await environment.close();
    },
  };
}
