import { newId } from '../../../base/ids.ts';
import { getComputer } from '../../../models/computers/computer.ts';
import { lockAnyComputer } from '../../../models/computers/computers.ts';
import { leaveHost } from '../../../models/computers/leaving.ts';
import {
  chainOf,
  collectSave,
  findSave,
  giveUpSave,
  type HomeSave,
  storedPieces,
} from '../../../models/computers/saveRows.ts';
import { addPiece, beginSave, completeSave, noteTaken } from '../../../models/computers/saves.ts';
import { createSealedSaves } from '../../../models/computers/sealedSaves.ts';
import { savesBesideHead } from '../../../models/computers/snapshots.ts';
import { transaction } from '../../../models/database/database.ts';
import { driveModels } from '../../../models/drive/models.ts';
import { ownersOf } from '../../../models/drive/objectOwners.ts';
import { openEnvelope } from '../../../models/identity/index.ts';
import { insertEnvironment } from '../../builders/environmentRows.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// The rows of saved homes. No host and no bytes: a save is its rows here.

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

async function buildComputer(hostId = newId('computerHost')) {
  const { database } = environment;
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const [rows] = await database.pool.query('SELECT id FROM computers WHERE space_id = ?', [space.id]);
  const { id = '' } = (rows as { id: string }[])[0] ?? {};
  await database.pool.query("UPDATE computers SET host_id = ?, status = 'stopped' WHERE id = ?", [hostId, id]);
  return { id, hostId, spaceId: space.id, get: () => getComputer(database, space.id, id) };
}

type Built = Pick<Awaited<ReturnType<typeof buildComputer>>, 'id' | 'hostId'>;

const taken = () => ({ takenAt: new Date(), homeBytes: 1_000, uid: 1, format: 'btrfs' as const });

async function begin({ id, hostId }: Built, kept: string[] = []): Promise<HomeSave> {
  const { database } = environment;
  const begun = await beginSave(database, { computerId: id, hostId }, kept);
  if (begun === undefined) throw new Error('The host may not save the computer.');
  return begun;
}

async function store(save: HomeSave, number: number, bytes: number): Promise<string> {
  const { database, config } = environment;
  const objectKey = newId('driveItem');
  const { quotaBytes } = config.drive;
  await driveModels(database).DriveObject.begin(database, { objectKey, spaceId: save.spaceId, bytes, quotaBytes });
  await addPiece(database, save, { number, objectKey, storedBytes: bytes, sha256: Buffer.alloc(32) });
  return objectKey;
}

/** Begins a save, and stores its only piece. `kept` are the saves of which the host has the snapshot. */
async function upload(
  computer: Built,
  { bytes = 10, homeBytes = 1_000, kept = [] as string[], avoidsBase = false } = {},
): Promise<HomeSave> {
  const begun = await begin(computer, kept);
  const save = await noteTaken(environment.database, begun, { ...taken(), homeBytes }, kept, { avoidsBase });
  if (save === undefined) throw new Error('The save was given up.');
  await store(save, 0, bytes);
  return save;
}

async function save(computer: Built, how: Parameters<typeof upload>[1] = {}): Promise<HomeSave> {
  const made = await upload(computer, how);
  expect(await completeSave(environment.database, made)).toBe(true);
  return made;
}

async function stateOf(spaceId: string) {
  const [saves] = await environment.database.pool.query('SELECT id FROM home_saves WHERE space_id = ? ORDER BY id', [
    spaceId,
  ]);
  const [objects] = await environment.database.pool.query(
    "SELECT object_key FROM drive_objects WHERE space_id = ? AND state <> 'doomed'",
    [spaceId],
  );
  return { saves: (saves as { id: string }[]).map(({ id }) => id), objects: (objects as object[]).length };
}

/** What the sweep does with everything that is loose. */
async function collect(spaceId: string): Promise<void> {
  const [rows] = await environment.database.pool.query(
    'SELECT id FROM home_saves WHERE space_id = ? AND loose_at IS NOT NULL ORDER BY id',
    [spaceId],
  );
  for (const { id } of rows as { id: string }[]) await collectSave(environment.database, id);
}

test('A complete save becomes the head, and the next one its child', async () => {
  const computer = await buildComputer();
  const first = await save(computer);
  expect(await computer.get()).toMatchObject({ homeSaveId: first.id, homeSavedAt: first.takenAt });
  const second = await save(computer, { kept: [first.id], bytes: 4 });
  expect(second).toMatchObject({ parentId: first.id, baseId: first.id, replacesId: first.id });
  expect(await computer.get()).toMatchObject({ homeSaveId: second.id });
  const chain = await chainOf(environment.database.pool, second);
  expect(chain.map(({ id }) => id)).toEqual([first.id, second.id]);
  await collect(computer.spaceId);
  expect(await stateOf(computer.spaceId)).toEqual({ saves: [first.id, second.id], objects: 2 });
});

