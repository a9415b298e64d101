import type { Environment } from '../../config/index.ts';
import type { SharedProduct } from './sharedProducts.ts';

/** The variable that names the run's server (`sharedProducts.ts`) to the test files. */
export const runServerVariable = 'ATRIUM_TEST_RUN_SERVER';

/** The running Atrium of this Jest worker. It reaches the provider at `providerUrl` until it is given back. */
export async function borrowProduct(providerUrl: string): Promise<SharedProduct> {
  return (await ask('POST', `/products/${worker()}`, providerUrl)) as SharedProduct;
}

/** `isBroken` when the next file had better not have it. */
export async function returnProduct(isBroken: boolean): Promise<void> {
  await ask('DELETE', `/products/${worker()}${isBroken ? '?broken' : ''}`);
}

/** The variables of this run's server for the databases of spaces. */
export async function tenantServer(): Promise<Environment> {
  return (await ask('POST', '/tenants')) as Environment;
}

/** Ends what an installation has left in Temporal. Outside a run of tests, Temporal ends with who started it. */
export async function forgetInstallation(name: string): Promise<void> {
  if (process.env[runServerVariable] !== undefined) await ask('DELETE', `/installations/${name}`);
}

/** Has the sweeper of an installation come now. */
export async function sweepNow(name: string): Promise<void> {
  if (process.env[runServerVariable] !== undefined) await ask('POST', `/sweeps/${name}`);
}

const worker = () => process.env.JEST_WORKER_ID ?? '1';

async function ask(method: string, path: string, body?: string): Promise<unknown> {
  const response = await fetch(`${process.env[runServerVariable]}${path}`, { method, body });
  const text = await response.text();
  if (!response.ok) throw new Error(`The run's server could not ${method} ${path}: ${text}`);
  return JSON.parse(text);
}
