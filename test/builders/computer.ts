import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Environment } from '../../config/index.ts';
import { shutDownHost } from '../support/computerPrograms.ts';
import type { ChatUser } from './chat.ts';
import { buildProduct, type TestProduct } from './product.ts';

/** An Atrium that hosts computers. They end with it. */
export const buildHostingProduct = (
  overrides: Environment | ((providerUrl: string) => Environment) = {},
): Promise<TestProduct> =>
  withComputers((ofComputers) =>
    buildProduct((providerUrl) => ({
      ...(typeof overrides === 'function' ? overrides(providerUrl) : overrides),
      // Comes last, to override the folder of the test run's stack.
      ...ofComputers,
    })),
  );

/** Builds an Atrium with variables by which it hosts computers, which end with it. */
export async function withComputers<P extends TestProduct>(
  build: (ofComputers: Environment) => Promise<P>,
): Promise<P> {
  const dir = mkdtempSync(join(tmpdir(), 'atrium-computers-'));
  // The computers' own users must pass through this folder.
  chmodSync(dir, 0o755);
  const product = await build({
    ATRIUM_COMPUTERS: 'auto',
    ATRIUM_COMPUTERS_DIR: dir,
    ATRIUM_COMPUTERS_IMAGE_MIB: '2048',
  });
  const { close } = product;
  return Object.assign(product, {
    async close() {
      await close();
      await shutDownHost(dir);
      rmSync(dir, { recursive: true, force: true });
    },
  });
}

/** The default computer of a new user's space, over the API. */
export interface TestComputer {
  user: ChatUser;
  id: string;
  /** `/api/spaces/{spaceId}/computers/{computerId}` */
  path: string;
  /** A response with any status. */
  fetch: ChatUser['fetch'];
  /** The body of a JSON response with this status. */
  expect<T = Record<string, unknown>>(status: number, method: string, path: string, body?: unknown): Promise<T>;
  exec(command: string, more?: Record<string, unknown>): Promise<ExecResult>;
}

export interface ExecResult {
  processId: string;
  state: string;
  exitCode: number | null;
  signal: string | null;
  killedBy: string | null;
  stdout: string;
  stderr: string;
  outputBytes: number;
  truncated: boolean;
}

export async function buildComputer(product: TestProduct, user?: ChatUser): Promise<TestComputer> {
  const owner = user ?? (await product.user());
  const status = `/api/spaces/${owner.spaceId}/computers/status`;
  const { computerId: id } = await owner.get<{ computerId: string }>(status);
  return computerOf(owner, id);
}

/** A computer, as this user reaches it. */
export function computerOf(user: ChatUser, id: string, spaceId = user.spaceId): TestComputer {
  const path = `/api/spaces/${spaceId}/computers/${id}`;
  const computer: TestComputer = {
    user,
    id,
    path,
    fetch: (rest, init) => user.fetch(path + rest, init),
    async expect<T>(expected: number, method: string, rest: string, body?: unknown) {
      const response = await computer.fetch(rest, { method, body });
      const text = await response.text();
      if (response.status !== expected) throw new Error(`${method} ${rest} answered ${response.status}: ${text}`);
      return (text === '' ? undefined : JSON.parse(text)) as T;
    },
    exec: (command, more) => computer.expect<ExecResult>(200, 'POST', '/exec', { command, ...more }),
  };
  return computer;
}
