import type { Computer } from '../../models/computers/computer.ts';
import type { HostDeps } from './deps.ts';

/**
 * Starts a computer as its row orders it, or lets it go on where it is paused. `confirm` is asked last, when its
 * variables have been opened, which may take long: what it throws is thrown.
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
