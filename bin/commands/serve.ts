import type { Command } from 'commander';
import type { Product } from '../support/product.ts';

/**
 * `atrium api` and `atrium worker`: run Atrium in production, in any number of processes, against configured parts.
 * Logs go to standard error.
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
      .action(async (options: { json?: true }) => {
        const { serve } = await import('../support/serve.ts');
        const onReady = ({ apiUrl, probesUrl }: Pick<Product, 'apiUrl' | 'probesUrl'>) => {
          if (options.json === true) console.log(JSON.stringify({ role, apiUrl, probesUrl }));
        };
        process.exit(await serve(role, { onReady }));
      });
  }
}
