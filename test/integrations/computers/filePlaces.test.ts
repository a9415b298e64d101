import { FilePlaces } from '../../../integrations/computers/host/files/filePlaces.ts';

const limits = { perHost: 2, perSpace: 2, waitMs: 60_000, restMs: 0 };

/** Slots without idle sandboxes: a slot is free when its sandbox has ended. */
function build(changes: Partial<typeof limits> = {}) {
  const places = new FilePlaces({ ...limits, ...changes }, () => Promise.resolve(false));
  const got: string[] = [];
  return {
    got,
    async open(computerId: string, spaceId: string) {
      using _place = await places.take(computerId, spaceId);
      places.opened(computerId);
      got.push(computerId);
    },
    close: (computerId: string) => places.closed(computerId),
  };
}

describe('the slots for file work on stopped computers', () => {
  it('go to the longest waiter among spaces with equally many', async () => {
    const { open, close, got } = build();
    await Promise.all([open('a1', 'a'), open('b1', 'b')]);
    const waiting = [open('c1', 'c'), open('d1', 'd')];
    close('a1');
    await waiting[0];
    close('b1');
    await waiting[1];
    expect(got).toEqual(['a1', 'b1', 'c1', 'd1']);
  });

  it('go to the space with the fewest, also if another space has many waiters', async () => {
    const { open, close, got } = build();
    await Promise.all([open('a1', 'a'), open('a2', 'a')]);
    const greedy = ['a3', 'a4', 'a5'].map((id) => open(id, 'a'));
    const modest = open('b1', 'b');
    close('a1');
    greedy.push(open('a6', 'a'));
    await modest;
    expect(got).toEqual(['a1', 'a2', 'b1']);
    close('a2');
    await greedy[0];
    expect(got.at(-1)).toBe('a3');
    for (const [n, next] of greedy.entries()) {
      await next;
      close(got.at(-1) ?? '');
      expect(got).toHaveLength(4 + n);
    }
  });

  it('are not kept free for a waiter whose space is at its limit', async () => {
    const { open, close, got } = build({ perSpace: 1 });
    await Promise.all([open('a1', 'a'), open('b1', 'b')]);
    const blocked = open('b2', 'b');
    const next = open('c1', 'c');
    close('a1');
    await next;
    expect(got).toEqual(['a1', 'b1', 'c1']);
    close('b1');
    await blocked;
  });

  it('are refused after the maximal wait', async () => {
    const { open } = build({ perHost: 1, waitMs: 20 });
    await open('a1', 'a');
    await expect(open('b1', 'b')).rejects.toMatchObject({ kind: 'unavailable', code: 'FILES_BUSY' });
  });
});
