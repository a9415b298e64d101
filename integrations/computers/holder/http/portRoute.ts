import type { Duplex } from 'node:stream';
import { DomainError } from '../../../../base/errors.ts';
import type { AgentRequest } from '../../protocol/agentRequests.ts';
import { join } from '../../protocol/channelStream.ts';
import type { Agent } from '../agent.ts';
import { notFoundHere, refuseUpgrade, switching } from './answers.ts';

const dialDeadlineMs = 15_000;

const longestSocketPath = 107;

/** Joins a connection with a port or a unix socket inside the computer. Settles when the connection is over. */
export async function portRoute(agent: Agent, path: string[], socket: Duplex, head: Buffer): Promise<void> {
  try {
    const request = requestOf(path);
    const gone = new AbortController();
    socket.once('close', () => gone.abort());
    const { stream } = await agent.open(request, {
      deadlineMs: dialDeadlineMs,
      signal: gone.signal,
      send: () => undefined,
    });
    socket.write(switching);
    if (head.length > 0) socket.unshift(head);
    join(stream, socket);
    await new Promise((resolve) => socket.once('close', resolve));
  } catch (error) {
    refuseUpgrade(socket, error);
  }
}

function requestOf([first, text = '', more]: string[]): AgentRequest {
  if (more !== undefined) throw notFoundHere();
  if (first === 'sockets') {
    if (!text.startsWith('/') || text.includes('\0') || Buffer.byteLength(text) > longestSocketPath) {
      throw new DomainError('unprocessable', 'PATH_INVALID', 'The path is invalid.');
    }
    return { kind: 'socket', path: text };
  }
  if (first !== 'ports') throw notFoundHere();
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65_535) {
    throw new DomainError('unprocessable', 'PORT_INVALID', 'A port is a number from 1 to 65535.');
  }
  return { kind: 'port', port };
}
