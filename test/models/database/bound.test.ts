import { transactionOf } from '../../../models/database/bound.ts';
import { transaction } from '../../../models/database/database.ts';
import { operationModels } from '../../../models/operations/operation.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let environments: TestEnvironment[];
beforeAll(async () => {
  environments = await Promise.all([createTestEnvironment(), createTestEnvironment()]);
});
afterAll(() => Promise.all(environments.map((environment) => environment.close())));

test('A model reads the database that it was taken from, also when it was taken from a transaction', async () => {
  const fields = { kind: 'deleteThread' as const, spaceId: null, userId: 'usr_1', subjectId: 'thr_1' };
  for (const [index, { database }] of environments.entries()) {
    await operationModels(database).Operation.begin({ ...fields, id: `op_${index}` });
  }
  for (const [index, { database }] of environments.entries()) {
    const own = [expect.objectContaining({ id: `op_${index}` })];
    expect(await operationModels(database).Operation.findAll()).toEqual(own);
    await transaction(database, async (tx) => {
      expect(operationModels(tx)).toBe(operationModels(database));
      expect(await operationModels(tx).Operation.findAll({ transaction: transactionOf(tx) })).toEqual(own);
    });
  }
});

test('The function transactionOf returns a transaction, and undefined for a database', async () => {
  const [{ database } = { database: undefined }] = environments;
  if (database === undefined) throw new Error('There is no database.');
  expect(transactionOf(database)).toBeUndefined();
  await transaction(database, async (tx) => expect(transactionOf(tx)).toBe(tx));
});
