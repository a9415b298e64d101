import type { Environment } from '../../config/index.ts';
import { prepareServicesDir } from '../../stack/folders.ts';
import { startStack } from '../../stack/index.ts';
import type { Report } from '../../stack/report.ts';
import { startTenantMySql } from './mysql.ts';

/** The run's server for the databases of spaces, of the same kind as the run's database. */
export interface TestTenants {
  environment: Environment;
  stop(): Promise<void>;
}

interface Options {
  dataDir: string;
  cacheDir: string;
  environment: Environment;
  report: Report;
  signal: AbortSignal;
}

export async function startTestTenants(options: Options): Promise<TestTenants> {
  const { dataDir, environment } = options;
  if (environment.ATRIUM_TEST_DATABASE === 'mysql') {
    const context = { ...options, servicesDir: prepareServicesDir(dataDir), ports: 'free', bucket: '' } as const;
    const { url, adminPort, stop } = await startTenantMySql(context);
    return { environment: variablesOf(url, adminPort), stop };
  }
  const need = { database: false, temporal: false, storage: false, tenantDatabase: true };
  const stack = await startStack({ ...options, need, ports: 'free', durability: 'relaxed' });
  return { environment: stack.environment, stop: () => stack.stop() };
}

function variablesOf(url: string, adminPort: number): Environment {
  return { ATRIUM_TENANT_DATABASE_URL: url, ATRIUM_TENANT_DATABASE_ADMIN_PORT: String(adminPort) };
}
