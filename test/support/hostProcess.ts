import { createHost } from '../../integrations/computers/host/createHost.ts';
import type { Host, HostOptions } from '../../integrations/computers/host/host.ts';
import type { HostCall, HostReply } from '../builders/hostProcess.ts';

/**
 * A host in its own process, for tests that kill it or run it as another user. It takes calls from its parent process
 * and ends with it. Its computers go on, as when a worker is killed.
 */
const options = JSON.parse(process.argv[2] ?? '{}') as HostOptions;
const reply = (message: HostReply) => process.send?.(message);

let host: Host;
try {
  host = await createHost({ ...options, onEnd: (computerId, end) => reply({ ended: { computerId, end } }) });
} catch (error) {
  reply({ refused: describe(error) });
  process.exit(1);
}
process.on('disconnect', () => process.exit(0));
process.on('message', (call: HostCall) => void answer(call));
const { hostId, drivers, rights, limits } = host;
reply({ ready: { hostId, drivers, rights, limits } });

async function answer({ id, method, args }: HostCall): Promise<void> {
  try {
    const value = await (host[method] as (...given: unknown[]) => Promise<unknown>)(...args);
    reply({ id, value });
  } catch (error) {
    reply({ id, error: describe(error) });
  }
}

function describe(error: unknown): { code: string; message: string } {
  const { code = 'UNKNOWN', message } = error as { code?: string; message: string };
  return { code, message };
}
