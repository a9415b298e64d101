import type { Duplex } from 'node:stream';
import { DomainError } from '../../../models/errors.ts';
import { join } from '../agent/ports.ts';
import type { Agent } from './agent.ts';
import { notFoundHere, refuseUpgrade, switching } from './answers.ts';

const dialDeadlineMs = 15_000;

/** Joins a connection with a port inside the computer; settles when that is over. */
export async function portRoute(agent: Agent, path: string[], socket: Duplex, head: Buffer): Promise<void> {
  const [first, text = '', more] = path;
  const port = Number(text);
  try {
    if (first !== 'ports' || more !== undefined) throw notFoundHere();
    if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65_535) {
      throw new DomainError('unprocessable', 'PORT_INVALID', 'A port is a number from 1 to 65535.');
    }
    const gone = new AbortController();
    socket.once('close', () => gone.abort());
    const { stream } = await agent.open(
      { kind: 'port', port },
      { deadlineMs: dialDeadlineMs, signal: gone.signal, send: () => undefined },
    );
    socket.write(switching);
    if (head.length > 0) socket.unshift(head);
    join(stream, socket);
    await new Promise((resolve) => socket.once('close', resolve));
  } catch (error) {
    refuseUpgrade(socket, error);
  }
}
