import { type BrowserProfile, browsersOf } from '../../builders/browser.ts';
import { buildComputer, buildHostingProduct, computerOf, type TestComputer } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { getBrowserPrograms } from '../../support/browserPrograms.ts';
import { inFull } from '../../support/inFull.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('browsers');

let product: TestProduct;

beforeAll(async () => {
  await getBrowserPrograms();
  product = await buildHostingProduct({
    ...hurriedSweeper,
    ATRIUM_BROWSER_PROFILES_PER_SPACE: '2',
    ATRIUM_BROWSER_PROFILE_MIB: '2',
  });
}, 300_000);
afterAll(() => product?.close());

const folderOf = ({ id }: Pick<BrowserProfile, 'id'>) => `.local/share/atrium/browsers/${id}`;

/** A second computer, beside the default one. */
async function anotherComputer({ user }: TestComputer): Promise<TestComputer> {
  const made = await user.fetch(`/api/spaces/${user.spaceId}/computers`, { method: 'POST', body: {} });
  return computerOf(user, ((await made.json()) as { id: string }).id);
}

test('Profiles are made, listed, renamed and deleted, up to the limit of a space', async () => {
  const computer = await buildComputer(product);
  const browsers = browsersOf(computer);
  const [one, two] = [await browsers.profile('One'), await browsers.profile('Two')];
  const full = await browsers.expect<{ code: string }>(422, 'POST', '/profiles', { name: 'Three' });
  expect(full.code).toBe('TOO_MANY_PROFILES');
  await browsers.expect(200, 'PATCH', `/profiles/${one.id}`, { name: 'First' });
  const { data } = await browsers.expect<{ data: BrowserProfile[] }>(200, 'GET', '/profiles');
  expect(data).toMatchObject([
    { id: one.id, name: 'First', sessions: [], savedAt: null, savedBytes: null },
    { id: two.id, name: 'Two' },
  ]);
  await browsers.expect(204, 'DELETE', `/profiles/${one.id}`);
  for (const method of ['GET', 'DELETE']) await browsers.expect(404, method, `/profiles/${one.id}`);
  await browsers.expect(404, 'POST', `/profiles/${one.id}/sessions`);
  await browsers.profile('Three');
  for (const body of [{}, { name: '' }, { name: '  ' }, { name: 'x'.repeat(201) }, { name: 'x', more: 1 }]) {
    await browsers.expect(400, 'POST', '/profiles', body);
  }
});

test('The same Idempotency-Key makes one profile', async () => {
  const browsers = browsersOf(await buildComputer(product));
  const once = async () => {
    const headers = { 'idempotency-key': 'profile-1' };
    const response = await browsers.fetch('/profiles', { method: 'POST', body: { name: 'Once' }, headers });
    return [response.status, await response.json()];
  };
  expect(await once()).toEqual(await once());
  expect((await browsers.expect<{ data: unknown[] }>(200, 'GET', '/profiles')).data).toHaveLength(1);
});

full.test('A failed save keeps the previous save, and the next save makes up for it', async () => {
  const computer = await buildComputer(product);
  const browsers = browsersOf(computer);
  const profile = await browsers.profile();
  const now = () => browsers.expect<BrowserProfile>(200, 'GET', `/profiles/${profile.id}`);
  const session = await browsers.start(profile);
  await computer.exec(`echo first > ${folderOf(profile)}/mark`);
  await browsers.end(session);
  const saved = await now();
  expect(saved.savedBytes).toBeGreaterThan(0);

  const large = await browsers.start(profile);
  await computer.exec(`cd ${folderOf(profile)} && echo second > mark && head -c 5000000 /dev/urandom > large`);
  await browsers.end(large);
  expect(await browsers.get(large)).toMatchObject({ save: { state: 'failed', code: 'PROFILE_TOO_LARGE' } });
  expect(await now()).toEqual(saved);

  // The computer of the failed save still has its state, and the next save brings that to other computers.
  const other = await anotherComputer(computer);
  const home = await browsers.start(profile);
  expect((await computer.exec(`cat ${folderOf(profile)}/mark`)).stdout).toBe('second\n');
  await computer.exec(`rm ${folderOf(profile)}/large`);
  await browsers.end(home);
  const elsewhere = await browsers.start(profile, { computerId: other.id });
  expect((await other.exec(`cat ${folderOf(profile)}/mark`)).stdout).toBe('second\n');
  await other.exec(`echo third > ${folderOf(profile)}/mark`);
  await browsers.end(elsewhere);
  // The older state on the first computer is replaced.
  const back = await browsers.start(profile, { computerId: computer.id });
  expect((await computer.exec(`cat ${folderOf(profile)}/mark`)).stdout).toBe('third\n');
  await browsers.end(back);
});

full.test('A deleted profile is removed from every computer, also from a stopped one', async () => {
  const computer = await buildComputer(product);
  const browsers = browsersOf(computer);
  const other = await anotherComputer(computer);
  const profile = await browsers.profile();
  for (const computerId of [computer.id, other.id]) await browsers.end(await browsers.start(profile, { computerId }));
  await other.expect(200, 'POST', '/stop');
  await browsers.expect(204, 'DELETE', `/profiles/${profile.id}`);
  const { pool } = product.environment.database;
  await waitFor('the folders of the profile to be forgotten', async () => {
    const [rows] = await pool.query('SELECT id FROM browser_folders WHERE owner_id = ?', [profile.id]);
    return (rows as unknown[]).length === 0;
  });
  for (const one of [computer, other]) {
    expect((await one.exec(`ls -d ${folderOf(profile)}`)).exitCode).not.toBe(0);
  }
});

test('A profile outlives its computer, also one that is deleted during a session', async () => {
  const computer = await buildComputer(product);
  const browsers = browsersOf(computer);
  const other = await anotherComputer(computer);
  const profile = await browsers.expect<BrowserProfile>(201, 'POST', '/profiles', { name: 'x', computerId: other.id });
  const first = await browsers.start(profile);
  expect(first.computerId).toBe(other.id);
  await other.exec(`echo kept > ${folderOf(profile)}/mark`);
  await browsers.end(first);
  const second = await browsers.start(profile);
  await other.fetch('', { method: 'DELETE' });
  const ended = await browsers.ended(second);
  expect(ended.end).toMatchObject({ code: 'COMPUTER_STOPPED' });
  const next = await browsers.start(profile);
  expect(next.computerId).toBe(computer.id);
  expect((await computer.exec(`cat ${folderOf(profile)}/mark`)).stdout).toBe('kept\n');
  await browsers.end(next);
});

test('A saved profile is sealed in the store, and does not open in the place of another', async () => {
  const computer = await buildComputer(product);
  const browsers = browsersOf(computer);
  const profile = await browsers.profile();
  await browsers.end(await browsers.start(profile));
  const { pool } = product.environment.database;
  // The other profile gets the object of this one.
  const [rows] = await pool.query('SELECT object_key AS k FROM browser_profiles WHERE id = ?', [profile.id]);
  const other = await browsers.profile('Other');
  await pool.query('UPDATE browser_profiles SET saved = 1, opened = 1, object_key = ? WHERE id = ?', [
    (rows as { k: string }[])[0]?.k,
    other.id,
  ]);
  const problem = await browsers.expect<{ code: string }>(422, 'POST', `/profiles/${other.id}/sessions`);
  expect(problem.code).toBe('PROFILE_NOT_OPENED');
  await browsers.end(await browsers.start(profile));
});
