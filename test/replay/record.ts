import { buildProduct } from '../builders/product.ts';
import { startTestStack, stopTestStack } from '../support/testStack.ts';
import { isSaved, saveHistory } from './histories.ts';
import { scenarios } from './scenarios/scenario.ts';

/**
 * `npm run record-histories`: runs the scenarios that have no saved history, and saves theirs. A saved history is never
 * recorded again to make a test pass, because it stands for workflows that run somewhere.
 */
const missing = scenarios.filter(({ name }) => !isSaved(name));
if (missing.length > 0) await startTestStack();
else process.stdout.write('Every scenario has a saved history.\n');
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
