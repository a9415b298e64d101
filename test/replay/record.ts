import { buildProduct } from '../builders/product.ts';
import { startTestStack, stopTestStack } from '../support/testStack.ts';
import { isSaved, saveHistory } from './histories.ts';
import { scenarios } from './scenarios/index.ts';

/**
 * `npm run record-histories`: walks the paths that have no saved history yet, and saves theirs. One that is saved stays
 * as it is: it stands for the workflows that run somewhere, so it is never recorded again to make a test pass.
 */
const missing = scenarios.filter(({ name }) => !isSaved(name));
if (missing.length > 0) await startTestStack();
try {
  for (const { environment, run, close, ...saved } of missing) {
    const product = await buildProduct(typeof environment === 'function' ? await environment() : (environment ?? {}));
    try {
      await saveHistory(product.environment.config, await run(product, await product.user()), saved);
      process.stdout.write(`Saved ${saved.name}.\n`);
    } finally {
      await product.close();
      await close?.();
    }
  }
} finally {
  await stopTestStack();
}
