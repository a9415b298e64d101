import { Shares } from '../../integrations/egress/shares.ts';

test('each owner has a limited number of slots, which are freed, and does not use those of others', async () => {
  const shares = new Shares({ most: 2, burst: 100, perSecond: 100 });
  const first = await shares.enter('one');
  await shares.enter('one');
  await expect(shares.enter('one')).rejects.toMatchObject({ status: 429 });
  await shares.enter('other');
  first[Symbol.dispose]();
  await shares.enter('one');
  await expect(shares.enter('one')).rejects.toMatchObject({ status: 429 });
});

test('an owner who takes and frees slots too fast is refused', async () => {
  // The next request would be allowed in a day.
  const shares = new Shares({ most: 10, burst: 3, perSecond: 1 / 86_400 });
  for (let n = 0; n < 3; n++) (await shares.enter('one'))[Symbol.dispose]();
  await expect(shares.enter('one')).rejects.toMatchObject({ status: 429 });
  await shares.enter('other');
});

test('who has left and could take a whole burst again is forgotten', async () => {
  let now = 0;
  const shares = new Shares({ most: 2, burst: 3, perSecond: 1 }, () => now);
  const left = await shares.enter('left');
  const stays = await shares.enter('stays');
  left[Symbol.dispose]();
  await shares.enter('soon');
  expect(shares.size).toBe(3);
  now = 1_000;
  await shares.enter('later');
  expect(shares.size).toBe(3);
  stays[Symbol.dispose]();
  await shares.enter('last');
  expect(shares.size).toBe(3);
  await shares.enter('soon');
  await expect(shares.enter('soon')).rejects.toMatchObject({ status: 429 });
});
