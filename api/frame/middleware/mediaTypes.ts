import { MIMEType } from 'node:util';
import type { Request, RequestHandler } from 'express';
import { DomainError } from '../../../base/errors.ts';

/** In the contract this type stands for any file. */
const anyType = 'application/octet-stream';

/** Throws 406 when the client accepts none of the operation's media types. Errors are sent as JSON in any case. */
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

/** Throws 415 unless the body has exactly a type that the operation takes, with UTF-8 as its charset. */
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
