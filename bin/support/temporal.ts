import { Connection } from '@temporalio/client';
import type { Config } from '../../config/index.ts';
import type { Report } from '../../stack/report.ts';
import { waitUntil } from '../../stack/waiting.ts';
import { registerSearchAttributes } from '../../temporal/searchAttributes.ts';

/** Runs `work` with a connection to the configured Temporal. */
export async function withTemporal<T>(config: Config, work: (connection: Connection) => Promise<T>): Promise<T> {
  const { address, apiKey, tls } = config.temporal;
  const connection = await Connection.connect({
    address,
    apiKey,
    tls: tls || apiKey !== undefined,
    connectTimeout: 15_000,
  });
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
}

/** gRPC: PERMISSION_DENIED and UNIMPLEMENTED, with which Temporal Cloud answers. */
const refusals = new Set([7, 12]);

/**
 * Registers the missing search attributes; where that is not allowed, an operator must have made them, which `doctor`
 * checks.
 */
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

/** gRPC: INVALID_ARGUMENT, PERMISSION_DENIED and UNAUTHENTICATED. A namespace that is not there may yet be made. */
const finalAnswers = new Set([3, 7, 16]);
const serveTimeoutMs = 180_000;
const retryMs = 500;

/**
 * As {@link registerWhereAllowed}, for a start: waits for a server that does not serve yet, says that it does, and says
 * what is wrong when it goes on for too long.
 */
export async function registerWhenServed(
  config: Config,
  options: { report: Report; signal: AbortSignal; timeoutMs?: number; progressMs?: number },
): Promise<void> {
  const { address, namespace } = config.temporal;
  await waitUntil(() => registerWhereAllowed(config), {
    timeoutMs: serveTimeoutMs,
    ...options,
    title: `Temporal at ${address} (namespace ${namespace})`,
    pollMs: retryMs,
    isFinal: (error) => finalAnswers.has((error as { code?: number }).code ?? -1),
  });
}
