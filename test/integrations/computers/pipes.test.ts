import { closePipes, Pipes } from '../../../integrations/computers/agent/processes/pipes.ts';

test('programs that start at the same time each get their own pipes', async () => {
  const pipes = new Pipes();
  const taken = await Promise.all(Array.from({ length: 60 }, () => pipes.take('in', 'out', 'out')));
  const descriptors = taken.flat().flatMap(({ ours, childs }) => [ours, childs]);
  expect(new Set(descriptors).size).toBe(60 * 3 * 2);
  for (const each of taken) closePipes(each);
});
