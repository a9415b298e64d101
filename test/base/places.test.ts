import { Places } from '../../base/places.ts';

/** Takes slots for named work. `end` ends a piece of work; `begun` lists those that got a slot. */
function queue(limits: { all: number; perOwner: number }) {
  const places = new Places(limits);
  const begun: string[] = [];
  const leaving = new Map<string, () => void>();
  return {
    begun,
    take: (owner: string, name: string) =>
      leaving.set(
        name,
        places.begin(owner, () => begun.push(name)),
      ),
    end: (name: string) => leaving.get(name)?.(),
  };
}

test('an owner gets at most its share of the slots, and other owners still get one', () => {
  const { begun, take } = queue({ all: 4, perOwner: 2 });
  for (const name of ['a1', 'a2', 'a3', 'a4']) take('a', name);
  take('b', 'b1');
  expect(begun).toEqual(['a1', 'a2', 'b1']);
});

test('free slots go to the waiting owners in turn', () => {
  const { begun, take, end } = queue({ all: 2, perOwner: 2 });
  for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) take('a', name);
  for (const name of ['b1', 'b2']) take('b', name);
  take('c', 'c1');
  for (const name of ['a1', 'a2', 'a3', 'b1', 'c1', 'a4', 'b2']) end(name);
  expect(begun).toEqual(['a1', 'a2', 'a3', 'b1', 'c1', 'a4', 'b2', 'a5']);
});

test('work that is cancelled while waiting never begins, and a slot is freed only once', () => {
  const { begun, take, end } = queue({ all: 1, perOwner: 1 });
  for (const name of ['a1', 'a2', 'a3']) take('a', name);
  take('b', 'b1');
  end('a2');
  end('a1');
  end('a1');
  expect(begun).toEqual(['a1', 'a3']);
  end('a3');
  expect(begun).toEqual(['a1', 'a3', 'b1']);
  end('b1');
  take('c', 'c1');
  expect(begun).toEqual(['a1', 'a3', 'b1', 'c1']);
});

test('an aborted wait fails, and the slot goes to the next in the queue', async () => {
  const places = new Places({ all: 1 });
  const first = await places.take();
  const abort = new AbortController();
  const given = places.take({ signal: abort.signal });
  const later = places.take();
  expect(places.waiting('')).toEqual({ all: 2, ofOwner: 2 });
  abort.abort(new Error('Enough.'));
  await expect(given).rejects.toThrow('Enough.');
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  const second = await later;
  expect(places.hasRoom('')).toBe(false);
  second[Symbol.dispose]();
  expect(places.hasRoom('')).toBe(true);
});

test('a signal that aborts after the slot was given does not take it away', async () => {
  const places = new Places({ all: 1 });
  const first = await places.take();
  const abort = new AbortController();
  const next = places.take({ signal: abort.signal });
  first[Symbol.dispose]();
  abort.abort();
  using _place = await next;
  expect(places.hasRoom('')).toBe(false);
});
