import { LoggerWithComposedMetadata } from '@temporalio/common/lib/logger.js';
import { DefaultLogger, makeTelemetryFilterString, Runtime } from '@temporalio/worker';
import type { Logger } from '../telemetry/logger.ts';

const levels = { TRACE: 'trace', DEBUG: 'debug', INFO: 'info', WARN: 'warn', ERROR: 'error' } as const;

let installed = false;

/** Sends the SDK's own log lines to ours. The SDK's runtime belongs to the process, so the first caller decides. */
export function logTemporalTo(logger: Logger): void {
  if (installed) return;
  installed = true;
  const child = logger.child({ component: 'temporal' });
  const sink = new DefaultLogger('INFO', ({ level, message, meta }) => {
    // A task token is long and useless in a log.
    const { error, taskToken: _, ...rest } = (meta ?? {}) as Record<string, unknown>;
    child[levels[level]](error === undefined ? rest : { ...rest, err: error }, message);
  });
  // The SDK puts the details of a line together before its level is looked at: a dozen times for each short workflow.
  const { prototype } = LoggerWithComposedMetadata;
  prototype.trace = prototype.debug = () => undefined;
  Runtime.install({
    logger: sink,
    // By default its native half prints to standard output, where a command's answer belongs.
    telemetryOptions: { logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' }) } },
    // Signals are the program's to handle: it stops its parts in order.
    shutdownSignals: [],
  });
}
