import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { GitConfig } from '../../config/git.ts';
import { loadConfig } from '../../config/index.ts';
import { type EgressDecision, EgressGuard } from '../../integrations/egress/guard.ts';
import { startEgressProxy } from '../../integrations/egress/startEgressProxy.ts';
import { createGitMirrors, type GitMirrorsDeps } from '../../integrations/git/createGitMirrors.ts';
import type {
  GitHooks,
  GitMirrors,
  MirrorRecords,
  RepositoryRef,
  SavedMirror,
  StoredBundle,
} from '../../integrations/git/types.ts';
import { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { stackEnvironment } from '../support/environment.ts';
import { temporaryFolder } from '../support/folders.ts';
import { type GitServer, startGitServer } from '../support/gitServer.ts';

/** Keeps the rows about mirrors in memory. */
export class RecordsInMemory implements MirrorRecords {
  readonly saved = new Map<string, SavedMirror>();
  readonly planned: string[] = [];
  /** Simulates the end of the process before this step. */
  endsBefore: 'plan' | 'save' | undefined;
  /** Called before `current` answers. */
  beforeCurrent: (ref: RepositoryRef) => Promise<void> = async () => undefined;
  /** Called before `save` decides. */
  beforeSave: () => Promise<void> = async () => undefined;

  async current(ref: RepositoryRef): Promise<SavedMirror | undefined> {
    await this.beforeCurrent(ref);
    return structuredClone(this.saved.get(ref.itemId));
  }

  async plan(_ref: RepositoryRef, { objectKey }: StoredBundle): Promise<AsyncDisposable> {
    if (this.endsBefore === 'plan') throw new Error('ended');
    this.planned.push(objectKey);
    return { async [Symbol.asyncDispose]() {} };
  }

  async room(): Promise<number> {
    return Number.POSITIVE_INFINITY;
  }

  async save(ref: RepositoryRef, next: Parameters<MirrorRecords['save']>[1]): Promise<boolean> {
    if (this.endsBefore === 'save') throw new Error('ended');
    await this.beforeSave();
    const now = this.saved.get(ref.itemId);
    if ((now?.version ?? 0) !== next.version - 1) return false;
    const earlier = next.replacesAll ? [] : (now?.bundles ?? []);
    this.saved.set(
      ref.itemId,
      structuredClone({
        version: next.version,
        manifest: next.manifest,
        bundles: next.bundle === null ? earlier : [...earlier, next.bundle],
      }),
    );
    return true;
  }
}

export interface MirrorsWorld extends AsyncDisposable {
  server: GitServer;
  /** The variables with which another process can use the same parts. */
  environment: Record<string, string | undefined>;
  mirrors: GitMirrors;
  records: RecordsInMemory;
  decisions: EgressDecision[];
  dir: string;
  /** Addresses that the guard resolves names to. Includes the server's. */
  names: Record<string, string[]>;
  ref(): RepositoryRef;
  hooks(more?: Partial<GitHooks>): GitHooks;
  /** Mirrors with other settings, another folder or other rows, on the same store. */
  another(
    settings?: Record<string, string>,
    limits?: Partial<GitConfig>,
    more?: Partial<Pick<GitMirrorsDeps, 'freeSpace' | 'records'>>,
  ): GitMirrors;
  folderOf(ref: RepositoryRef): string;
  /** Simulates the loss of the machine by emptying its folder. */
  loseMachine(): void;
}

/** A git server, the real egress proxy, the real object store, and mirrors in their own folder. */
export async function buildMirrors(settings: Record<string, string> = {}): Promise<MirrorsWorld> {
  const folder = temporaryFolder();
  const server = await startGitServer(folder);
  const dir = join(folder, 'mirrors');
  const environment = {
    ...stackEnvironment(),
    ATRIUM_ENV: 'test',
    ATRIUM_MASTER_KEY: randomBytes(32).toString('base64'),
    ATRIUM_GIT_DIR: dir,
    ATRIUM_GIT_CA_FILE: server.caFile,
    ...settings,
  };
  const config = loadConfig(environment);
  const names: Record<string, string[]> = {
    [server.host]: ['127.0.0.1'],
    'other.example': ['127.0.0.1'],
    'rebound.example': ['127.0.0.1'],
  };
  const guard = new EgressGuard({
    allowInternal: [`${server.host}:${server.port}`, `other.example:${server.port}`],
    resolve: async (host) => names[host] ?? [],
  });
  const proxy = await startEgressProxy({ guard });
  const storage = new ObjectStore(config.storage);
  const records = new RecordsInMemory();
  const decisions: EgressDecision[] = [];
  const another: MirrorsWorld['another'] = (more = {}, limits = {}, deps = {}) =>
    createGitMirrors({
      records,
      ...deps,
      config: { git: { ...loadConfig({ ...environment, ...more }).git, ...limits } },
      storage,
      proxy,
      maxChain: 5,
      ownerOf: async () => ({
        purpose: 'git',
        policy: { allow: [], deny: ['denied.example'] },
        record: async (decision) => void decisions.push(decision),
      }),
    });
  return {
    server,
    environment,
    mirrors: another(),
    records,
    decisions,
    dir,
    names,
    ref: () => ({ spaceId: 'spc_1', itemId: `itm_${randomBytes(8).toString('hex')}` }),
    hooks: (more = {}) => ({ signal: new AbortController().signal, ...more }),
    another,
    folderOf: ({ itemId }) => join(dir, itemId),
    loseMachine: () => rmSync(dir, { recursive: true, force: true }),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
      storage.close();
    },
  };
}
