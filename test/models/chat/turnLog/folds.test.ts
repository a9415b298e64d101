import type { UiChunk } from '../../../../models/chat/turnLog/chunks.ts';
import { TurnFolds } from '../../../../models/chat/turnLog/folds.ts';

/** Logs by turn, and how many chunks were read of each. */
function logs() {
  const said = new Map<string, UiChunk[]>();
  const read: Record<string, number> = {};
  const lengths = { each: 10 };
  const folds = new TurnFolds(async (turnId, afterSeq, tell) => {
    const chunks = (said.get(turnId) ?? []).slice(afterSeq);
    await Promise.resolve();
    read[turnId] = (read[turnId] ?? 0) + chunks.length;
    for (const chunk of chunks) tell(chunk, lengths.each);
    return afterSeq + chunks.length;
  });
  const say = (turnId: string, text: string) => {
    const id = `t${said.get(turnId)?.length ?? 0}`;
    const chunks: UiChunk[] = [
      { type: 'text-start', id },
      { type: 'text-delta', id, delta: text },
    ];
    said.set(turnId, [...(said.get(turnId) ?? []), ...chunks]);
  };
  const textsOf = async (turnId: string) =>
    (await folds.of(turnId)).fold.parts().map((part) => (part.type === 'text' ? part.text : part.type));
  return { folds, say, textsOf, read, lengths };
}

test('A chunk is read once, even if its turn is asked for many times', async () => {
  const { folds, say, textsOf, read } = logs();
  for (let step = 0; step < 50; step++) {
    say('one', `${step}`);
    await textsOf('one');
  }
  expect(await textsOf('one')).toEqual(Array.from({ length: 50 }, (_, step) => `${step}`));
  expect(read.one).toBe(100);
  expect((await folds.of('one')).nextSeq).toBe(101);
});

test('Concurrent callers get each chunk once', async () => {
  const { say, textsOf } = logs();
  say('one', 'said');
  expect(await Promise.all([textsOf('one'), textsOf('one'), textsOf('one')])).toEqual([['said'], ['said'], ['said']]);
});

test('A fold that was forgotten or is too large to keep is read again', async () => {
  const { folds, say, textsOf, read, lengths } = logs();
  say('one', 'said');
  await textsOf('one');
  folds.forget('one');
  expect(await textsOf('one')).toEqual(['said']);
  expect(read.one).toBe(4);

  lengths.each = 5_000_000;
  for (const turnId of ['two', 'three']) {
    say(turnId, 'long');
    await textsOf(turnId);
  }
  await textsOf('three');
  expect(read.three).toBe(2);
  expect(await textsOf('two')).toEqual(['long']);
  expect(read.two).toBe(4);
});
