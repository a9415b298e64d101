import { newId } from '../../../base/ids.ts';
import { transaction } from '../../../models/database/database.ts';
import { forgetOldDesktops, forgetOldRecordings } from '../../../models/desktops/open.ts';
import { findRecording } from '../../../models/desktops/recording.ts';
import { keepRecording, nextRecordingStep } from '../../../models/desktops/recordingSteps.ts';
import { createRecording } from '../../../models/desktops/recordings.ts';
import { desktopRow } from '../../builders/desktop.ts';
import { recordingRow } from '../../builders/recording.ts';
import { insertRows } from '../../builders/rows.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

const dayMs = 86_400_000;
const daysAgo = (days: number) => new Date(Date.now() - days * dayMs);
const of = { spaceId: 'spc_1', computerId: 'cmp_1', createdBy: 'usr_1' };

async function insertDesktop(more: object = {}): Promise<string> {
  const row = { ...desktopRow(of), ...more };
  await insertRows(environment.database, { desktop_sessions: row });
  return String(row.id);
}

/** A recording. By default its session has ended. */
async function insertRecording(more: object, sessionId?: string): Promise<string> {
  const row = { ...recordingRow({ ...of, sessionId: sessionId ?? (await insertDesktop()) }), ...more };
  await insertRows(environment.database, { desktop_recordings: row });
  return String(row.id);
}

test.each([
  ['starting', { do: 'save' }, { status: 'saving', endCode: 'COMPUTER_STOPPED' }],
  ['recording', { do: 'save' }, { status: 'saving', endCode: 'COMPUTER_STOPPED' }],
  ['stopping', { do: 'save' }, { status: 'saving' }],
  ['discarding', { do: 'clear' }, { status: 'discarded' }],
  ['saving', { do: 'save' }, { status: 'saving' }],
  ['saved', { do: 'clear' }, { status: 'saved' }],
])('A recording that is %s goes on after its computer has stopped', async (status, step, row) => {
  const { database } = environment;
  const sessionId = await insertDesktop();
  const id = await insertRecording({ status, settled_at: null, has_file: 1, running_on: sessionId }, sessionId);
  expect(await nextRecordingStep(database, id)).toEqual(step);
  expect(await findRecording(database, id)).toMatchObject(row);
  expect(await nextRecordingStep(database, id)).toEqual(step);
});

test.each([
  ['saving', { status: 'failed', errorCode: 'COMPUTER_SILENT', hasFile: true }],
  ['discarded', { status: 'discarded', hasFile: false }],
  ['saved', { status: 'saved', hasFile: false }],
])('A recording that is %s waits no longer than a week for its computer', async (status, row) => {
  const { database } = environment;
  const waiting = await insertRecording({ status, settled_at: null, has_file: 1, status_at: daysAgo(6) });
  expect((await nextRecordingStep(database, waiting)).do).not.toBe('rest');
  const id = await insertRecording({ status, settled_at: null, has_file: 1, status_at: daysAgo(8) });
  expect(await nextRecordingStep(database, id)).toEqual({ do: 'rest' });
  expect(await findRecording(database, id)).toMatchObject(row);
});

test('Only one of several workers that save a recording at once puts it into the drive', async () => {
  const { database } = environment;
  const id = await insertRecording({ status: 'saving', settled_at: null });
  const attempts = ['itm_1', 'itm_2', 'itm_3'].map((itemId) =>
    transaction(database, (tx) => keepRecording(tx, id, { itemId, size: 1, durationMs: 1_000 })),
  );
  expect((await Promise.all(attempts)).filter((isKept) => isKept)).toHaveLength(1);
  expect((await findRecording(database, id))?.itemId).toMatch(/^itm_[123]$/);
});

test('Only one of several concurrent starts of a recording succeeds', async () => {
  const { database } = environment;
  const sessionId = await insertDesktop({ status: 'running', end_code: null, ended_at: null });
  const fields = {
    name: 'a.mp4',
    folder: { path: '/' },
    framesPerSecond: 1,
    maxSeconds: 1,
    maxBytes: 1,
    apiKeyId: null,
  };
  const actor = { userId: 'usr_1', credentialId: null, address: null };
  const begin = () =>
    createRecording(database, { ...of, sessionId, recordingId: newId('desktopRecording') }, fields, actor).catch(
      (error: { code: string }) => error.code,
    );
  const results = await Promise.all([begin(), begin(), begin()]);
  expect(results.sort()).toEqual(['RECORDING_RUNNING', 'RECORDING_RUNNING', true]);
});

test('Old recordings are forgotten, and then their sessions', async () => {
  const { database } = environment;
  const old = { ended_at: daysAgo(100) };
  const [first, second] = [await insertDesktop(old), await insertDesktop(old)];
  const over = await insertRecording({ settled_at: daysAgo(91) }, first);
  const open = await insertRecording({ status: 'saving', settled_at: null, status_at: daysAgo(1) }, second);
  const forget = async () => [
    await forgetOldRecordings(database, daysAgo(90), () => undefined),
    await forgetOldDesktops(database, daysAgo(90), () => undefined),
  ];
  expect(await forget()).toEqual([1, 1]);
  expect(await forget()).toEqual([0, 0]);
  expect(await findRecording(database, over)).toBeUndefined();
  expect(await findRecording(database, open)).toBeDefined();
});
