import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandError, runCommand } from './commands.ts';
import { isExecutable, type StackContext } from './context.ts';
import { formatDuration } from './report.ts';
import { serviceLog } from './services.ts';

/**
 * How long the download may take to begin. Without internet access it never begins, and the caller tries to build
 * instead.
 */
const beginTimeoutMs = 10_000;
const downloadTimeoutMs = 5 * 60_000;

/**
 * Downloads the `temporal` command into `folder` with the official downloader of the test environment, and returns its
 * path. Undefined if that fails. The downloader cannot be stopped and reports no progress. So it runs in a process of
 * its own, and a file in the folder shows that the download began.
 */
export async function downloadTemporal(
  context: StackContext,
  folder: string,
  version: string,
): Promise<string | undefined> {
  const begin = performance.now();
  const giveUp = new AbortController();
  const finished = new AbortController();
  const watch = async () => {
    await sleep(beginTimeoutMs, undefined, { signal: finished.signal });
    if (readdirSync(folder).length === 0) return giveUp.abort();
    context.report('Downloading the Temporal server …');
    await sleep(downloadTimeoutMs, undefined, { signal: finished.signal });
    giveUp.abort();
  };
  watch().catch(() => undefined); // rejects when the download ends
  try {
    await runCommand(process.execPath, [join(import.meta.dirname, 'downloadTemporal.ts'), folder, version], {
      logFile: serviceLog(context, 'download-temporal'),
      environment: context.environment,
      signal: AbortSignal.any([context.signal, giveUp.signal]),
    });
  } catch (error) {
    context.signal.throwIfAborted();
    if (giveUp.signal.aborted || error instanceof CommandError) return undefined;
    throw error;
  } finally {
    finished.abort();
  }
  const program = readdirSync(folder)
    .map((name) => join(folder, name))
    .find(isExecutable);
  if (program !== undefined)
    context.report(`Downloaded the Temporal server (${formatDuration(performance.now() - begin)})`);
  return program;
}
