import { readFileSync } from 'node:fs';
import { loadConfig } from '../../config/index.ts';
import { EgressGuard } from '../../integrations/egress/guard.ts';
import { startEgressProxy } from '../../integrations/egress/startEgressProxy.ts';
import { createGitMirrors } from '../../integrations/git/createGitMirrors.ts';
import type { CloneSource, RepositoryRef } from '../../integrations/git/types.ts';
import { ObjectStore } from '../../integrations/storage/objectStore.ts';

/** A process that clones the repository described in a file, for tests that kill it. It does not save the clone. */
const { environment, ref, source, port } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as {
  environment: Record<string, string>;
  ref: RepositoryRef;
  source: CloneSource;
  port: number;
};
const config = loadConfig(environment);
const { hostname } = new URL(source.url);
const guard = new EgressGuard({ allowInternal: [`${hostname}:${port}`], resolve: async () => ['127.0.0.1'] });
const mirrors = createGitMirrors({
  config,
  proxy: await startEgressProxy({ guard }),
  storage: new ObjectStore(config.storage),
  records: {
    current: async () => undefined,
    plan: async () => ({ async [Symbol.asyncDispose]() {} }),
    room: async () => Number.POSITIVE_INFINITY,
    save: async () => true,
  },
  ownerOf: async () => ({ purpose: 'git', policy: { allow: [], deny: [] }, record: async () => undefined }),
});
await mirrors.clone(ref, source, { signal: new AbortController().signal });
