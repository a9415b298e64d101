import { Client } from '@temporalio/client';
import { DefaultLogger, makeTelemetryFilterString, NativeConnection, Runtime } from '@temporalio/worker';
import type { Config } from '../config/index.ts';
import type { Logger } from '../telemetry/logger.ts';

export interface TemporalConnection {
  native: NativeConnection;
  client: Client;
  close(): Promise<void>;
}

/**
 * One connection for a process's client and its worker. Sharing it lets a start hand the first workflow task to the
 * worker of the same process, without a round trip through the server's queue (eager start).
 */
export async function connectTemporal(config: Pick<Config, 'temporal'>, logger: Logger): Promise<TemporalConnection> {
  // The first connection makes the SDK's runtime, which keeps the logger that it gets.
  logTemporalTo(logger);
  const { address, namespace, apiKey, tls } = config.temporal;
  const native = await NativeConnection.connect({ address, apiKey, tls: tls || apiKey !== undefined ? {} : undefined });
  return {
    native,
    client: new Client({ connection: native, namespace }),
    close: () => native.close(),
  };
}

const levels = { TRACE: 'trace', DEBUG: 'debug', INFO: 'info', WARN: 'warn', ERROR: 'error' } as const;

/** The SDK warns of this at each start of a worker that is meant to run activities only. */
const noWorkflows = 'No workflows registered, not polling';

let installed = false;

/** Sends the SDK's own log lines to our logger. The SDK's runtime is the process's, so only the first call counts. */
function logTemporalTo(logger: Logger): void {
  if (installed) return;
  installed = true;
  const child = logger.child({ component: 'temporal' });
  const sink = new DefaultLogger('INFO', ({ level, message, meta }) => {
    // A task token is long and useless in a log.
    const { error, taskToken: _, ...rest } = (meta ?? {}) as Record<string, unknown>;
    if (message.startsWith(noWorkflows)) return;
    child[levels[level]](error === undefined ? rest : { ...rest, err: error }, message);
  });
  Runtime.install({
    logger: sink,
    // By default the SDK's native part prints to standard output, which is for a command's answer.
    telemetryOptions: { logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' }) } },
    // The program handles signals itself: it stops its parts in order.
    shutdownSignals: [],
  });
}
