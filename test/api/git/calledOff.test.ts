import { buildChatUser } from '../../builders/chat.ts';
import { buildGit, gitOf, remoteRepository, type TestGit } from '../../builders/repository.ts';
import { waitFor } from '../../support/waitFor.ts';

let product: TestGit;
// No sweep runs during the test.
beforeAll(async () => {
  product = await buildGit({ ATRIUM_SWEEP_INTERVAL_SECONDS: '3600' });
});
afterAll(() => product.close());

test('A clone that is called off ends, also when its workflow is never told', async () => {
  const git = gitOf(await buildChatUser(product));
  const { url } = remoteRepository(product.server);
  let isHeld = false;
  product.server.interfere = (req) => {
    isHeld ||= req.url?.endsWith('/git-upload-pack') ?? false;
    return isHeld;
  };
  const { id, operationId } = (await git.clone({ url })).body;
  await waitFor('the clone to ask for a pack', () => isHeld);
  // As if a process died between the row and the signal.
  const { pool } = product.environment.database;
  await pool.query('UPDATE operations SET cancel_requested_at = ? WHERE id = ?', [new Date(), operationId]);
  expect(await git.cloned(id)).toMatchObject({ status: 'failed', error: { code: 'CALLED_OFF' } });
  expect((await git.operation(operationId ?? '')).status).toBe('cancelled');
});
