import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { browsersOf, startSite } from '../builders/browser.ts';
import { buildComputer, buildHostingProduct } from '../builders/computer.ts';
import type { TestProduct } from '../builders/product.ts';
import { getBrowserPrograms } from '../support/browserPrograms.ts';
import { shutDownHost } from '../support/computerPrograms.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { waitFor } from '../support/waitFor.ts';

let product: TestProduct;

beforeAll(async () => {
  await getBrowserPrograms();
  product = await buildHostingProduct({ ...hurriedSweeper, ATRIUM_COMPUTER_HOST_BEAT_SECONDS: '1' });
}, 300_000);
afterAll(() => product?.close());

/** Loses the machine: the next process finds an empty disk and is another host. */
async function loseMachine(): Promise<void> {
  const { dir } = product.environment.config.computers;
  await product.process.kill('SIGKILL');
  await shutDownHost(dir);
  for (const name of readdirSync(dir)) rmSync(join(dir, name), { recursive: true, force: true });
  await product.restart();
}

test('A saved login survives the loss of the machine', async () => {
  const computer = await buildComputer(product);
  const browsers = browsersOf(computer);
  const profile = await browsers.profile();
  await browsers.end(await browsers.start(profile, { url: `${await startSite(computer)}/sign-in` }));
  const session = await browsers.start(profile);
  await loseMachine();
  await waitFor('the host to be lost', async () => {
    const { error } = await computer.expect<{ error: { code: string } | null }>(200, 'GET', '');
    return error?.code === 'HOST_LOST';
  });
  const ended = await browsers.ended(session);
  expect(ended).toMatchObject({ end: { code: 'HOST_LOST' }, save: { state: 'failed', code: 'HOST_LOST' } });
  await computer.expect(200, 'POST', '/recover', { discardHome: true });
  const next = await browsers.start(profile);
  const { title } = await browsers.visit(next, `${await startSite(computer)}/`);
  expect(title).toBe('cookie:login=yes storage:me');
  await browsers.end(next);
}, 300_000);
