import { newId } from '../../../base/ids.ts';
import { defaultComputer } from '../../../models/computers/defaultComputer.ts';
import { askForDue, draftsToSave } from '../../../models/git/draftSweep.ts';
import { findDraft } from '../../../models/git/drafts.ts';
import { moveDraft } from '../../../models/git/placing.ts';
import { nextRepositoryStep } from '../../../models/git/steps.ts';
import { insertDraft } from '../../builders/draft.ts';
import { buildRepositoryRow } from '../../builders/repositoryRow.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let environment: TestEnvironment;

beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);
const daysAgo = (days: number) => minutesAgo(days * 24 * 60);
const [saved, used, isDue, isNot] = [minutesAgo(20), minutesAgo(10), true, false];
const stopped = { status: 'stopped', status_at: used };

/** Whether a draft that was looked at twenty minutes ago is due to be saved. By default its computer runs. */
test.each([
  ['nothing has run there since', {}, {}, isNot],
  ['something runs', { processes: 1 }, {}, isDue],
  ['it was used since', { active_at: used }, {}, isDue],
  ['it was used just before, as the host may have said late', { active_at: minutesAgo(21) }, {}, isDue],
  ['it was never saved', {}, { saved_at: null }, isDue],
  ['it could not be saved', {}, { error_code: 'QUOTA_EXCEEDED' }, isDue],
  ['it was looked at a moment ago', { processes: 1 }, { looked_at: minutesAgo(1) }, isNot],
  ['its computer has started since', { status_at: used }, {}, isDue],
  ['its computer has stopped since', { status: 'stopped', status_at: used }, {}, isDue],
  ['its computer sleeps', { status: 'stopped' }, {}, isNot],
  ['its computer stands still', { status: 'paused', processes: 1, status_at: used }, {}, isNot],
  ['its computer has ended by itself', { status: 'error', error_code: 'COMPUTER_ENDED', status_at: used }, {}, isDue],
  ['its host is away', { status: 'error', error_code: 'HOST_LOST', status_at: used }, {}, isNot],
  ['it was not saved after the end', stopped, { looked_at: minutesAgo(8), saved_at: minutesAgo(12) }, isDue],
  ['it was never saved before the end', stopped, { looked_at: minutesAgo(8), saved_at: null }, isDue],
  ['it was saved after the end', stopped, { looked_at: minutesAgo(8), saved_at: minutesAgo(8) }, isNot],
  ['it is being saved after the end', stopped, { looked_at: minutesAgo(1), saved_at: minutesAgo(12) }, isNot],
  ['it could not be saved for long', { ...stopped, status_at: daysAgo(2) }, { saved_at: daysAgo(3) }, isNot],
  ['something of it cannot be saved', {}, { error_code: 'GIT_DRAFT_INCOMPLETE' }, isNot],
  ['its computer is gone', { status: 'stopped', deleted_at: used }, {}, isDue],
])('The sweep decides whether a draft is due if %s', async (_, computer, draft, expected) => {
  const { database } = environment;
  const { itemId, spaceId } = await buildRepositoryRow(environment);
  const { id: computerId } = await defaultComputer(database, spaceId);
  const row = { status: 'running', status_at: minutesAgo(60), processes: 0, active_at: minutesAgo(50), ...computer };
  await database.pool.query('UPDATE computers SET ? WHERE id = ?', [row, computerId]);
  const of = { itemId, spaceId, computerId, createdBy: 'usr_1' };
  const id = await insertDraft(database, of, { looked_at: saved, saved_at: saved, ...draft });
  const page = { before: minutesAgo(0.5), after: undefined, savedBefore: minutesAgo(5) };
  const found = await draftsToSave(database, page);
  expect(found.some((due) => due.id === id)).toBe(expected);
});

test('A draft whose computer was deleted moves once, to a free folder on the default computer', async () => {
  const { database } = environment;
  const { itemId, spaceId } = await buildRepositoryRow(environment);
  const { id: computerId } = await defaultComputer(database, spaceId);
  const of = { itemId, spaceId, createdBy: 'usr_1' };
  await insertDraft(database, { ...of, computerId }, { tree_path: 'drafts/a/try' });
  const changes = { tree_path: 'drafts/a/try', is_filled: 1, looked_at: saved, saved_at: saved };
  const id = await insertDraft(database, { ...of, computerId: newId('computer') }, changes);
  const due = async () => {
    const page = { before: minutesAgo(0.5), after: undefined, savedBefore: minutesAgo(5) };
    return (await draftsToSave(database, page)).find((draft) => draft.id === id);
  };
  const lost = await due();
  if (lost === undefined) throw new Error('Nobody looks after it.');
  expect(lost.isLost).toBe(true);
  await moveDraft(database, lost);
  const moved = { computerId, treePath: 'drafts/a/try-2', isFilled: false, status: 'ready' };
  expect(await findDraft(database, id)).toMatchObject(moved);
  expect(await due()).toBeUndefined();
  // A sweep that read the draft before that does not move it again.
  expect(await moveDraft(database, lost)).toMatchObject(moved);
});

test('An automatic save has five minutes to begin, and more time after it has begun', async () => {
  const { database } = environment;
  const { itemId, spaceId } = await buildRepositoryRow(environment);
  const { id: computerId } = await defaultComputer(database, spaceId);
  const id = await insertDraft(database, { itemId, spaceId, computerId, createdBy: 'usr_1' });
  const left = async () => {
    const [[row]] = (await database.pool.query('SELECT deadline_at AS at FROM git_orders WHERE item_id = ?', [
      itemId,
    ])) as unknown as [{ at: Date }[]];
    return (row?.at.getTime() ?? 0) - Date.now();
  };
  expect(await askForDue(database, { id, itemId })).toBe(true);
  expect(await left()).toBeLessThanOrEqual(5 * 60_000);
  expect(await nextRepositoryStep(database, itemId)).toMatchObject({ do: 'fillDraft' });
  expect(await left()).toBeGreaterThan(6 * 60_000);
});
