import { endTurn } from '../../../models/chat/endTurn.ts';
import { chatModels } from '../../../models/chat/models.ts';
import { purgeTurnLogs } from '../../../models/chat/purge.ts';
import type { UiChunk } from '../../../models/chat/turnLog/chunks.ts';
import { transaction } from '../../../models/database/database.ts';
import { type ChatUser, type MessageBody, textOf } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { buildTurn, buildTurnLog } from '../../builders/turnLog.ts';
import { createTestEnvironment, runStatement } from '../../support/environment.ts';
import { inFull } from '../../support/inFull.ts';
import { collect } from '../../support/sseClient.ts';

const full = inFull('chat');

/** Answers of more than 16 MB, the limit of a MEDIUMTEXT and of the default packet. */
let product: TestProduct;
beforeAll(async () => {
  product = await buildProduct({});
});
afterAll(() => product.close());

const calls = 380;
const fileBytes = 47_000;
const unicode = '😀é"\n'.repeat(100);

/** A user whose drive has the file that `reads` has read. */
async function reader(): Promise<ChatUser> {
  const user = await product.user();
  const content = unicode + 'x'.repeat(fileBytes - Buffer.byteLength(unicode));
  await user.ask({
    content: toolLines([['drive_write', { path: '/long.txt', content }]]),
    modelId: 'demo',
    mode: 'work',
  });
  return user;
}
const reads = `${'/tool drive_read {"path":"/long.txt"}\n'.repeat(calls)}/say All read.`;

interface MessagePage {
  data: MessageBody[];
  nextCursor: string | null;
}

async function pagesOf(user: ChatUser, threadId: string): Promise<MessagePage[]> {
  const pages: MessagePage[] = [];
  for (let cursor: string | null = ''; cursor !== null; cursor = pages.at(-1)?.nextCursor ?? null) {
    const after = cursor === '' ? '' : `?cursor=${cursor}`;
    pages.push(await user.get<MessagePage>(`/api/threads/${threadId}/messages${after}`));
  }
  return pages;
}

full.test('A turn with 18 MB of results ends and is stored whole, and its thread goes on', async () => {
  const user = await reader();
  const { chunks, turnId, threadId, text } = await user.ask({ content: reads, modelId: 'demo' });
  expect(chunks.at(-1)).toMatchObject({ type: 'finish' });
  expect(text).toContain('All read.');
  expect(await user.turn(turnId)).toMatchObject({ status: 'completed' });
  const outputs = toolOutputs(chunks);
  expect(outputs).toHaveLength(calls);

  const next = await user.ask({ content: 'And now?', threadId });
  const pages = await pagesOf(user, threadId);
  const messages = pages.flatMap(({ data }) => data);
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
  const stored = messages[1]?.parts.flatMap((part) => (part.type === 'dynamic-tool' ? [part.output] : []));
  expect(stored).toEqual(outputs);
  expect(JSON.stringify(stored)).toContain('😀é');
  expect(textOf(messages[3]?.parts ?? [])).toBe(next.text);

  // Without its log, the whole stream is rebuilt from the message.
  await purgeTurnLogs(product.environment.database, new Date(Date.now() + 1_000));
  const replayed = await collect(await user.open(`/chat/turns/${turnId}/stream`));
  expect([replayed.text, toolOutputs(replayed.chunks)]).toEqual([text, outputs]);
});

test('A page of long answers ends at the memory limit, and the next page begins behind it', async () => {
  const { database } = product.environment;
  const user = await product.user();
  const { threadId } = await user.ask({ content: 'begin' });
  const { turnLog } = buildTurnLog(database);
  for (let number = 0; number < 4; number++) {
    const { id: turnId } = await buildTurn(database, { userId: user.id, spaceId: user.spaceId, threadId });
    const said = `${number}`.repeat(4_000_000);
    await append(turnId, [
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: said },
    ]);
    await endTurn({ database, turnLog }, turnId, { status: 'completed', finishReason: 'stop' });
  }
  const pages = await pagesOf(user, threadId);
  expect(pages.length).toBeGreaterThan(1);
  const texts = pages.flatMap(({ data }) => data).map(({ parts }) => textOf(parts));
  expect(texts).toHaveLength(10);
  expect(texts.slice(2).map(({ length }) => length)).toEqual([5, 4e6, 5, 4e6, 5, 4e6, 5, 4e6]);

  async function append(turnId: string, chunks: UiChunk[]): Promise<void> {
    for (const chunk of chunks) await transaction(database, (tx) => turnLog.appendIn(tx, turnId, [chunk]));
  }
});

test('An answer that the database does not take ends with ANSWER_TOO_LARGE, and the part that fits is kept', async () => {
  const { database, environment, close } = await createTestEnvironment();
  const ownerUrl = environment.ATRIUM_DATABASE_MIGRATION_URL;
  await runStatement(ownerUrl, 'ALTER TABLE answer_pieces MODIFY parts TINYTEXT NOT NULL');
  const { turnLog } = buildTurnLog(database);
  const turn = await buildTurn(database);
  const said: UiChunk[] = [
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'the beginning '.repeat(100_000) },
  ];
  await transaction(database, (tx) => turnLog.appendIn(tx, turn.id, said));
  const { ended } = await endTurn({ database, turnLog }, turn.id, { status: 'completed', finishReason: 'stop' });
  expect(ended).toBe(true);
  const { Message, Thread, Turn } = chatModels(database);
  const row = await Turn.findByPk(turn.id);
  expect(row).toMatchObject({ status: 'failed', errorCode: 'ANSWER_TOO_LARGE', terminal: 1 });
  expect(await Thread.findByPk(turn.threadId)).toMatchObject({ activeTurnId: null });
  const message = await Message.find(turn.threadId, turn.assistantMessageId);
  expect(textOf((message?.parts ?? []) as MessageBody['parts'])).toMatch(/^the beginning the beginning /);
  await turnLog.close();
  await close();
});
