import type { Request, Response } from 'express';
import { DomainError } from '../../base/errors.ts';

/** The raw bytes of a body. Throws 413 `BODY_TOO_LARGE` and ends the connection without reading the rest. */
export function readRawBody(req: Request, res: Response, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const refuse = () => {
      req.off('data', take);
      req.pause();
      res.setHeader('connection', 'close');
      reject(new DomainError('tooLarge', 'BODY_TOO_LARGE', `The body has more than ${maxBytes} bytes.`));
    };
    const take = (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) refuse();
      else chunks.push(chunk);
    };
    if (Number(req.headers['content-length'] ?? 0) > maxBytes) return refuse();
    req.on('data', take);
    req.once('end', () => resolve(Buffer.concat(chunks)));
    req.once('error', reject);
    req.once('close', () =>
      reject(new DomainError('timeout', 'REQUEST_TIMEOUT', 'The request did not arrive in time.')),
    );
  });
}
