import type { IncomingMessage } from 'node:http';

/**
 * Ends a download when the store has sent nothing for `silenceMs` (at most twice that), although the reader has taken
 * all bytes that came. A slow reader does not count as silence.
 */
export function watchSilence(body: IncomingMessage, silenceMs: number): IncomingMessage {
  let seen = body.socket.bytesRead;
  const timer = setInterval(() => {
    const { bytesRead } = body.socket;
    const waits = body.readableLength === 0 && !body.complete;
    if (waits && bytesRead === seen)
      body.destroy(new Error('The object store has stopped in the middle of an object.'));
    seen = bytesRead;
  }, silenceMs);
  body.once('close', () => clearInterval(timer));
  return body;
}
