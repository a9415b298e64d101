import { loadConfig } from '../config/index.ts';
import { startProduct } from './support/product.ts';
import { stopOnSignals, stopRequested } from './support/signals.ts';
import { readyMark } from './support/watchedProduct.ts';

/** What `npm run dev` restarts: the API and a worker, against the parts that run already. */
const signal = stopOnSignals();
const product = await startProduct(loadConfig(), 'both');
console.log(`${readyMark}${product.apiUrl}`);
const failure = await Promise.race([stopRequested(signal), product.failed]);
await product.stop();
if (typeof failure === 'string') console.error(failure);
process.exit(typeof failure === 'string' ? 1 : 0);