test('A save that was cut off goes on behind its last piece, unless its snapshot is gone', async () => {
  const computer = await buildComputer();
  const cut = await upload(computer);
  expect(await begin(computer, [cut.id])).toMatchObject({ id: cut.id, takenAt: cut.takenAt });
  expect(await storedPieces(environment.database, cut)).toBe(1);
  const anew = await begin(computer);
  expect(anew.id).not.toBe(cut.id);
  expect(await stateOf(computer.spaceId)).toEqual({ saves: [anew.id], objects: 0 });
});

test('Of two saves that replace the same head, only the first becomes the head', async () => {
  const computer = await buildComputer();
  const late = await upload(computer);
  // As after a restore in between, which sets another head.
  const other = await save(await buildComputer(computer.hostId));
  await environment.database.pool.query('UPDATE computers SET home_save_id = ? WHERE id = ?', [other.id, computer.id]);
  expect(await completeSave(environment.database, late)).toBe(false);
  expect(await computer.get()).toMatchObject({ homeSaveId: other.id });
  expect(await stateOf(computer.spaceId)).toEqual({ saves: [], objects: 0 });
});

test('A host that has lost the computer saves nothing into it', async () => {
  const computer = await buildComputer();
  const { id, hostId, spaceId } = computer;
  const head = await save(computer);
  const late = await upload(computer, { kept: [head.id], bytes: 2 });
  await leave(id);
  await environment.database.pool.query('UPDATE computers SET host_id = ? WHERE id = ?', ['hst_other', id]);
  expect(await completeSave(environment.database, late)).toBe(false);
  expect(await computer.get()).toMatchObject({ homeSaveId: head.id });
  // What it has beyond the head becomes a snapshot, once, when it is back.
  await save({ id, hostId }, { kept: [head.id], bytes: 3 });
  expect(await computer.get()).toMatchObject({ homeSaveId: head.id, hostId: 'hst_other' });
  const [snapshots] = await environment.database.pool.query(
    'SELECT name, save_id AS saveId FROM computer_snapshots WHERE computer_id = ?',
    [id],
  );
  expect(snapshots).toEqual([
    {
      name: expect.stringMatching(new RegExp(`^Work on ${hostId} that was not saved before \\d{4}-`)),
      saveId: expect.any(String),
    },
  ]);
  await collect(spaceId);
  expect(await stateOf(spaceId)).toMatchObject({ objects: 2 });
});

function leave(computerId: string): Promise<void> {
  return transaction(environment.database, async (tx) => {
    const computer = await lockAnyComputer(tx, computerId);
    if (computer !== undefined) await leaveHost(environment, tx, computer);
  });
}

test('A chain that weighs more than half of its base is followed by a new base, and then collected', async () => {
  const computer = await buildComputer();
  const base = await save(computer, { bytes: 100 });
  const small = await save(computer, { bytes: 30, kept: [base.id] });
  const large = await save(computer, { bytes: 30, kept: [small.id] });
  const next = await save(computer, { bytes: 100, kept: [large.id] });
  expect(next).toMatchObject({ parentId: null, baseId: next.id });
  await collect(computer.spaceId);
  expect(await stateOf(computer.spaceId)).toEqual({ saves: [next.id], objects: 1 });
});

test('A chain may weigh four times as much before a new base that has no room in the quota', async () => {
  const computer = await buildComputer();
  const base = await save(computer, { bytes: 100 });
  const long = await save(computer, { bytes: 190, kept: [base.id] });
  const longer = await save(computer, { bytes: 20, kept: [long.id], avoidsBase: true });
  expect(longer).toMatchObject({ parentId: long.id, baseId: base.id });
  expect(await save(computer, { kept: [longer.id], avoidsBase: true })).toMatchObject({ parentId: null });
});

test('A chain may grow with its home', async () => {
  const computer = await buildComputer();
  const base = await save(computer, { bytes: 100 });
  const grown = await save(computer, { bytes: 300, homeBytes: 4_000, kept: [base.id] });
  const last = await save(computer, { bytes: 201, homeBytes: 4_000, kept: [grown.id] });
  expect(last).toMatchObject({ parentId: grown.id });
  expect(await save(computer, { homeBytes: 4_000, kept: [last.id] })).toMatchObject({ parentId: null });
});

test('What follows a chain that is too long are the changes since the environment, unless these are too many', async () => {
  const computer = await buildComputer();
  const { database } = environment;
  const system = await save(computer, { bytes: 100 });
  await insertEnvironment(database, { spaceId: computer.spaceId, createdBy: 'usr_1' });
  const which = 'WHERE space_id = ?';
  await database.pool.query(`UPDATE environment_versions SET save_id = ? ${which}`, [system.id, computer.spaceId]);
  const sql = `UPDATE computers SET environment_version_id = (SELECT id FROM environment_versions ${which}) WHERE id = ?`;
  await database.pool.query(sql, [computer.spaceId, computer.id]);
  expect(await savesBesideHead(database, computer.id)).toEqual([system.id]);
  const first = await save(computer, { bytes: 30, kept: [system.id] });
  const second = await save(computer, { bytes: 30, kept: [first.id, system.id] });
  const anew = await save(computer, { bytes: 60, kept: [second.id, system.id] });
  expect([first, second, anew].map(({ parentId }) => parentId)).toEqual([system.id, first.id, system.id]);
  expect(await save(computer, { kept: [anew.id, system.id] })).toMatchObject({ parentId: null });
});

