import type { Config } from '../../config/index.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createRuntime, type Role } from './runtime.ts';

/** The running parts of Atrium in this process. */
export interface Product {
  apiUrl: string | undefined;
  /** Settles with a line for a person when a part ends though nobody has asked it to. */
  failed: Promise<string>;
  stop(): Promise<void>;
}

/** How long a stop waits: streams of a machine's own clients resume, and turns go on at the next start. */
const graceMs = { both: 2_000, api: 30_000, worker: 30_000 } as const;

/** Starts the API, a worker, or both over one connection to Temporal. `logFile` takes the log where the terminal has a screen. */
export async function startProduct(config: Config, role: Role, logFile?: string): Promise<Product> {
  const logger = createLogger({ level: config.logLevel, destination: logFile });
  const runtime = await createRuntime(config, logger, role);
  const started = new AsyncDisposableStack();
  started.defer(() => runtime.close());
  try {
    const sweeper = new AbortController();
    const worker = role === 'api' ? undefined : await runtime.startWorker({ shutdownGraceMs: graceMs[role] });
    if (worker !== undefined) started.defer(() => worker.stop());
    const api = role === 'worker' ? undefined : await runtime.startApi();
    if (api !== undefined) started.defer(() => api.close({ graceMs: graceMs[role] }));
    const ensured = runtime.keepSchedules(sweeper.signal);
    started.defer(async () => {
      sweeper.abort();
      await ensured;
    });
    return {
      apiUrl: api?.url,
      failed: (worker?.failed ?? new Promise<never>(() => undefined)).catch((error: unknown) => {
        logger.fatal({ err: error }, 'The worker has ended by itself.');
        return 'The worker has ended by itself; the log says why.';
      }),
      stop: () => started.disposeAsync(),
    };
  } catch (error) {
    await started.disposeAsync();
    throw error;
  }
}
