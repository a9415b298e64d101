import { gathered } from '../../temporal/launchers/gathered.ts';

test('A single item starts at once, items that follow soon start together, and each caller gets its result', async () => {
  const started: string[][] = [];
  const start = gathered<string>(
    async (items) => {
      started.push([...items]);
      return items.includes('late') ? 'late' : 'reached';
    },
    { everyMs: 50, most: 3 },
  );
  const first = start('a');
  expect(started).toEqual([['a']]);
  const others = ['b', 'c', 'd', 'late'].map(start);
  expect(started).toEqual([['a']]);
  expect(await first).toBe('reached');
  expect(await Promise.all(others)).toEqual(['reached', 'reached', 'reached', 'late']);
  expect(started).toEqual([['a'], ['b', 'c', 'd'], ['late']]);

  expect(await start('after')).toBe('reached');
  expect(started.at(-1)).toEqual(['after']);
});
