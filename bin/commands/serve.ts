import type { Command } from 'commander';
import { loadConfig } from '../../config/index.ts';
import { startProduct } from '../support/product.ts';
import { stopOnSignals, stopRequested } from '../support/signals.ts';

/**
 * `atrium api` and `atrium worker`: the product as it runs in production, any number of each, against parts that are configured. Logs
 * go to standard error.
 */
export function addApiAndWorker(program: Command): void {
  for (const [role, description] of [
    ['api', 'run the API alone, against configured parts'],
    ['worker', 'run a worker alone, against configured parts'],
  ] as const) {
    program
      .command(role)
      .description(description)
      .option('--json', 'print one line of JSON when it is ready')
      .action(async (options: { json?: true }) => process.exit(await serve(role, options.json === true)));
  }
}

async function serve(role: 'api' | 'worker', json: boolean): Promise<number> {
  const signal = stopOnSignals();
  const product = await startProduct(loadConfig(), role);
  if (json) console.log(JSON.stringify({ role, apiUrl: product.apiUrl }));
  const failure = await Promise.race([stopRequested(signal), product.failed]);
  await product.stop();
  if (typeof failure !== 'string') return 0;
  console.error(failure);
  return 1;
}
