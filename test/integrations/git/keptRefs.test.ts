import { asDraft, draftRef, movesOfDraft, withoutKept } from '../../../integrations/git/rules/keptRefs.ts';
import type { RefManifest } from '../../../integrations/git/types.ts';

const draft = { id: 'drf_1', branch: 'try', head: null };

function manifest(refs: Record<string, string>): RefManifest {
  return { head: 'refs/heads/main', refs, shallow: [], filter: null };
}

test("a draft has its own branches, and sees its repository's branches as those of origin", () => {
  const saved = manifest({
    'refs/heads/main': 'm1',
    'refs/remotes/origin/main': 'm0',
    'refs/remotes/origin/other': 'o',
    'refs/tags/v1': 't',
    [draftRef('drf_1', 'heads/try')]: 'd',
    [draftRef('drf_1', 'tags/v1')]: 't2',
    [draftRef('drf_1', 'wip')]: 'w',
    [draftRef('drf_1', 'merge')]: 'j',
    [draftRef('drf_2', 'heads/else')]: 'e',
  });
  expect(asDraft({ version: 3, manifest: saved }, draft)).toEqual({
    version: 3,
    manifest: {
      ...manifest({
        'refs/heads/try': 'd',
        'refs/remotes/origin/main': 'm1',
        'refs/remotes/origin/other': 'o',
        'refs/tags/v1': 't2',
        'refs/atrium/wip': 'w',
      }),
      head: 'refs/heads/try',
    },
  });
});

test("if branch names conflict, the repository's own branches stay", () => {
  const saved = manifest({
    'refs/heads/a/b': '1',
    'refs/heads/c': '2',
    'refs/remotes/origin/a': '3',
    'refs/remotes/origin/c/d': '4',
    'refs/remotes/origin/a/c': '5',
  });
  expect(asDraft({ version: 1, manifest: saved }, draft).manifest.refs).toEqual({
    'refs/remotes/origin/a/b': '1',
    'refs/remotes/origin/c': '2',
    'refs/remotes/origin/a/c': '5',
  });
});

test("if tag names conflict, the draft's own tags stay", () => {
  const saved = manifest({
    'refs/tags/v1': '1',
    'refs/tags/v2/rc': '2',
    'refs/tags/v3': '3',
    [draftRef('drf_1', 'tags/v1/rc')]: '4',
    [draftRef('drf_1', 'tags/v2')]: '5',
    [draftRef('drf_2', 'tags/v3/rc')]: '6',
  });
  expect(asDraft({ version: 1, manifest: saved }, draft).manifest.refs).toEqual({
    'refs/tags/v1/rc': '4',
    'refs/tags/v2': '5',
    'refs/tags/v3': '3',
  });
});

test('a ref that moves in a draft moves its kept ref', () => {
  const long = `refs/heads/${'x'.repeat(230)}`;
  const saved = manifest({
    'refs/tags/v1': 't',
    [draftRef('drf_1', 'heads/try')]: 'd',
    [draftRef('drf_1', 'wip')]: 'w',
  });
  const moves = [
    { name: 'refs/heads/try', from: 'd', to: 'e' },
    { name: 'refs/heads/new', from: null, to: 'n' },
    { name: 'refs/atrium/wip', from: 'w', to: null },
    // The repository keeps its own tag.
    { name: 'refs/tags/v1', from: 't', to: null },
    { name: long, from: null, to: 'x' },
  ];
  const kept = [
    { name: draftRef('drf_1', 'heads/try'), from: 'd', to: 'e' },
    { name: draftRef('drf_1', 'heads/new'), from: null, to: 'n' },
    { name: draftRef('drf_1', 'wip'), from: 'w', to: null },
  ];
  const left = [long];
  expect(movesOfDraft({ refs: moves, head: 'refs/heads/try' }, saved, 'drf_1')).toEqual({ moves: kept, left });
  // If the branch cannot be kept, its commit is kept as a detached head.
  const head = { name: draftRef('drf_1', 'head'), from: null, to: 'x' };
  expect(movesOfDraft({ refs: moves, head: long }, saved, 'drf_1')).toEqual({ moves: [...kept, head], left });
});

test('a detached commit has a kept ref while it is checked out', () => {
  const [head, other] = ['1'.repeat(40), '2'.repeat(40)];
  const [saved, name] = [manifest({ [draftRef('drf_1', 'heads/try')]: 'd' }), draftRef('drf_1', 'head')];
  const moves = (now: string, of = saved) => movesOfDraft({ refs: [], head: now }, of, 'drf_1').moves;
  expect(moves('refs/heads/try')).toEqual([]);
  expect(moves(head)).toEqual([{ name, from: null, to: head }]);
  const detached = manifest({ ...saved.refs, [name]: head });
  expect(moves(head, detached)).toEqual([]);
  expect(moves(other, detached)).toEqual([{ name, from: head, to: other }]);
  expect(moves('refs/heads/try', detached)).toEqual([{ name, from: head, to: null }]);

  const seen = (of: RefManifest, row: string | null) =>
    asDraft({ version: 1, manifest: of }, { ...draft, head: row }).manifest;
  expect(seen(detached, 'refs/heads/try')).toMatchObject({ head, refs: { 'refs/heads/try': 'd' } });
  expect(seen(saved, 'refs/heads/else').head).toBe('refs/heads/else');
  // A commit without a kept ref cannot be checked out again.
  expect(seen(saved, head).head).toBe('refs/heads/try');
});

test('users without access to a draft see none of its kept refs', () => {
  const [own, other] = [draftRef('drf_1', 'wip'), draftRef('drf_2', 'wip')];
  const saved = manifest({ 'refs/heads/main': 'm', [own]: 'w', [other]: 'v' });
  expect(withoutKept(saved, [own]).refs).toEqual({ 'refs/heads/main': 'm', [own]: 'w' });
});
