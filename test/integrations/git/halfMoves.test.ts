import { buildMirrors, type MirrorsWorld } from '../../builders/mirrors.ts';
import { buildTrees } from '../../builders/trees.ts';
import { commitFiles } from '../../support/gitRepository.ts';
import { inFull } from '../../support/inFull.ts';
import { drivers } from '../computers/drivers.ts';

const full = inFull('git');

// One driver is enough, since the tests of computers cover the differences.
const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options)).slice(0, 1);
const { signal } = new AbortController();
const author = { name: 'Ada Lovelace', email: 'ada@example.com' };
let world: MirrorsWorld;

beforeAll(async () => {
  world = await buildMirrors();
});
afterAll(() => world[Symbol.asyncDispose]());

describe.each(usable)('$name: an interrupted checkout', ({ options }) => {
  let all: Awaited<ReturnType<typeof buildTrees>>;
  beforeAll(async () => {
    all = await buildTrees(world, options);
  });
  afterAll(() => all[Symbol.asyncDispose]());

  const files = { 'a.dat': 'one\n', 'b.txt': 'one\n', 'gone.dat': 'one\n', 'mine.dat': 'one\n' };

  /** A tree with a user's changes, where git hangs once in the middle of a checkout. */
  async function held() {
    const { trees, run, filled } = all;
    const made = await filled(files);
    const { path, bare, bring, work } = made;
    const changes = { 'a.dat': 'other\n', 'b.txt': 'other\n', 'gone.dat': undefined, 'new/c.dat': 'other\n' };
    const other = commitFiles(bare, changes, { branch: 'other' });
    await bring();
    await run(`cd ${path}; echo changed > mine.dat; echo untracked > own.dat
      mkdir -p .git/info; git config filter.slow.smudge 'if mkdir ~/once-${path.split('/')[1]} 2>/dev/null; then sleep 1000; fi; cat'
      echo 'b.txt filter=slow' > .git/info/attributes`);
    const begun = () => run(`while [ ! -d ~/once-${path.split('/')[1]} ]; do sleep 0.05; done; cat ${path}/a.dat`);
    const seen = () => run(`cd ${path}; cat a.dat b.txt; git status --porcelain; git symbolic-ref HEAD; ls -A .git`);
    return { ...made, trees, run, work, other, begun, seen };
  }

  const before = 'one\none\n M mine.dat\n?? own.dat\nrefs/heads/main\n';
  const after = 'other\nother\n M mine.dat\n?? own.dat\nrefs/heads/other\n';

  it('is completed after its computer has stopped in the middle', async () => {
    const { trees, work, begun, seen } = await held();
    const checkedOut = trees.checkout(work(), { branch: 'other' }, signal);
    expect(await begun()).toBe('other\n');
    await all.restart();
    expect((await checkedOut).output).toContain("'other'");
    const now = await seen();
    expect(now).toContain(after);
    expect(now).not.toMatch(/atrium-moving|atrium-undo|\.lock/);
  });

  it('is completed by a repeated call if the first one ends the process that both have', async () => {
    const { trees, work, begun, seen } = await held();
    const order = work();
    const first = new AbortController();
    const givenUp = trees.checkout(order, { branch: 'other' }, first.signal);
    expect(await begun()).toBe('other\n');
    const repeated = trees.checkout(order, { branch: 'other' }, signal);
    first.abort(new Error('given up late'));
    await expect(givenUp).rejects.toThrow('given up late');
    expect((await repeated).output).toContain("'other'");
    expect(await seen()).toContain(after);
  });

  full.it('is completed if it is part of a pull', async () => {
    const { trees, work, begun, seen, run, path } = await held();
    const how = { ref: 'refs/remotes/origin/other', author, at: new Date(), fastForwardOnly: true };
    const pulled = trees.merge(work(), how, signal);
    await begun();
    await all.restart();
    expect((await pulled).output).toContain('Fast-forward');
    expect(await seen()).toContain(after.replace('heads/other', 'heads/main'));
    expect(await run(`cd ${path}; cat new/c.dat; ls gone.dat 2>/dev/null`)).toBe('other\n');
  });

  full.it('is undone after an abort', async () => {
    const { trees, work, begun, seen, run, path } = await held();
    const controller = new AbortController();
    const checkedOut = trees.checkout(work(), { branch: 'other' }, controller.signal);
    await begun();
    controller.abort(new Error('called off'));
    await expect(checkedOut).rejects.toThrow('called off');
    const now = await seen();
    expect(now).toContain(before);
    expect(now).not.toMatch(/atrium-moving|atrium-undo|\.lock/);
    expect(await run(`cd ${path}; ls gone.dat; ls new 2>/dev/null`)).toBe('gone.dat\n');
    expect((await trees.checkout(work(), { branch: 'other' }, signal)).output).toContain("'other'");
  });

  full.it('does not get its files into the next commit', async () => {
    const { trees, work, begun, run, path } = await held();
    const killed = trees.checkout(work(), { branch: 'other' }, signal);
    killed.catch(() => undefined);
    await begun();
    await run(`cp -a ${path} half; rm -f half/.git/index.lock`);
    await all.restart();
    await killed;
    // Restore the half-done state, as without a second attempt.
    await run(`rm -rf ${path}; mv half ${path}`);
    await trees.commit(work(), { message: 'Mine', author, at: new Date() }, signal);
    expect(await run(`cd ${path}; git show --name-only --format=%s HEAD`)).toBe('Mine\n\nmine.dat\nown.dat\n');
  });

  it('is undone if a file is only truncated, and left alone if a user has changed a file since', async () => {
    const { trees, work, run, path, other } = await held();
    const half = `cd ${path}; rm -f gone.dat; echo other > a.dat
      printf '%s %s\\n' "$(git rev-parse HEAD)" ${other} > .git/atrium-moving`;
    // Without the hanging filter.
    await run(`mkdir ~/once-${path.split('/')[1]}; ${half}; printf oth > b.txt`);
    await trees.branch(work(), { name: 'x', checkout: false }, signal);
    expect(await run(`cd ${path}; cat a.dat b.txt gone.dat mine.dat; ls .git/atrium-moving 2>/dev/null`)).toBe(
      'one\none\none\nchanged\n',
    );
    await run(`${half}; echo typed > b.txt`);
    await trees.branch(work(), { name: 'y', checkout: false }, signal);
    expect(await run(`cd ${path}; cat a.dat b.txt; ls gone.dat 2>/dev/null`)).toBe('other\ntyped\n');
  });
});

if (usable.length === 0) {
  it('interrupted checkouts are not tested on this machine, which has no driver', () => expect(usable).toEqual([]));
}
