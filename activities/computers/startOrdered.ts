import type { Computer } from '../../models/computers/computer.ts';
import type { HostDeps } from './deps.ts';

/**
 * Starts a computer as its row orders, or resumes it if it is paused. Calls `confirm` last, because opening the
 * variables may take long. Rejects if `confirm` does.
 */
export async function startOrdered(
  { host, computers, environment }: Pick<HostDeps, 'host' | 'computers' | 'environment'>,
  computer: Computer,
  confirm?: () => Promise<void>,
): Promise<void> {
  const hosted = await host.inspect(computer.id);
  if (hosted.state === 'paused' && hosted.generation === computer.generation) return host.resume(computer.id);
  const order = await computers.orderOf(computer);
  await confirm?.();
  await host.start({ ...order, env: { ...environment, ...order.env } });
}
