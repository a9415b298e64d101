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

/** gRPC PERMISSION_DENIED and UNIMPLEMENTED. Temporal Cloud answers with these. */
const refusals = new Set([7, 12]);

/**
 * Registers the missing search attributes. Where that is not allowed, an operator must make them; `doctor` checks that.
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

/**
 * gRPC INVALID_ARGUMENT, PERMISSION_DENIED and UNAUTHENTICATED. NOT_FOUND is not final: the namespace may still be
 * made.
 */
const finalAnswers = new Set([3, 7, 16]);
const serveTimeoutMs = 180_000;
const retryMs = 500;

/**
 * Like {@link registerWhereAllowed}, but for a start: waits for a server that does not serve yet, reports progress, and
 * says what is wrong after too long.
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
