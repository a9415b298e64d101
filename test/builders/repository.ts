import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeFailure } from '../../api/frame/failures.ts';
import { failureOf } from '../../api/frame/operationAnswer.ts';
import type { operations } from '../../api/generated/types.gen.ts';
import type { Environment } from '../../config/index.ts';
import type { Operation } from '../../models/operations/operation.ts';
import { commitFiles } from '../support/gitRepository.ts';
import { type GitServer, startGitServer } from '../support/gitServer.ts';
import { waitFor } from '../support/waitFor.ts';
import type { ChatUser } from './chat.ts';
import { buildDrive, type TestDrive } from './drive.ts';

export type RepositoryBody = operations['getRepository']['responses'][200]['content']['application/json'];
export type OperationBody = operations['getOperation']['responses'][200]['content']['application/json'];

/** An Atrium with its own bucket, and a git server from which it may clone. */
export interface TestGit extends TestDrive {
  server: GitServer;
}

export async function buildGit(overrides: Environment = {}): Promise<TestGit> {
  const { server, environment } = await localGitServer();
  const product = await buildDrive({
    ...environment,
    ...overrides,
  });
  const { close } = product;
  return Object.assign(product, {
    server,
    async close() {
      await close();
      await server[Symbol.asyncDispose]();
    },
  });
}

/** A git server on this machine, and the variables that let an Atrium clone from it. */
export async function localGitServer(): Promise<{ server: GitServer; environment: Environment }> {
  const folder = mkdtempSync(join(tmpdir(), 'atrium-git-'));
  const server = await startGitServer(folder, 'localhost');
  const close = server[Symbol.asyncDispose].bind(server);
  server[Symbol.asyncDispose] = async () => {
    await close();
    rmSync(folder, { recursive: true, force: true });
  };
  const environment = {
    ATRIUM_GIT_CA_FILE: server.caFile,
    ATRIUM_EGRESS_ALLOW_INTERNAL: `localhost:${server.port}`,
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2',
  };
  return { server, environment };
}

let count = 0;

/** A repository on the server with one commit. */
export function remoteRepository(server: GitServer, files: Record<string, string> = { 'a.txt': 'a' }) {
  count += 1;
  const name = `tool${count}.git`;
  const bare = server.create(name);
  const commit = commitFiles(bare, files);
  return { name: `tool${count}`, bare, commit, url: server.url(name) };
}

/** A user's requests about repositories, over the API. */
export function gitOf(user: ChatUser) {
  const space = `/api/spaces/${user.spaceId}`;
  async function send<T = RepositoryBody>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ) {
    const response = await user.fetch(space + path, {
      method,
      ...(body !== undefined && { body }),
      ...(headers !== undefined && { headers }),
    });
    const text = await response.text();
    const json = (text === '' ? {} : JSON.parse(text)) as T & { code?: string; detail?: string };
    // On a busy machine the operation may take longer than the request waits.
    if (response.status === 202) return ended<T>((json as unknown as OperationBody).id);
    return { status: response.status, body: json, code: json.code, text };
  }
  /** Waits for the operation, and returns the answer that the request would have got. */
  async function ended<T>(operationId: string) {
    const { kind, error, result } = await waitFor('the end of an operation', async () => {
      const operation = await user.get<OperationBody>(`/api/operations/${operationId}`);
      return operation.status === 'running' ? undefined : operation;
    });
    const failed = error && { kind, errorCode: error.code, errorDetail: error.detail };
    const { status, ...body } = failed ? describeFailure(failureOf(failed as Operation)) : { status: 200, ...result };
    const json = body as unknown as T & { code?: string; detail?: string };
    return { status, body: json, code: json.code, text: JSON.stringify(body) };
  }
  const get = async (id: string) => (await send('GET', `/git/${id}`)).body;
  return {
    space,
    send,
    get,
    clone: (body: Record<string, unknown>, headers?: Record<string, string>) =>
      send('POST', '/git/clone', body, headers),
    retry: (id: string, body?: unknown) => send<{ id: string }>('POST', `/drive/retry-clone/${id}`, body),
    /** The repository, once its clone has ended. */
    cloned: (id: string): Promise<RepositoryBody> =>
      waitFor('the end of a clone', async () => {
        const repository = await get(id);
        return repository.status === 'cloning' ? undefined : repository;
      }),
    operation: (id: string) => user.get<OperationBody>(`/api/operations/${id}`),
  };
}
