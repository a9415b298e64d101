import type { LogLevel, Runtime } from '@temporalio/worker';
import { DefaultLogger } from '@temporalio/worker';
import type { Logger } from '../telemetry/logger.ts';

const levels = { TRACE: 'trace', DEBUG: 'debug', INFO: 'info', WARN: 'warn', ERROR: 'error' } as const;

let installed = false;

/** Sends the SDK's own log lines to ours. The runtime is the process's, so the first caller decides. */
export function logTemporalTo(runtime: typeof Runtime, logger: Logger): void {
  if (installed) return;
  installed = true;
  const child = logger.child({ component: 'temporal' });
  const sink = new DefaultLogger('INFO' satisfies LogLevel, ({ level, message, meta }) => {
    child[levels[level]](meta ?? {}, message);
  });
  // Signals are the program's to handle: it stops its parts in order.
  runtime.install({ logger: sink, shutdownSignals: [] });
}
