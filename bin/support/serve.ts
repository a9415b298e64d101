import { loadConfig } from '../../config/index.ts';
import { startProduct } from './product.ts';
import { stopOnSignals, stopRequested } from './signals.ts';

/** Runs one part of the product until a stop is asked for. Returns the exit code. */
export async function serve(role: 'api' | 'worker', json: boolean): Promise<number> {
  const signal = stopOnSignals();
  const product = await startProduct(loadConfig(), role);
  if (json) console.log(JSON.stringify({ role, apiUrl: product.apiUrl }));
  const failure = await Promise.race([stopRequested(signal), product.failed]);
  await product.stop();
  if (typeof failure !== 'string') return 0;
  console.error(failure);
  return 1;
}
