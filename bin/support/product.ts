import { orAfter } from '../../base/async.ts';
import { type Config, unknownSettings } from '../../config/index.ts';
import { loadAhead } from '../../integrations/onFirstUse.ts';
import type { Database } from '../../models/database/database.ts';
import { triggerAdvice, unguardedChanges } from '../../models/migrations/ledgerTriggers.ts';
import { createLogger, type Logger } from '../../telemetry/logger.ts';
import { createRuntime, type Role } from './runtime.ts';

export interface Product {
  apiUrl: string | undefined;
  probesUrl: string | undefined;
  /** Resolves with a line for a person when a part ends by itself. */
  failed: Promise<string>;
  /**
   * Ends everything in order. Settles within the drain time, the grace periods and a few seconds, even if a part does
   * not answer.
   */
  stop(): Promise<void>;
}

/**
 * How long an API goes on answering after a stop is requested. A single machine has no load balancer that must notice.
 */
const defaultDrainMs = { both: 0, api: 5_000, worker: 0 } as const;
/**
 * How long a stop waits. On a single machine, streams resume and turns go on at the next start. A worker waits longer
 * than almost any model call takes, since an abandoned call is made, and paid, again.
 */
const defaultGraceMs = { both: 2_000, api: 30_000, worker: 300_000 } as const;
/** Added to all grace periods. A part that has not closed by then is frozen, and ends with the process. */
const closeMs = 10_000;
const sweeperStopMs = 1_000;

/**
 * Starts the API, a worker, or both over one connection to Temporal. The log goes to `logFile` where the terminal shows
 * the screen.
 */
export async function startProduct(config: Config, role: Role, logFile?: string): Promise<Product> {
  const logger = createLogger({ level: config.logLevel, destination: logFile });
  const unknown = unknownSettings();
  if (unknown.length > 0) logger.warn({ unknown }, 'There are no such settings: they are ignored.');
  const runtime = await createRuntime(config, logger, role);
  const { drainMs = defaultDrainMs[role], graceMs = defaultGraceMs[role] } = config.stopping;
  const callGraceMs = config.stopping.graceMs ?? defaultGraceMs.worker;
  const started = new AsyncDisposableStack();
  const never = new Promise<never>(() => undefined);
  started.defer(() => runtime.close());
  try {
    const sweeper = new AbortController();
    const { worker, hosting, api: made } = await runtime.startParts({ shutdownGraceMs: graceMs });
    if (worker !== undefined) started.defer(() => worker.stop());
    if (hosting !== undefined) started.defer(() => hosting.stop({ withComputers: role === 'both' }));
    const probes = worker && (await runtime.startWorkerProbes(worker));
    if (probes !== undefined) started.defer(() => probes.close());
    const headStarts = runtime.startHeadStarts({ shutdownGraceMs: callGraceMs });
    if (headStarts !== undefined) started.defer(() => headStarts.stop());
    const api = await made?.open();
    if (api !== undefined) started.defer(() => api.close({ drainMs, graceMs }));
    void warnOfUnguardedLedger(runtime.database, logger);
    const ensured = runtime.keepSchedules(sweeper.signal);
    loadAhead(sweeper.signal).catch((error: unknown) => logger.error({ err: error }, 'A package could not be loaded.'));
    started.defer(async () => {
      sweeper.abort();
      await orAfter(ensured, sweeperStopMs, undefined);
    });
    return {
      apiUrl: api?.url,
      probesUrl: probes?.url,
      failed: Promise.race([worker?.failed ?? never, hosting?.failed ?? never]).catch((error: unknown) => {
        logger.fatal({ err: error }, 'The worker has ended by itself.');
        return 'The worker has ended by itself; the log says why.';
      }),
      async stop() {
        const parts = (api === undefined ? 0 : 1) + (worker === undefined ? 0 : 1) + (hosting === undefined ? 0 : 1);
        const callsMs = headStarts === undefined ? 0 : callGraceMs;
        const longestMs = drainMs + parts * graceMs + callsMs + closeMs;
        const ended = await orAfter(started.disposeAsync(), longestMs, 'overdue');
        if (ended === 'overdue') logger.error('Something did not end in its time, and ends with the process.');
      },
    };
  } catch (error) {
    await started.disposeAsync();
    throw error;
  }
}

async function warnOfUnguardedLedger(database: Database, logger: Logger): Promise<void> {
  try {
    const unguarded = await unguardedChanges(database);
    if (unguarded.length > 0) logger.warn({ unguarded }, `The database does not guard the ledger: ${triggerAdvice}.`);
  } catch (error) {
    logger.warn({ err: error }, 'Whether the database guards the ledger could not be found out.');
  }
}
