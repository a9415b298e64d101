import type { Uncommitted } from '../../../integrations/git/treeTypes.ts';
import type { MirrorState } from '../../../integrations/git/types.ts';
import { buildMirrors, type MirrorsWorld } from '../../builders/mirrors.ts';
import { buildTrees } from '../../builders/trees.ts';
import { drivers } from '../computers/drivers.ts';

// One driver is enough, since the tests of computers cover the differences.
const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options)).slice(0, 1);
const { signal } = new AbortController();
let world: MirrorsWorld;

beforeAll(async () => {
  world = await buildMirrors();
});
afterAll(() => world[Symbol.asyncDispose]());

describe.each(usable)('$name: uncommitted changes of a tree', ({ options }) => {
  let all: Awaited<ReturnType<typeof buildTrees>>;
  beforeAll(async () => {
    all = await buildTrees(world, options);
  });
  afterAll(() => all[Symbol.asyncDispose]());

  async function kept() {
    const { trees, run, filled } = all;
    const made = await filled();
    const { ref, path, work } = made;
    const said = (command: string) => run(`cd ${path}; ${command}`);
    const box = `~/.cache/atrium/git/${ref.itemId}-wip`;
    const stateOf = async (): Promise<MirrorState> => {
      const state = await world.mirrors.state(ref);
      if (state === undefined) throw new Error('Nothing is saved.');
      return state;
    };
    const keep = async () => trees.keepUncommitted(work(), (await stateOf()).manifest.refs['refs/atrium/wip'], signal);
    /** Saves the changes in the mirror. Returns the number of bytes that were sent. */
    const save = async (now: Uncommitted) => {
      const { bundle, refs } = await trees.bundleOut(work(), await stateOf(), signal, now);
      const bytes = Buffer.concat((await bundle?.toArray()) ?? []);
      const again = await trees.bundleOut(work(), await stateOf(), signal, now);
      await world.mirrors.receive(ref, { bundle: again.bundle, refs }, signal);
      return bytes.length;
    };
    const filesOf = ({ commit }: Uncommitted) =>
      said(`GIT_OBJECT_DIRECTORY=${box}/${commit}/objects git ls-tree -r --name-only ${commit}`);
    return { ...made, said, box, keep, save, filesOf };
  }

  it('are kept beside the repository, and a save sends only new objects', async () => {
    const { said, box, keep, save } = await kept();
    const look = 'find .git -type f | sort | xargs sha1sum';
    await said('echo two > a.txt; head -c 300000 /dev/urandom > random; mkdir new; cp random new/other');
    const before = await said(look);
    const first = await keep();
    expect(first).toEqual({ commit: expect.stringMatching(/^[0-9a-f]{40}$/), left: undefined });
    expect(await save(first)).toBeGreaterThan(300_000);
    expect(await keep()).toEqual(first);
    await said('echo three > a.txt');
    const second = await keep();
    expect(second.commit).not.toBe(first.commit);
    expect(await save(second)).toBeLessThan(5_000);
    expect(await said(look)).toBe(before);
    await said('echo one > a.txt; rm -r random new');
    const none = await keep();
    expect(none).toEqual({ commit: undefined, left: undefined });
    // The folder of the saved changes stays until other changes are saved.
    expect(await said(`ls ${box}`)).toBe(`${second.commit}\n`);
    await save(none);
    expect(await keep()).toEqual(none);
    expect(await said(`ls ${box}`)).toBe('');
  });

  it('are kept although a killed git left locks', async () => {
    const { said, keep } = await kept();
    const locks = 'mkdir -p .git/refs/atrium; touch .git/index.lock .git/packed-refs.lock .git/refs/atrium/wip.lock';
    await said(`git update-ref refs/atrium/wip HEAD; ${locks}; echo two > a.txt`);
    const first = await keep();
    expect(first.commit).toBeDefined();
    await said('echo three > a.txt');
    const second = await keep();
    expect(second.commit).toBeDefined();
    expect(second.commit).not.toBe(first.commit);
  });

  it('are kept without files that are too large or unreadable, which are reported', async () => {
    const { said, keep, save, filesOf } = await kept();
    await said(`truncate -s 33M '*.bin' a.txt; echo small > small.bin; git init -q nested; echo n > nested/n
      echo secret > closed; chmod 000 closed`);
    const now = await keep();
    expect((await filesOf(now)).split('\n')).toEqual(['a.txt', 'first.txt', 'small.bin', '']);
    expect(now.left).toMatch(/^more than 32 MiB are in .*; /);
    for (const name of ['*.bin', 'a.txt', 'nested', 'closed']) expect(now.left).toContain(name);
    expect(await save(now)).toBeLessThan(5_000);
  });

  it('are not kept if they are too large together', async () => {
    const { said, keep } = await kept();
    await said('for i in 1 2 3 4 5 6 7 8 9; do truncate -s 32M file$i; done');
    await expect(keep()).rejects.toMatchObject({
      code: 'GIT_DRAFT_INCOMPLETE',
      message: expect.stringContaining('256 MiB'),
    });
    await said('rm file1');
    expect((await keep()).commit).toBeDefined();
  });
});

if (usable.length === 0) {
  it('uncommitted changes are not tested on this machine, which has no driver', () => expect(usable).toEqual([]));
}
