import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Environment } from '../../../config/index.ts';
import { operationModels } from '../../../models/operations/operation.ts';
import { actorWorkflowId, operationWorkflowId } from '../../../temporal/workflowIds.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildComputer } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { gitOf, localGitServer, remoteRepository } from '../../builders/repository.ts';
import { shutDownHost } from '../../support/computerPrograms.ts';
import type { GitServer } from '../../support/gitServer.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';
import type { Scenario } from './scenario.ts';

export const gitScenarios: Scenario[] = [
  withServer('repository/cloned', async ({ git, url }) => {
    const { id } = (await git.clone({ url })).body;
    await git.cloned(id);
    return actorWorkflowId('repository', id);
  }),
  withServer('repository/retried', async ({ git, server, url }) => {
    server.requires = 'nobody:knows';
    const { id } = (await git.clone({ url })).body;
    await git.cloned(id);
    server.reset();
    await git.retry(id);
    await git.cloned(id);
    return actorWorkflowId('repository', id);
  }),
  // There is no host for the computer here.
  withServer('repository/changeFailed', async ({ git, url }) => {
    const { id } = (await git.clone({ url })).body;
    await git.cloned(id);
    await git.send('POST', `/git/${id}/branch`, { name: 'try', checkout: true });
    return actorWorkflowId('repository', id);
  }),
  withServer('repository/draftFailed', async ({ git, url }) => {
    const { id } = (await git.clone({ url })).body;
    await git.cloned(id);
    await git.send('POST', `/drive/drafts/${id}/draft`, { branch: 'try' });
    return actorWorkflowId('repository', id);
  }),
  withDraft('repository/draftSaved', { ATRIUM_GIT_DRAFT_SAVE_SECONDS: '1' }, async ({ saved }) => void (await saved())),
  withDraft('repository/draftMerged', {}, async ({ git, drafts, draftId }) => {
    expectOk(await git.send('POST', `${drafts}/merge`, { draftId, message: 'Two' }));
  }),
  withDraft('repository/draftDiscarded', {}, async ({ git, drafts, draftId }) => {
    expectOk(await git.send('DELETE', `${drafts}/${draftId}`));
  }),
  withServer('repository/calledOff', async ({ user, git, server, url }) => {
    const held = hold(server);
    const { id, operationId } = (await git.clone({ url })).body;
    await held();
    await user.fetch(`/api/operations/${operationId}/cancel`, { method: 'POST' });
    await git.cloned(id);
    return actorWorkflowId('repository', id);
  }),
  withServer('repository/removed', async ({ user, git, server, url }) => {
    const held = hold(server);
    const { id, operationId } = (await git.clone({ url })).body;
    await held();
    await user.fetch(`${git.space}/drive/items/${id}?permanent=true`, { method: 'DELETE' });
    await waitFor('the operation to end', async () => (await git.operation(operationId ?? '')).status !== 'running');
    return actorWorkflowId('repository', id);
  }),
  withServer('purgeDeleted/spaceWithRepository', async ({ product, user, git, server, url }) => {
    const held = hold(server);
    await git.clone({ url });
    await held();
    await user.fetch(git.space, { method: 'DELETE' });
    const where = { kind: 'deleteSpace', spaceId: user.spaceId };
    const { Operation } = operationModels(product.environment.database);
    const { id } = await Operation.findOne({ where, rejectOnEmpty: true });
    return operationWorkflowId('deleteSpace', id);
  }),
];

interface Walk {
  product: TestProduct;
  user: ChatUser;
  git: ReturnType<typeof gitOf>;
  server: GitServer;
  url: string;
}

/** A scenario with its own git server. `walk` returns the id of the workflow. */
function withServer(name: string, walk: (walk: Walk) => Promise<string>): Scenario {
  let server: GitServer;
  return {
    name,
    async environment(): Promise<Environment> {
      const local = await localGitServer();
      server = local.server;
      return { ...hurriedSweeper, ...local.environment };
    },
    async run(product, user) {
      const git = gitOf(user);
      try {
        return await walk({ product, user, git, server, url: remoteRepository(server).url });
      } finally {
        await server[Symbol.asyncDispose]();
      }
    },
  };
}

/** A scenario of a draft in which a file has changed. It has a host for the computer. */
function withDraft(
  name: string,
  settings: Environment,
  walk: (walk: Walk & { drafts: string; draftId: string; saved(): Promise<unknown> }) => Promise<void>,
): Scenario {
  let dir: string;
  const { environment, ...scenario } = withServer(name, async (all) => {
    const { product, user, git, url } = all;
    const { id } = (await git.clone({ url })).body;
    await git.cloned(id);
    const drafts = `/drive/drafts/${id}`;
    const { body } = await git.send<{ id: string }>('POST', `${drafts}/draft`, { branch: 'try' });
    const find = async () => {
      const { data } = (await git.send<{ data: { treePath: string; savedAt: string | null }[] }>('GET', drafts)).body;
      return data[0];
    };
    const computer = await buildComputer(product, user);
    await computer.exec(`cd ${(await find())?.treePath} && echo two > a.txt`);
    const saved = () => waitFor('the draft to be saved', async () => (await find())?.savedAt ?? undefined);
    await walk({ ...all, drafts, draftId: body.id, saved });
    return actorWorkflowId('repository', id);
  });
  return {
    ...scenario,
    async environment() {
      dir = mkdtempSync(join(tmpdir(), 'atrium-computers-'));
      // The users of the computers have to enter the folder.
      chmodSync(dir, 0o755);
      const others = typeof environment === 'function' ? await environment() : environment;
      return { ...others, ATRIUM_COMPUTERS: 'auto', ATRIUM_COMPUTERS_DIR: dir, ...settings };
    },
    async close() {
      await shutDownHost(dir);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function expectOk({ status, text }: { status: number; text: string }): void {
  if (status >= 300) throw new Error(`It answered ${status}: ${text}`);
}

/**
 * Makes the server accept requests for a pack without answering them. The returned function waits for such a request.
 */
function hold(server: GitServer): () => Promise<unknown> {
  let isHeld = false;
  server.interfere = (req) => {
    isHeld ||= req.url?.endsWith('/git-upload-pack') ?? false;
    return isHeld;
  };
  return () => waitFor('the clone to be held', () => isHeld);
}
