import { Connection } from '@temporalio/client';
import type { Config } from '../../config/index.ts';
import { registerSearchAttributes } from '../../temporal/searchAttributes.ts';

/** Runs `work` with a connection to the configured Temporal. */
export async function withTemporal<T>(config: Config, work: (connection: Connection) => Promise<T>): Promise<T> {
  const { address, apiKey, tls } = config.temporal;
  const connection = await Connection.connect({
    address,
    apiKey,
    tls: tls || apiKey !== undefined,
    connectTimeout: 5_000,
  });
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
}

/** gRPC: PERMISSION_DENIED and UNIMPLEMENTED, with which Temporal Cloud answers. */
const refusals = new Set([7, 12]);

/** Registers the missing search attributes; where that is not allowed, an operator has made them, which `doctor` checks. */
export async function registerWhereAllowed(config: Config): Promise<string[]> {
  return withTemporal(config, async (connection) => {
    try {
      return await registerSearchAttributes(connection, config.temporal.namespace);
    } catch (error) {
      if (refusals.has((error as { code?: number }).code ?? -1)) return [];
      throw error;
    }
  });
}
