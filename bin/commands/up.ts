import { join } from 'node:path';
import type { Command } from 'commander';
import { loadConfig } from '../../config/index.ts';
import { type LaunchConfig, loadLaunchConfig } from '../../config/launch.ts';
import { formatDuration, isPortFree, type Report, startStack, timed } from '../../stack/index.ts';
import { wantsJson } from '../support/answer.ts';
import { CommandFailure } from '../support/failure.ts';
import { prepareInstallation } from '../support/prepare.ts';
import { startProduct } from '../support/product.ts';
import { announceOurselves, takeDataDir } from '../support/running.ts';
import { readyScreen, type ScreenFacts } from '../support/screen.ts';
import { stopOnSignals, stopRequested } from '../support/signals.ts';

const root = join(import.meta.dirname, '..', '..');
const interruptedExitCode = 130;

/** `atrium up`, which is `npm start`: the whole product in one process, with those of its parts that are not configured elsewhere. */
export function addUp(program: Command): void {
  program
    .command('up')
    .description('get and start everything on this machine, until Ctrl-C')
    .option('--json', 'print one line of JSON when it is ready')
    .action(async (_options: unknown, command: Command) => {
      const json = wantsJson(command);
      // With --json, standard output is for the answer alone.
      const report: Report = (line) => (json ? console.error(line) : console.log(line));
      const exitCode = await up(report, (facts) => console.log(json ? JSON.stringify(facts) : readyScreen(facts)));
      process.exit(exitCode);
    });
}

async function up(report: Report, show: (facts: ScreenFacts) => void): Promise<number> {
  const signal = stopOnSignals();
  const begin = performance.now();
  const launch = loadLaunchConfig();
  signal.addEventListener('abort', () => report('Stopping …'), { once: true });
  const started = new AsyncDisposableStack();
  let ready = false;
  try {
    const { facts, failed } = await start(launch, report, signal, started);
    ready = true;
    report(`Atrium is ready (${formatDuration(performance.now() - begin)})`);
    show(facts);
    const failure = await Promise.race([stopRequested(signal), failed]);
    if (typeof failure !== 'string') return 0;
    report(failure);
    return 1;
  } catch (error) {
    // What fails after a stop was asked for, mostly fails because of it.
    if (!signal.aborted) throw error;
    return interruptedExitCode;
  } finally {
    const stopBegin = performance.now();
    await started.disposeAsync();
    if (signal.aborted)
      report(`${ready ? 'Stopped' : 'Stopped before it was ready'} (${formatDuration(performance.now() - stopBegin)})`);
  }
}

/** Starts all in order. What has to be undone is put on `started`, so that it is undone in the reverse order, however far this came. */
async function start(launch: LaunchConfig, report: Report, signal: AbortSignal, started: AsyncDisposableStack) {
  const lock = await takeDataDir(launch.dataDir, report, signal);
  started.defer(() => lock.release());
  await assertPortFree(launch);
  const presence = announceOurselves(launch.dataDir);
  started.defer(() => presence.withdraw());
  signal.addEventListener('abort', () => presence.update({ state: 'stopping' }), { once: true });

  const stack = await startStack({ ...launch, report, signal });
  started.defer(() => stack.stop());
  presence.update({ environment: stack.environment, parts: stack.parts });

  const config = loadConfig({ ...launch.environment, ...stack.environment });
  const { user } = await timed(report, { done: 'Database and namespace up to date' }, () =>
    prepareInstallation(config),
  );
  signal.throwIfAborted();

  const logFile = join(launch.dataDir, 'logs', 'atrium.log');
  const product = await timed(report, { done: 'API and worker started' }, () => startProduct(config, 'both', logFile));
  started.defer(() => product.stop());
  signal.throwIfAborted();
  presence.update({ state: 'running', apiUrl: product.apiUrl });

  const facts: ScreenFacts = {
    apiUrl: product.apiUrl ?? config.http.publicUrl,
    temporalUiUrl: config.temporal.uiUrl,
    logFile,
    email: user.email,
    root,
  };
  return { facts, failed: Promise.race([stack.failed, product.failed]) };
}

/** Asked before the long steps, not after them. */
async function assertPortFree({ http }: LaunchConfig): Promise<void> {
  if (http.port === 0 || (await isPortFree(http.port, http.host))) return;
  throw new CommandFailure(
    `Port ${http.port} on ${http.host} is taken. Stop the program that uses it, or choose another port: ATRIUM_PORT=${http.port + 1} npm start`,
  );
}
