import { Client } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import type { Config } from '../config/index.ts';
import type { Logger } from '../telemetry/logger.ts';
import { logTemporalTo } from './sdkLog.ts';

export interface TemporalConnection {
  native: NativeConnection;
  client: Client;
  close(): Promise<void>;
}

/**
 * One connection for a process's client and its worker. Sharing it is what lets a start hand the first workflow task to
 * the worker beside it, without a round trip through the server's queue (eager start).
 */
export async function connectTemporal(config: Pick<Config, 'temporal'>, logger: Logger): Promise<TemporalConnection> {
  // The first connection makes the SDK's runtime, which keeps the logger that it was made with.
  logTemporalTo(logger);
  const { address, namespace, apiKey, tls } = config.temporal;
  const native = await NativeConnection.connect({ address, apiKey, tls: tls || apiKey !== undefined ? {} : undefined });
  return {
    native,
    client: new Client({ connection: native, namespace }),
    close: () => native.close(),
  };
}
