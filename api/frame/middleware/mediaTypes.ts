import { MIMEType } from 'node:util';
import type { Request, RequestHandler } from 'express';
import { DomainError } from '../../../base/errors.ts';

/** Stands in the contract for whatever a file is. */
const anyType = 'application/octet-stream';

/**
 * 406 where nothing that the operation answers with is what the client takes. A failure is told as JSON in any case.
 */
export function answerType(): RequestHandler {
  return (req, _res, next) => {
    const { answerTypes = [] } = req.operation ?? {};
    const isOpen = answerTypes.length === 0 || answerTypes.includes(anyType);
    if (!isOpen && (req.get('accept') ?? '').trim() !== '' && !req.accepts(answerTypes)) {
      throw new DomainError(
        'notAcceptable',
        'NOT_ACCEPTABLE',
        `This operation answers with ${answerTypes.join(' or ')}.`,
      );
    }
    next();
  };
}

/** 415 unless the body is of exactly a type that the operation takes, and its text UTF-8. */
export function checkBodyType(req: Request, bodyTypes: readonly string[]): void {
  const given = req.get('content-type');
  if (given === undefined || bodyTypes.includes('*/*') || bodyTypes.includes(anyType)) return;
  const type = parse(given);
  if (type === undefined || !bodyTypes.includes(type.essence)) throw unsupported(bodyTypes);
  const charset = type.params.get('charset') ?? 'utf-8';
  if (!/^utf-?8$/i.test(charset))
    throw Object.assign(new Error('Another charset'), { status: 415, type: 'charset.unsupported' });
}

function parse(type: string): MIMEType | undefined {
  try {
    return new MIMEType(type);
  } catch {
    return undefined;
  }
}

function unsupported(bodyTypes: readonly string[]): Error {
  return Object.assign(new Error(`Not ${bodyTypes.join(', ')}`), { status: 415 });
}
