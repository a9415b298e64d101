import type { Computer } from '../../models/computers/computer.ts';
import type { HostDeps } from './deps.ts';
import { type FillDeps, fillHome } from './fillHome.ts';

/**
 * Starts a computer as its row orders, or resumes it if it is paused. A home that was saved on another host is made here
 * first. Calls `confirm` last, because opening the variables may take long. Rejects if `confirm` does.
 */
export async function startOrdered(
  deps: FillDeps & Pick<HostDeps, 'computers' | 'environment'>,
  computer: Computer,
  { confirm, signal = new AbortController().signal }: { confirm?: () => Promise<void>; signal?: AbortSignal } = {},
): Promise<void> {
  const { host, computers, environment } = deps;
  const hosted = await host.inspect(computer.id);
  if (hosted.state === 'paused' && hosted.generation === computer.generation) return host.resume(computer.id);
  const order = await computers.orderOf(computer);
  await fillHome(deps, computer, order, { isKnown: hosted.state !== 'absent', signal });
  await confirm?.();
  await host.start({ ...order, env: { ...environment, ...order.env } });
}
