import type { operations } from '../../api/generated/types.gen.ts';
import type { Environment } from '../../config/index.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { buildChatUser } from './chat.ts';
import { buildComputer, withComputers } from './computer.ts';
import { buildGit, gitOf, remoteRepository, type TestGit } from './repository.ts';

export type StatusBody = operations['getRepositoryStatus']['responses'][200]['content']['application/json'];

/** An Atrium with a git server, which hosts computers. They end with it. */
export const buildHostedGit = (overrides: Environment = {}): Promise<TestGit> =>
  withComputers((ofComputers) => buildGit({ ...hurriedSweeper, ...ofComputers, ...overrides }));

/** A new user's cloned repository, with the computer for its files. `prepare` changes its remote first. */
export async function buildCloned(
  product: TestGit,
  { files = { 'a.txt': 'one\n' }, prepare, ...how }: ClonedOptions = {},
) {
  const user = await buildChatUser(product);
  const git = gitOf(user);
  const remote = remoteRepository(product.server, files);
  prepare?.(remote.bare);
  const { id } = (await git.clone({ url: remote.url, ...how })).body;
  const repository = await git.cloned(id);
  const computer = await buildComputer(product, user);
  return { user, git, remote, id, repository, computer, tree: treeOf(git, id) };
}

interface ClonedOptions {
  files?: Record<string, string>;
  prepare?: (bare: string) => void;
  filter?: string;
  depth?: number;
}

/** Like {@link buildCloned}, with its files checked out. */
export async function buildCheckedOut(product: TestGit, options?: ClonedOptions) {
  const all = await buildCloned(product, options);
  expect(await all.tree.post('checkout', {})).toMatchObject({ status: 200, body: { output: '' } });
  return all;
}

/** Requests about the working tree of a repository, over the API. */
export function treeOf(git: ReturnType<typeof gitOf>, itemId: string) {
  const post = <T = { output: string }>(what: string, body: unknown, headers?: Record<string, string>) =>
    git.send<T>('POST', `/git/${itemId}/${what}`, body, headers);
  const get = <T>(what: string) => git.send<T>('GET', `/git/${itemId}/${what}`);
  return { post, get, status: () => get<StatusBody>('status') };
}
