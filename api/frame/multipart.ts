import type { Readable } from 'node:stream';
import { Busboy, type BusboyConfig, type BusboyInstance } from '@fastify/busboy';
import type { Request, RequestHandler } from 'express';
import { DomainError } from '../../base/errors.ts';
import { textFault } from './textFaults.ts';

/** A file of a multipart body, as it arrives. Its bytes must be read to the end. */
export interface FilePart {
  /** The name that the client gave it, without any folder. */
  fileName: string;
  /** A chunk's memory is freed when the next chunk is requested. */
  bytes: AsyncIterable<Buffer>;
  /** The fields that came before it. */
  fields: Readonly<Record<string, string>>;
}

export interface MultipartLimits {
  /** The accepted fields. Any other is refused. */
  fields: readonly string[];
  maxFiles: number;
  /** Gets all fields, for an operation whose clients send some of them after the file. */
  allFields?: Record<string, string>;
}

const fileField = 'file';
const maxFieldBytes = 16 * 1024;
const maxFields = 200;
/** How much of a refused body is read and discarded, so that the client sees the answer. */
const discardBytes = 64 * 1024 * 1024;
const discardMs = 10_000;

/**
 * Reads a `multipart/form-data` body as it streams in. `onFile` gets one file at a time, and its reading speed sets the
 * pace. Resolves with the number of files when the body is complete and well-formed. Otherwise it rejects after
 * `onFile` has ended. A file whose body breaks off ends with an error, never as if it were whole.
 */
export async function readMultipart(
  req: Request,
  limits: MultipartLimits,
  onFile: (part: FilePart) => Promise<void>,
): Promise<number> {
  const parser = createParser(req, limits);
  const fields: Record<string, string> = limits.allFields ?? {};
  /** The last field that no file has followed yet. */
  let pending: string | undefined;
  let files = 0;
  let current: Readable | undefined;
  let working = Promise.resolve();
  const failed = new AbortController();
  try {
    await new Promise<void>((resolve, reject) => {
      parser.on('field', (name, value, nameTruncated, valueTruncated) => {
        const fault = partFault(name) ?? partFault(value);
        if (fault !== undefined) return reject(badField(name.toWellFormed(), fault));
        if (nameTruncated || valueTruncated) return reject(badField(name, 'is too long'));
        if (!limits.fields.includes(name)) return reject(badField(name, 'is not accepted here'));
        fields[name] = value;
        pending = name;
      });
      parser.on('file', (name, stream, fileName) => {
        // The stream's reader gets its error, but there may be no reader yet.
        stream.on('error', () => undefined);
        if (failed.signal.aborted) return stream.resume();
        const fault = partFault(name) ?? partFault(fileName ?? '');
        if (fault !== undefined) return reject(badField('filename', fault));
        if (name !== fileField) {
          return reject(badField(name, `is not accepted here; send files in the field "${fileField}"`));
        }
        current = stream;
        files += 1;
        pending = undefined;
        const part = { fileName: fileName ?? '', bytes: bytesOf(stream), fields: { ...fields } };
        working = working.then(async () => {
          if (!failed.signal.aborted) await onFile(part);
        });
        working.catch(reject);
      });
      parser.on('filesLimit', () => reject(tooMany(`more than ${limits.maxFiles} files`)));
      parser.on('fieldsLimit', () => reject(tooMany(`more than ${maxFields} fields`)));
      parser.on('error', (error) => reject(malformed(error)));
      parser.on('finish', () => {
        // A field after the last file would seem to apply to that file if it were ignored.
        if (files > 0 && pending !== undefined && limits.allFields === undefined)
          reject(badField(pending, 'comes after the last file; send fields before files'));
        else resolve();
      });
      req.on('error', () => reject(brokenOff()));
      req.on('close', () => {
        if (!req.complete) reject(brokenOff());
      });
      req.pipe(parser);
    });
    await working;
    return files;
  } catch (error) {
    failed.abort();
    req.unpipe(parser);
    current?.destroy(error instanceof Error ? error : undefined);
    await working.catch(() => undefined);
    throw error;
  }
}

/** The bytes of a file. If the body ends within the file, the error is the body's and not the store's. */
async function* bytesOf(file: Readable): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of file) {
      yield chunk;
      release(chunk);
    }
  } catch (error) {
    throw error instanceof DomainError ? error : malformed(error);
  }
}

/**
 * Frees a chunk's memory at once, unless it shares the memory with the body's next or last bytes. Otherwise the garbage
 * collector would scan the process's whole heap for each 64 MiB of chunks, which is most of what an upload costs.
 */
function release({ buffer, byteLength }: Buffer<ArrayBuffer>): void {
  if (byteLength === buffer.byteLength) buffer.transfer(0);
}

function createParser(req: Request, { maxFiles }: MultipartLimits): BusboyInstance {
  try {
    return new Busboy({
      headers: req.headers as BusboyConfig['headers'],
      limits: { files: maxFiles, fields: maxFields, fieldSize: maxFieldBytes },
    });
  } catch (error) {
    throw malformed(error);
  }
}

/**
 * A route that reads a stream. When it refuses, it reads and discards the rest of the body for a while, so that the
 * client sees the answer and not a reset connection.
 */
export function streamingRoute(route: RequestHandler): RequestHandler {
  return async (req, res, next) => {
    try {
      await route(req, res, next);
    } catch (error) {
      await discardRest(req);
      if (!req.complete) res.setHeader('connection', 'close');
      throw error;
    }
  };
}

/** Reads until the end of the body or a limit. A client that is still sending would not see an earlier answer. */
async function discardRest(req: Request): Promise<void> {
  if (req.complete || req.destroyed) return;
  let left = discardBytes;
  const patience = AbortSignal.timeout(discardMs);
  await new Promise<void>((resolve) => {
    req.on('data', (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) resolve();
    });
    for (const event of ['end', 'close', 'error']) req.once(event, () => resolve());
    patience.addEventListener('abort', () => resolve());
    req.resume();
  });
  req.pause();
}

/** Invalid UTF-8 in the body was decoded to replacement characters. Clients never send those on purpose. */
function partFault(text: string): string | undefined {
  return text.includes('\ufffd') ? 'is not valid UTF-8' : textFault(text);
}

function malformed(cause: unknown): DomainError {
  return new DomainError(
    'invalid',
    'INVALID_MULTIPART',
    'The body is not valid multipart/form-data, or it is incomplete.',
    {
      cause,
    },
  );
}

function brokenOff(): DomainError {
  return new DomainError('invalid', 'BODY_BROKEN_OFF', 'The connection ended before the whole body arrived.');
}

function badField(name: string, detail: string): DomainError {
  return new DomainError('invalid', 'INVALID_REQUEST', `The field "${name.slice(0, 100)}" ${detail}.`, {
    errors: [{ pointer: `/${name.slice(0, 100)}`, detail }],
  });
}

function tooMany(what: string): DomainError {
  return new DomainError('tooLarge', 'TOO_MANY_PARTS', `The body has ${what}.`);
}