test('A save is given up with its objects, unless it is complete', async () => {
  const computer = await buildComputer();
  const { database } = environment;
  const complete = await save(computer);
  const stuck = await upload(computer, { kept: [complete.id] });
  for (const { id } of [complete, stuck]) await giveUpSave(database, id);
  expect(await stateOf(computer.spaceId)).toEqual({ saves: [complete.id], objects: 1 });
  expect((await begin(computer, [complete.id, stuck.id])).id).not.toBe(stuck.id);
});

test('A chain of 60 increments is followed by a new base', async () => {
  const computer = await buildComputer();
  let last = await save(computer, { bytes: 1_000 });
  for (let n = 0; n < 60; n++) last = await save(computer, { bytes: 1, kept: [last.id] });
  expect(await chainOf(environment.database.pool, last)).toHaveLength(61);
  expect(await save(computer, { kept: [last.id] })).toMatchObject({ parentId: null });
});

test('What the computer does not name is collected, but not what a snapshot names or a host still saves', async () => {
  const computer = await buildComputer();
  const { database } = environment;
  const base = await save(computer, { bytes: 100 });
  const named = await save(computer, { bytes: 1, kept: [base.id] });
  await database.pool.query(
    "INSERT INTO computer_snapshots (id, space_id, computer_id, name, save_id, created_at) VALUES ('snp_1', ?, ?, 'x', ?, NOW(3))",
    [computer.spaceId, computer.id, named.id],
  );
  const head = await save(computer, { bytes: 1, kept: [named.id] });
  const underWay = await upload(computer, { bytes: 1, kept: [head.id] });
  await collect(computer.spaceId);
  const all = [base.id, named.id, head.id, underWay.id];
  expect(await stateOf(computer.spaceId)).toEqual({ saves: all, objects: 4 });

  await database.pool.query('DELETE FROM computers WHERE id = ?', [computer.id]);
  await database.pool.query('UPDATE home_saves SET loose_at = NOW(3) WHERE id = ?', [head.id]);
  await collect(computer.spaceId);
  expect(await stateOf(computer.spaceId)).toEqual({ saves: [base.id, named.id], objects: 2 });
  await database.pool.query("DELETE FROM computer_snapshots WHERE id = 'snp_1'");
  await database.pool.query('UPDATE home_saves SET loose_at = NOW(3) WHERE id = ?', [named.id]);
  await collect(computer.spaceId);
  expect(await stateOf(computer.spaceId)).toEqual({ saves: [], objects: 0 });
});

test('A save counts as bytes of its space, and its objects have an owner', async () => {
  const computer = await buildComputer();
  const begun = await begin(computer);
  const made = await noteTaken(environment.database, begun, taken(), []);
  if (made === undefined) throw new Error('The save was given up.');
  const key = await store(made, 0, 123);
  const [drives] = await environment.database.pool.query('SELECT used_bytes AS used FROM drives WHERE space_id = ?', [
    computer.spaceId,
  ]);
  expect(drives).toEqual([{ used: 123 }]);
  expect(await ownersOf(environment.database, [key])).toEqual([{ key, owner: `piece 0 of the saved home ${made.id}` }]);
  expect(await findSave(environment.database.pool, made.id)).toMatchObject({ storedBytes: 123, pieces: null });
});

test('A piece opens only in its place and its space', async () => {
  const envelope = await openEnvelope(environment.database, environment.config);
  const saves = createSealedSaves(envelope);
  const piece = { spaceId: newId('space'), saveId: newId('homeSave'), number: 1 };
  const sealed = await saves.seal(piece, Buffer.from('needle '.repeat(100)));
  expect(sealed.includes('needle')).toBe(false);
  expect(String(await saves.open(piece, sealed))).toBe('needle '.repeat(100));
  const { spaceId } = await buildComputer();
  const elsewhere = await saves.seal({ ...piece, spaceId }, Buffer.from('x'));
  const broken = { kind: 'unprocessable', code: 'SAVE_BROKEN' };
  await expect(saves.open({ ...piece, number: 2 }, sealed)).rejects.toMatchObject(broken);
  await expect(saves.open({ ...piece, saveId: newId('homeSave') }, sealed)).rejects.toMatchObject(broken);
  await expect(saves.open(piece, elsewhere)).rejects.toMatchObject(broken);
});

test('A save is of what its host has, also if that is a root file system of which the computer’s row says nothing', async () => {
  const { database } = environment;
  const built = await buildComputer();
  const first = await save(built);
  const begun = await begin(built, [first.id]);
  const noted = await noteTaken(database, begun, { ...taken(), base: 'debian' }, [first.id]);
  // It does not continue the home that was saved before.
  expect(noted).toMatchObject({ base: 'debian', environmentVersionId: null, parentId: null, baseId: begun.id });
});
