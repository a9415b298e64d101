import { join } from 'node:path';
import { isExecutable, type StackContext } from './context.ts';
import { type GoProgram, getProgram, shared } from './programs.ts';

/** A version of the module's branch `go`. The Go command can build only that branch. */
const gvisor: GoProgram = {
  name: 'runsc',
  title: 'gVisor',
  version: '0.0.0-20260905035102-160fafc42237',
  source: { module: 'gvisor.dev/gvisor/runsc' },
  buildTime: 'about 2 minutes on 2 cores',
};

/** The path of the `runsc` command: the machine's own, a cached one, or a new build. No start calls this by itself. */
export function getGvisor(context: Omit<StackContext, 'servicesDir' | 'ports' | 'bucket'>): Promise<string> {
  return getProgram(context, gvisor);
}

/** The cached `runsc`, if it was built before. */
export function cachedGvisor({ cacheDir }: Pick<StackContext, 'cacheDir'>): string | undefined {
  const cached = join(cacheDir, `${gvisor.name}-${gvisor.version}`);
  return isExecutable(cached) ? shared(cached) : undefined;
}
