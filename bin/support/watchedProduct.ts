import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Environment } from '../../config/index.ts';
import type { Report } from '../../stack/report.ts';
import { nodeFlags } from '../nodeFlags.mjs';
import type { Product } from './product.ts';
import { stopRequested } from './signals.ts';
import { watchSources } from './watchSources.ts';

/** Prefix of the line in which bin/watched.ts prints its address. */
export const readyMark = 'ready at ';

interface Options {
  /** The folder with the code. */
  root: string;
  environment: Environment;
  logFile: string;
  report: Report;
  signal: AbortSignal;
}

/**
 * The API and a worker in a process of their own, which restarts when a file of the code changes. If a version does not
 * start or ends by itself, the next change starts it again.
 */
export async function startWatchedProduct(options: Options): Promise<Product> {
  const { root, environment, logFile, report, signal } = options;
  const stopping = new AbortController();
  const stopped = stopRequested(AbortSignal.any([signal, stopping.signal])).then(() => 'stopped' as const);
  const firstReady = Promise.withResolvers<string | undefined>();
  const sources = await watchSources(root, report);
  report('Watching the code: when it changes, the API and the worker restart.');
  let isFirst = true;

  function start(): ChildProcess {
    const child = spawn(process.execPath, [...nodeFlags, join(root, 'bin', 'watched.ts'), logFile], {
      env: environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (!line.startsWith(readyMark)) return report(line);
      const apiUrl = line.slice(readyMark.length);
      if (!isFirst) report(`The API and the worker run again: ${apiUrl}`);
      isFirst = false;
      firstReady.resolve(apiUrl);
    });
    return child;
  }

  async function keepRunning(): Promise<void> {
    for (;;) {
      // Asked for before the start, so that a change during it counts.
      const changed = sources.nextChange();
      const child = start();
      const exited = once(child, 'exit').then(() => 'ended' as const);
      let next = await Promise.race([changed, stopped, exited]);
      if (next === 'ended') {
        const how = child.signalCode ?? `exit code ${child.exitCode}`;
        report(`The API and the worker have ended (${how}). The next change of the code starts them again.`);
        next = await Promise.race([changed, stopped]);
      }
      if (next !== 'stopped') report(`${next.path} has changed: the API and the worker restart.`);
      child.kill('SIGTERM');
      await exited;
      if (next === 'stopped') return;
    }
  }

  const ended = keepRunning().finally(async () => {
    await sources.close();
    firstReady.resolve(undefined);
  });
  return {
    apiUrl: await firstReady.promise,
    probesUrl: undefined,
    failed: ended.then(() => 'The process that watches the code has ended.'),
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}
