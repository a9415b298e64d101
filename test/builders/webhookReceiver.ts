import { createServer, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  headers: IncomingHttpHeaders;
  body: string;
}

/** A webhook receiver on loopback. It answers with the configured status and headers. */
export async function startReceiver() {
  const received: Received[] = [];
  const state: { status: number; headers: OutgoingHttpHeaders } = { status: 204, headers: {} };
  let held: (() => unknown)[] | undefined;
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      received.push({ headers: req.headers, body: Buffer.concat(chunks).toString('utf8') });
      // Status 0 closes the connection without an answer.
      if (state.status === 0) return res.destroy();
      const reply = () => res.writeHead(state.status, state.headers).end();
      if (held === undefined) reply();
      else held.push(reply);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    received,
    host,
    url: `http://${host}/hook`,
    answerWith(status: number, headers: OutgoingHttpHeaders = {}): void {
      Object.assign(state, { status, headers });
    },
    /** Holds back all answers until the returned function is called. */
    hold(): () => void {
      held = [];
      return () => {
        for (const reply of held ?? []) reply();
        held = undefined;
      };
    },
    async close(): Promise<void> {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
