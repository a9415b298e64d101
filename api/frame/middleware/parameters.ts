import type { Request, RequestHandler } from 'express';
import { DomainError } from '../../../base/errors.ts';
import type { Parameter, ScalarType } from '../contract.ts';
import { checkEncoding, textFault, wrongAt } from '../textFaults.ts';

/** Only one of each may be sent. A proxy in front of us may have read the other one. */
const singleHeaders = ['authorization', 'host', 'content-type', 'idempotency-key', 'last-event-id'];

/** Refuses a header that is sent twice, before anything reads it, and a URL with bytes that must be percent-encoded. */
export function plainHeaders(): RequestHandler {
  return (req, _res, next) => {
    const seen = new Set<string>();
    for (let at = 0; at < req.rawHeaders.length; at += 2) {
      const name = req.rawHeaders[at]?.toLowerCase() ?? '';
      if (seen.has(name)) throw repeatedHeader(name);
      if (singleHeaders.includes(name)) seen.add(name);
    }
    if (/[^\x21-\x7e]/.test(req.url)) throw new URIError('Not percent-encoded');
    next();
  };
}

function repeatedHeader(name: string): DomainError {
  const errors = [{ pointer: name, detail: 'is given more than once' }];
  return new DomainError('invalid', 'REPEATED_HEADER', `The header ${name} is given more than once. Send it once.`, {
    errors,
  });
}

/**
 * Checks the parameters of path, query and headers as the client wrote them, before they become numbers. The contract's
 * validator would read `1e3`, `0x10` and `Infinity` as numbers, as JavaScript does.
 */
export function plainParameters(): RequestHandler {
  return (req, _res, next) => {
    const query = req.url.indexOf('?');
    if (query !== -1) checkEncoding(req.url.slice(query + 1));
    for (const [name, value] of Object.entries(req.query)) {
      for (const text of [name, value].flat()) refuse(textFault(String(text)), name);
    }
    for (const parameter of req.operation?.parameters ?? []) check(parameter, sentFor(req, parameter));
    next();
  };
}

function sentFor(req: Request, { in: place, name }: Parameter): unknown {
  if (place === 'path') return req.pathParams?.[name];
  return place === 'query' ? req.query[name] : req.headers[name.toLowerCase()];
}

function check({ in: place, name, type, isList }: Parameter, value: unknown): void {
  if (value === undefined) return;
  if (Array.isArray(value) && !isList) throw wrongAt(name, 'is given more than once');
  for (const one of [value].flat()) {
    const text = String(one);
    refuse(textFault(text), name);
    // No encoding is defined for the other bytes of a header.
    if (place === 'header' && /[^\x20-\x7e]/.test(text)) {
      throw wrongAt(name, 'must contain only visible ASCII characters');
    }
    if (!isWritten[type](text)) throw wrongAt(name, plainly[type]);
  }
}

function refuse(fault: string | undefined, name: string): void {
  if (fault !== undefined) throw wrongAt(name.toWellFormed().replaceAll('\0', '\ufffd'), fault);
}

const isWritten: Record<ScalarType, (text: string) => boolean> = {
  string: () => true,
  integer: (text) => /^-?\d+$/.test(text) && Number.isSafeInteger(Number(text)),
  number: (text) => /^-?\d+(\.\d+)?$/.test(text) && Number.isFinite(Number(text)),
  boolean: (text) => text === 'true' || text === 'false',
};

const plainly: Record<ScalarType, string> = {
  string: 'must be a text',
  integer: 'must be an integer, in decimal digits',
  number: 'must be a number, in decimal digits',
  boolean: 'must be true or false',
};
