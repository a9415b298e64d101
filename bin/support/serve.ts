import { loadConfig } from '../../config/index.ts';
import { requireMasterKey } from '../../crypto/openMasterKeys.ts';
import { type Product, startProduct } from './product.ts';
import type { Role } from './runtime.ts';
import { stopOnSignals, stopRequested } from './signals.ts';

/** Runs one part of Atrium, or both, until a stop is requested. Returns the exit code. */
export async function serve(
  role: Role,
  { onReady, logFile }: { onReady: (product: Product) => void; logFile?: string | undefined },
): Promise<number> {
  const signal = stopOnSignals();
  const stopped = stopRequested(signal).then(() => undefined);
  // A needed part may be frozen. Until the product is ready, a stop has nothing to end in order.
  const config = loadConfig();
  await requireMasterKey(config);
  const product = await Promise.race([startProduct(config, role, logFile), stopped]);
  if (product === undefined) return 0;
  onReady(product);
  const failure = await Promise.race([stopped, product.failed]);
  await product.stop();
  if (typeof failure !== 'string') return 0;
  console.error(failure);
  return 1;
}
