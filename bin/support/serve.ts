import { loadConfig } from '../../config/index.ts';
import { startProduct } from './product.ts';
import { stopOnSignals, stopRequested } from './signals.ts';

/** Runs one part of the product until a stop is asked for. Returns the exit code. */
export async function serve(role: 'api' | 'worker', json: boolean): Promise<number> {
  const signal = stopOnSignals();
  const stopped = stopRequested(signal).then(() => undefined);
  // What it starts with may be frozen; until it is ready there is nothing to end in order.
  const product = await Promise.race([startProduct(loadConfig(), role), stopped]);
  if (product === undefined) return 0;
  const { apiUrl, probesUrl } = product;
  if (json) console.log(JSON.stringify({ role, apiUrl, probesUrl }));
  const failure = await Promise.race([stopped, product.failed]);
  await product.stop();
  if (typeof failure !== 'string') return 0;
  console.error(failure);
  return 1;
}
