import { X509Certificate } from 'node:crypto';
import { createAuthority } from '../../integrations/egress/certificates.ts';
import { createEgressAuthorities } from '../../models/egress/authorities.ts';
import { openEnvelope } from '../../models/identity/index.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

const dayMs = 86_400_000;
let environment: TestEnvironment;

beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

async function open(make = createAuthority) {
  const { database, config } = environment;
  return createEgressAuthorities(database, await openEnvelope(database, config), make);
}

test('Processes that start at once share one authority, and its key is sealed', async () => {
  const processes = await Promise.all(Array.from({ length: 5 }, () => open()));
  const all = await Promise.all(processes.map((each) => each.signing()));
  const [first] = all;
  expect(new Set(all.map(({ certificate }) => certificate)).size).toBe(1);
  expect(await processes[0]?.trusted()).toEqual([first?.certificate]);
  const certificate = new X509Certificate(first?.certificate ?? '');
  expect(certificate.ca).toBe(true);
  expect(
    certificate.checkPrivateKey(
      await import('node:crypto').then(({ createPrivateKey }) => createPrivateKey(first?.key ?? '')),
    ),
  ).toBe(true);
  const [rows] = await environment.database.pool.query('SELECT * FROM egress_authorities');
  expect(JSON.stringify(rows)).not.toContain('PRIVATE KEY');
  expect((rows as { sealed: Buffer }[])[0]?.sealed.includes('PRIVATE KEY')).toBe(false);
});

test('The next authority is trusted a month before it signs, and the old one until it expires', async () => {
  const authorities = await open();
  const first = await authorities.signing();
  const end = new Date(new X509Certificate(first.certificate).validTo).getTime();
  const late = new Date(end - 300 * dayMs);
  expect(await authorities.signing(late)).toEqual(first);
  const [old, next, ...others] = await authorities.trusted(late);
  expect([old, others]).toEqual([first.certificate, []]);
  expect((await authorities.signing(new Date(late.getTime() + 31 * dayMs))).certificate).toBe(next);
  expect(await authorities.trusted(new Date(late.getTime() + 31 * dayMs))).toEqual([old, next]);
  expect(await authorities.trusted(new Date(end + 1_000))).toEqual([next]);
});

test('A replaced authority is no longer trusted', async () => {
  const authorities = await open();
  const before = await authorities.trusted();
  await authorities.replace();
  const after = await authorities.trusted();
  expect(after).toHaveLength(1);
  expect(before).not.toContain(after[0]);
  expect((await authorities.signing()).certificate).toBe(after[0]);
});
