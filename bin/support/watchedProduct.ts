import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Environment } from '../../config/index.ts';
import { nodeFlags } from '../nodeFlags.mjs';
import type { Product } from './product.ts';

const program = join(import.meta.dirname, '..', 'watched.ts');

/**
 * The API and a worker in a process of their own. Node restarts it when one of its loaded files changes. Its log goes
 * to the terminal. If a version does not start, the next change starts it again.
 */
export async function startWatchedProduct(environment: Environment): Promise<Product> {
  const watcher = spawn(process.execPath, ['--watch', '--watch-preserve-output', ...nodeFlags, program], {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(watcher, 'exit').then(() => 'The process that watches the code has ended.');
  const lines = createInterface({ input: watcher.stdout });
  const apiUrl = await new Promise<string | undefined>((resolve) => {
    // The process prints its address after each start. Node's own lines about restarts are passed on.
    lines.on('line', (line) => {
      if (line.startsWith(readyMark)) resolve(line.slice(readyMark.length));
      else console.log(line);
    });
    void ended.then(() => resolve(undefined));
  });
  return {
    apiUrl,
    probesUrl: undefined,
    failed: ended,
    async stop() {
      watcher.kill('SIGTERM');
      await ended;
    },
  };
}

/** Prefix of the line in which bin/watched.ts prints its address. */
export const readyMark = 'ready at ';
