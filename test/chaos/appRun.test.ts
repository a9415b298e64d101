import { appsOf, manifestOf } from '../builders/app.ts';
import { buildChatUser } from '../builders/chat.ts';
import { buildComputer, buildHostingProduct } from '../builders/computer.ts';
import type { TestProduct } from '../builders/product.ts';
import { drivers } from '../integrations/computers/drivers.ts';
import { inFull } from '../support/inFull.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { waitFor } from '../support/waitFor.ts';

const full = inFull('apps');

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));

describe.each(usable.slice(0, 1))('$name: killed while an app runs', () => {
  let product: TestProduct;
  beforeAll(async () => {
    product = await buildHostingProduct({ ...hurriedSweeper, ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' });
  });
  afterAll(() => product.close());

  test('The command of the app runs once, and its end and its log are found', async () => {
    const user = await buildChatUser(product);
    const apps = appsOf(product, user);
    const computer = await buildComputer(product, user);
    const command = 'echo >> ~/count; echo begun; while [ -e ~/hold ]; do sleep 0.1; done; echo over';
    const id = await apps.app(manifestOf(command, { retry: { attempts: 3, delay: 0 } }));
    await computer.exec('touch hold');
    const lost = apps.run(id).catch(() => undefined);
    await waitFor('the command', async () => (await computer.exec('cat count 2>/dev/null | wc -l')).stdout === '1\n');
    for (let kill = 0; kill < 2; kill++) {
      await product.process.kill('SIGKILL');
      await product.restart();
    }
    await lost;
    await computer.exec('rm hold');
    const [run] = (await apps.runs(id)).body.data;
    expect(await apps.ended(run?.id ?? '')).toMatchObject({ status: 'succeeded', attempt: 1, output: 'begun\nover\n' });
    expect((await computer.exec('wc -l < count')).stdout).toBe('1\n');
    expect((await apps.log(run?.id ?? '')).text).toBe('begun\nover\n');
    expect((await apps.runs(id)).body.data).toHaveLength(1);
  }, 300_000);

  full.test(
    'A command is followed to its end, even if its start was not recorded and its user has left',
    async () => {
      const owner = await buildChatUser(product);
      const editor = await buildChatUser(product);
      const { members } = product.identity;
      await members.add(owner.spaceId, editor.email, 'editor');
      const apps = appsOf(product, owner);
      const computer = await buildComputer(product, owner);
      const id = await apps.app(
        manifestOf('echo begun; touch ~/begun; while [ -e ~/hold ]; do sleep 0.1; done; echo over'),
      );
      await computer.exec('touch hold');
      const lost = appsOf(product, editor)
        .run(id)
        .catch(() => undefined);
      await waitFor('the command', async () => (await computer.exec('ls begun')).exitCode === 0);
      await product.process.kill('SIGKILL');
      await lost;
      // As if Atrium had been killed right after the start.
      const { pool } = product.environment.database;
      await pool.query('UPDATE app_runs SET is_started = 0 WHERE space_id = ?', [owner.spaceId]);
      await pool.query('UPDATE app_run_attempts SET started_at = NULL WHERE space_id = ?', [owner.spaceId]);
      await members.remove(owner.spaceId, editor.id);
      await product.restart();
      const [run] = (await apps.runs(id)).body.data;
      await waitFor('the log', async () => (await apps.log(run?.id ?? '')).text === 'begun\n');
      await computer.exec('rm hold');
      expect(await apps.ended(run?.id ?? '')).toMatchObject({
        status: 'succeeded',
        attempt: 1,
        output: 'begun\nover\n',
      });
    },
    300_000,
  );
});

if (usable.length === 0) {
  it('Skipped because this machine has no driver', () => expect(usable).toEqual([]));
}
