import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import { AttachmentReader } from '../../../activities/chat/context/attachmentReader.ts';
import { tokensOf } from '../../../activities/chat/context/budget.ts';
import { buildPrompt } from '../../../activities/chat/prompt.ts';
import { builtinModels } from '../../../integrations/chat/builtinModels.ts';
import { estimatePromptTokens } from '../../../integrations/chat/tokens.ts';
import { encodePng } from '../../../integrations/desktops/picture.ts';
import { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import { keepPicture, type ResultPicture } from '../../../models/chat/resultPictures.ts';
import { readChatSettings } from '../../../models/chat/settings.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { driveModels } from '../../../models/drive/models.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { buildTurn, buildTurnLog, buildWriter } from '../../builders/turnLog.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let environment: TestEnvironment;
let storage: ObjectStore;
let turn: Turn;

beforeAll(async () => {
  environment = await createTestEnvironment();
  storage = new ObjectStore(environment.config.storage);
});
beforeEach(async () => {
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  turn = await buildTurn(environment.database, { userId: user.id, spaceId: space.id });
});
afterAll(async () => {
  storage.close();
  await environment.close();
});

const store = () => ({
  database: environment.database,
  storage,
  limits: environment.config.drive,
  onFailure: () => undefined,
});

/** A different picture for each number. */
const pngOf = (number: number) =>
  encodePng({ width: 2, height: 1, pixels: Buffer.from([number, 0, 0, 0, 0, number, 0, 0]) });

async function keep(toolCallId: string, number: number): Promise<ResultPicture> {
  const bytes = await pngOf(number);
  return keepPicture(store(), turn, toolCallId, { mediaType: 'image/png', bytes, width: 2, height: 1 });
}

/** Adds one step to the turn for each result. */
async function takeSteps(outputs: Record<string, unknown>): Promise<void> {
  const { turnLog } = buildTurnLog(environment.database);
  const writer = await buildWriter(environment.database, turnLog, turn);
  for (const [toolCallId, output] of Object.entries(outputs)) {
    writer.append({ type: 'start-step' });
    writer.append({ type: 'tool-input-available', toolCallId, toolName: 'look', input: {}, dynamic: true });
    writer.append({ type: 'tool-output-available', toolCallId, output, dynamic: true });
    writer.append({ type: 'finish-step' });
  }
  await writer.flush();
  writer.close();
}

/** The next prompt of the turn, and the tool results in it. */
async function promptFor({ images = true, budget = 100_000 } = {}) {
  const known = builtinModels.find(({ capabilities }) => capabilities.images);
  if (known === undefined) throw new Error('No model sees images.');
  const model = { ...known, capabilities: { ...known.capabilities, images } };
  const documents = { read: () => Promise.reject(new Error('There is no PDF here.')) };
  const prompt = await buildPrompt(
    {
      database: environment.database,
      turnLog: buildTurnLog(environment.database).turnLog,
      attachments: new AttachmentReader(storage, documents),
    },
    { turn, step: 1, model, settings: await readChatSettings(environment.database, turn.spaceId), budget },
  );
  if (prompt === undefined) throw new Error('It is too long.');
  return { prompt, results: prompt.flatMap(outputsIn) };
}

function outputsIn(message: LanguageModelV4Prompt[number]) {
  if (message.role !== 'tool') return [];
  return message.content.flatMap((part) => (part.type === 'tool-result' ? [part.output] : []));
}

const shown = async (number: number) => ({ data: { data: (await pngOf(number)).toString('base64') } });
const seenBy = ({ results }: Awaited<ReturnType<typeof promptFor>>) => results.map(({ type }) => type === 'content');

test('A model that sees images gets the picture in the call’s result, after the text', async () => {
  const picture = await keep('tcl_1', 1);
  expect(picture).toEqual({
    containerId: `thread:${turn.threadId}`,
    path: '/tool-results/tcl_1.png',
    mediaType: 'image/png',
    width: 2,
    height: 1,
  });
  await takeSteps({ tcl_1: { note: 'as it is', picture } });
  const { results, prompt } = await promptFor();
  const text = JSON.stringify({ note: 'as it is', picture });
  expect(results).toMatchObject([
    { type: 'content', value: [{ text }, { mediaType: 'image/png', ...(await shown(1)) }] },
  ]);
  // The estimate of tokens does not count the picture's bytes as text.
  const { prompt: without } = await promptFor({ images: false });
  expect(tokensOf(prompt) - tokensOf(without)).toBeGreaterThan(1_000);
  expect(tokensOf(prompt) - tokensOf(without)).toBeLessThan(2_000);
  expect(estimatePromptTokens(prompt) - estimatePromptTokens(without)).toBeLessThan(2_000);
});

test('A model that sees no images is told so in place of the picture', async () => {
  await takeSteps({ tcl_1: { picture: await keep('tcl_1', 1) } });
  const { results } = await promptFor({ images: false });
  expect(results).toMatchObject([{ type: 'text', value: expect.stringContaining('this model cannot see images') }]);
});

test('Only the newest pictures are shown, and older ones are left out three at a time', async () => {
  const outputs: Record<string, unknown> = {};
  for (let number = 1; number <= 4; number++)
    outputs[`tcl_${number}`] = { picture: await keep(`tcl_${number}`, number) };
  await takeSteps(outputs);
  expect(seenBy(await promptFor())).toEqual([true, true, true, true]);
  await takeSteps({ tcl_5: { picture: await keep('tcl_5', 5) } });
  const five = await promptFor();
  expect(seenBy(five)).toEqual([false, false, false, true, true]);
  expect(five.results[0]).toMatchObject({ value: expect.stringContaining('later pictures take its place') });
  expect(five.results[4]).toMatchObject({ value: [{}, await shown(5)] });
  await takeSteps({ tcl_6: { picture: await keep('tcl_6', 6) }, tcl_7: { note: 'none in this one' } });
  expect(seenBy(await promptFor())).toEqual([false, false, false, true, true, true, false]);
});

test('Pictures take only a part of the prompt', async () => {
  const outputs: Record<string, unknown> = {};
  for (let number = 1; number <= 3; number++)
    outputs[`tcl_${number}`] = { picture: await keep(`tcl_${number}`, number) };
  await takeSteps(outputs);
  expect(seenBy(await promptFor({ budget: 8_000 }))).toEqual([false, false, true]);
  expect(seenBy(await promptFor({ budget: 5_000 }))).toEqual([false, false, false]);
});

test('A result shows only the picture of its own call, and says when that was deleted', async () => {
  const picture = await keep('tcl_1', 1);
  const forged = { containerId: 'drive', path: '/private.png', mediaType: 'image/png', width: 2, height: 1 };
  await takeSteps({ tcl_1: { picture: forged }, tcl_2: { picture }, tcl_3: { picture: { mediaType: 'text/html' } } });
  const { results } = await promptFor();
  expect(results).toMatchObject([
    { type: 'content', value: [{}, await shown(1)] },
    { type: 'text', value: expect.stringContaining('not shown: the file has been deleted since') },
    { type: 'text', value: expect.not.stringContaining('not shown') },
  ]);
});

test('A call whose picture exceeds the quota fails with QUOTA_EXCEEDED', async () => {
  await keep('tcl_1', 1);
  await driveModels(environment.database).Drive.update(
    { usedBytes: environment.config.drive.quotaBytes },
    { where: { spaceId: turn.spaceId } },
  );
  await expect(keep('tcl_2', 2)).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
});
