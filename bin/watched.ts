import { loadConfig } from '../config/index.ts';
import { startProduct } from './support/product.ts';
import { stopOnSignals, stopRequested } from './support/signals.ts';
import { readyMark } from './support/watchedProduct.ts';

/** `npm run dev` restarts this program: the API and a worker, against parts that already run. */
const signal = stopOnSignals();
const product = await startProduct(loadConfig(), 'both');
console.log(`${readyMark}${product.apiUrl}`);
const failure = await Promise.race([stopRequested(signal), product.failed]);
await product.stop();
if (typeof failure === 'string') console.error(failure);
process.exit(typeof failure === 'string' ? 1 : 0);
