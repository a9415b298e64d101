import { Places } from '../../base/places.ts';

/** Takes places for work that ends when it is told to, and says what has begun. */
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

test('an owner has its share at once, and another finds room however much waits', () => {
  const { begun, take } = queue({ all: 4, perOwner: 2 });
  for (const name of ['a1', 'a2', 'a3', 'a4']) take('a', name);
  take('b', 'b1');
  expect(begun).toEqual(['a1', 'a2', 'b1']);
});

test('places that become free go to the owners in turn', () => {
  const { begun, take, end } = queue({ all: 2, perOwner: 2 });
  for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) take('a', name);
  for (const name of ['b1', 'b2']) take('b', name);
  take('c', 'c1');
  for (const name of ['a1', 'a2', 'a3', 'b1', 'c1', 'a4', 'b2']) end(name);
  expect(begun).toEqual(['a1', 'a2', 'a3', 'b1', 'c1', 'a4', 'b2', 'a5']);
});

test('who leaves while waiting never begins, and a place is given back once', () => {
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

test('waiting for a place ends with the signal, and the place goes to the next', async () => {
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

test('a signal that comes after the place was given does not take it away', async () => {
  const places = new Places({ all: 1 });
  const first = await places.take();
  const abort = new AbortController();
  const next = places.take({ signal: abort.signal });
  first[Symbol.dispose]();
  abort.abort();
  using _place = await next;
  expect(places.hasRoom('')).toBe(false);
});
