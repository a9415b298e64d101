import { join } from 'node:path';
import { assertNoRestore } from '../../backup/restore/journal.ts';
import { loadConfig, unknownSettings } from '../../config/index.ts';
import { type LaunchConfig, loadLaunchConfig } from '../../config/launch.ts';
import { startStack } from '../../stack/index.ts';
import { isPortFree } from '../../stack/ports.ts';
import { formatDuration, type Report, timed } from '../../stack/report.ts';
import { markInUse } from '../../stack/uncleanStart.ts';
import { requireDisk } from './checkDisk.ts';
import { CommandFailure } from './failure.ts';
import { findInstallation } from './findInstallation.ts';
import { announceOurselves, takeDataDir } from './running.ts';
import type { ScreenFacts } from './screen.ts';
import { stopOnSignals, stopRequested } from './signals.ts';

const root = join(import.meta.dirname, '..', '..');
const interruptedExitCode = 130;

/**
 * Runs Atrium until a stop is requested, then stops what it started. Returns the exit code. With `watch`, the API and
 * the worker run in a process of their own, which restarts when a file of the code changes.
 */
export async function up(
  report: Report,
  show: (facts: ScreenFacts) => void,
  { watch = false }: { watch?: boolean } = {},
): Promise<number> {
  const signal = stopOnSignals();
  const begin = performance.now();
  const launch = loadLaunchConfig();
  signal.addEventListener('abort', () => report('Stopping …'), { once: true });
  const started = new AsyncDisposableStack();
  let ready = false;
  try {
    const { facts, failed } = await start(launch, { report, signal, started, watch });
    ready = true;
    report(`Atrium is ready (${formatDuration(performance.now() - begin)})`);
    show(facts);
    const failure = await Promise.race([stopRequested(signal), failed]);
    if (typeof failure !== 'string') return 0;
    report(failure);
    return 1;
  } catch (error) {
    // A failure after a stop was requested mostly comes from that stop.
    if (!signal.aborted) throw error;
    return interruptedExitCode;
  } finally {
    await started.disposeAsync();
    if (signal.aborted) report(ready ? 'Stopped.' : 'Stopped before it was ready.');
  }
}

/**
 * Starts everything in order. Pushes each cleanup on `started`, so that cleanups run in reverse order, however far the
 * start got.
 */
async function start(
  launch: LaunchConfig,
  options: { report: Report; signal: AbortSignal; started: AsyncDisposableStack; watch: boolean },
) {
  const { report, signal, started, watch } = options;
  const lock = await takeDataDir(launch.dataDir, report, signal);
  started.defer(() => lock.release());
  assertNoRestore(launch.dataDir);
  await assertPortFree(launch);
  for (const unknown of unknownSettings()) report(`Warning: there is no setting ${unknown}; it is ignored`);
  await requireDisk(launch, { isNew: findInstallation(launch) === undefined, report });
  const presence = announceOurselves(launch.dataDir);
  started.defer(() => presence.withdraw());
  signal.addEventListener('abort', () => presence.update({ state: 'stopping' }), { once: true });

  // Loads while the stack starts. So an early failure, such as a taken port, does not wait for it, and neither do the
  // servers.
  const load = () => Promise.all([import('./prepare.ts'), import('./product.ts')]);
  let loading: ReturnType<typeof load> | undefined;
  const onLaunched = () => {
    loading = load();
    loading.catch(() => undefined);
  };
  const use = launch.need.storage ? markInUse(launch.dataDir) : undefined;
  // Until the database notes that the last use ended uncleanly, the next start must still find that out.
  let isNoted = use?.wasUnclean !== true;
  const stack = await startStack({ ...launch, databaseSocket: true, onLaunched, report, signal });
  started.defer(async () => {
    await stack.stop();
    if (isNoted) use?.end();
  });
  presence.update({ environment: stack.environment, parts: stack.parts() });
  stack.onRestart(() => presence.update({ parts: stack.parts() }));

  const [{ prepareInstallation }, { startProduct }] = await (loading ?? load());
  const environment = { ...launch.environment, ...stack.environment };
  const config = loadConfig(environment);
  const { user } = await timed(report, { done: 'Database and namespace up to date' }, () =>
    prepareInstallation(config, { report, signal, wasUnclean: use?.wasUnclean }),
  );
  isNoted = true;
  signal.throwIfAborted();

  const logFile = join(launch.dataDir, 'logs', 'atrium.log');
  const product = await timed(report, { done: 'API and worker started' }, async () => {
    if (!watch) return startProduct(config, 'both', logFile);
    const { startWatchedProduct } = await import('./watchedProduct.ts');
    return startWatchedProduct({ root, environment, logFile, report, signal });
  });
  started.defer(() => product.stop());
  signal.throwIfAborted();
  presence.update({ state: 'running', apiUrl: product.apiUrl });

  const facts: ScreenFacts = {
    apiUrl: product.apiUrl ?? config.http.publicUrl,
    temporalUiUrl: config.temporal.uiUrl,
    logFile,
    email: user.email,
    root,
    dataDir: launch.dataDir,
  };
  return { facts, failed: Promise.race([stack.failed, product.failed]) };
}

/** Runs before the long steps, to fail early. */
async function assertPortFree({ http }: LaunchConfig): Promise<void> {
  if (http.port === 0 || (await isPortFree(http.port, http.host))) return;
  throw new CommandFailure(
    `Port ${http.port} on ${http.host} is taken. Stop the program that uses it, or choose another port: ATRIUM_PORT=${http.port + 1} npm start`,
  );
}
