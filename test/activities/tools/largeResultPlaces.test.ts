import { LargeResults } from '../../../activities/tools/largeResults.ts';

const never = new AbortController().signal;

/** Asks to admit one result per entry of `spaceIds`. `admitted` lists the admitted ones in order. */
function begin(results: LargeResults, spaceIds: string[], signal = never) {
  const admitted: number[] = [];
  const tickets = spaceIds.map((spaceId, at) => {
    const ticket = results.ticket(spaceId);
    const entered = ticket.admit(signal).then(() => admitted.push(at));
    return { ticket, entered };
  });
  return { admitted, tickets };
}

test('Two results are admitted at a time, one per space, and the one that waits longest is next', async () => {
  const { admitted, tickets } = begin(new LargeResults(), ['a', 'a', 'b', 'c', 'a']);
  await Promise.all([tickets[0]?.entered, tickets[2]?.entered]);
  expect(admitted).toEqual([0, 2]);
  tickets[0]?.ticket[Symbol.dispose]();
  await tickets[1]?.entered;
  tickets[2]?.ticket[Symbol.dispose]();
  await tickets[3]?.entered;
  expect(admitted).toEqual([0, 2, 1, 3]);
  for (const at of [1, 3]) tickets[at]?.ticket[Symbol.dispose]();
  await tickets[4]?.entered;
});

test('A call takes one place even if it asks twice, and a call that is stopped leaves the queue', async () => {
  const results = new LargeResults();
  const first = results.ticket('a');
  await first.admit(never);
  await first.admit(never);
  const stop = new AbortController();
  const { tickets } = begin(results, ['a'], stop.signal);
  const last = begin(results, ['a']);
  stop.abort(new Error('stopped'));
  await expect(tickets[0]?.entered).rejects.toThrow('stopped');
  tickets[0]?.ticket[Symbol.dispose]();
  expect(last.admitted).toEqual([]);
  first[Symbol.dispose]();
  await last.tickets[0]?.entered;
  await expect(results.ticket('b').admit(stop.signal)).rejects.toThrow('stopped');
});
