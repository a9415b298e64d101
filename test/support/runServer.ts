import type { Environment } from '../../config/index.ts';
import type { SharedProduct } from './sharedProducts.ts';

/** The variable with the address of the run's server (`sharedProducts.ts`), for test files. */
export const runServerVariable = 'ATRIUM_TEST_RUN_SERVER';

/** The running Atrium of this Jest worker. It uses the provider at `providerUrl` until it is returned. */
export async function borrowProduct(providerUrl: string): Promise<SharedProduct> {
  return (await ask('POST', `/products/${worker()}`, providerUrl)) as SharedProduct;
}

/** Returns the Atrium. With `isBroken` it is not reused for the next file. */
export async function returnProduct(isBroken: boolean): Promise<void> {
  await ask('DELETE', `/products/${worker()}${isBroken ? '?broken' : ''}`);
}

/** The variables of this run's server for the databases of spaces. */
export async function tenantServer(): Promise<Environment> {
  return (await ask('POST', '/tenants')) as Environment;
}

/**
 * Removes an installation's schedules from Temporal. Not needed outside a test run, where Temporal ends with its
 * starter.
 */
export async function forgetInstallation(name: string): Promise<void> {
  if (process.env[runServerVariable] !== undefined) await ask('DELETE', `/installations/${name}`);
}

/** Runs an installation's sweeper now. */
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
