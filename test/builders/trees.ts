import { randomBytes } from 'node:crypto';
import { createGitTrees } from '../../integrations/git/trees/createGitTrees.ts';
import type { TreeWork } from '../../integrations/git/treeTypes.ts';
import type { CloneSource, RepositoryRef } from '../../integrations/git/types.ts';
import { commitFiles } from '../support/gitRepository.ts';
import { buildHost, runOn, startComputer } from './host.ts';
import type { MirrorsWorld } from './mirrors.ts';

const { signal } = new AbortController();

/** A computer on its own host, with trees of repositories cloned by mirrors. Dispose of it. */
export async function buildTrees(world: MirrorsWorld, options: Parameters<typeof buildHost>[0]) {
  const built = await buildHost(options);
  const computer = await startComputer(built.host);
  const treesWith = (config: { maxRefs: number }) =>
    createGitTrees({ work: ({ computerId }) => built.host.work(computerId) }, config);
  const trees = treesWith({ maxRefs: 1_000 });
  const run = async (command: string) => {
    const { own } = await built.host.work(computer.computerId);
    return (await runOn(own, command)).stdout;
  };
  const restart = async () => {
    const { spec } = computer;
    spec.generation += 1;
    await built.host.stop(computer.computerId);
    await built.host.start(spec);
  };

  /** A cloned repository with its tree. Each call of `work` is another order. */
  async function filled(
    files: Record<string, string> = { 'a.txt': 'one\n' },
    clone: Pick<CloneSource, 'depth' | 'filter'> = {},
  ) {
    const ref: RepositoryRef = world.ref();
    const name = `${ref.itemId}.git`;
    const bare = world.server.create(name);
    commitFiles(bare, { 'first.txt': '1' });
    commitFiles(bare, files);
    const source = { url: world.server.url(name), ...clone };
    await world.mirrors.clone(ref, source, world.hooks());
    const path = `repositories/${ref.itemId}`;
    const work = (): TreeWork => ({
      ...ref,
      computerId: computer.computerId,
      path,
      workId: `op_${randomBytes(8).toString('hex')}`,
    });
    const { bundle, ...state } = await world.mirrors.bundleFor(ref, [], signal);
    await using made = bundle;
    const filling = work();
    await trees.fill(filling, made, state, { url: source.url }, signal);
    const save = async (tree = work()) => {
      const now = await world.mirrors.state(ref);
      if (now === undefined) throw new Error('Nothing is saved.');
      const out = await trees.bundleOut(tree, now, signal);
      return world.mirrors.receive(ref, out, signal);
    };
    const bring = async () => {
      await save();
      await world.mirrors.fetch(ref, source, world.hooks());
      const { bundle, ...now } = await world.mirrors.bundleFor(ref, await trees.tips(work(), signal), signal);
      await using brought = bundle;
      await trees.update(work(), brought, now, signal);
    };
    return { ref, bare, source, work, path, state, filling, save, bring };
  }

  const dispose = () => built[Symbol.asyncDispose]();
  return { built, computer, trees, treesWith, run, restart, filled, [Symbol.asyncDispose]: dispose };
}
