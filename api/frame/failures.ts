import { DomainError, type FieldError } from '../../base/errors.ts';
import { statusOf } from '../../integrations/http/statuses.ts';
import { isDatabaseUnavailable } from '../../models/database/unavailable.ts';
import { notAuthenticated } from './auth/caller.ts';
import { plainWords } from './plainWords.ts';

/** What the client is told about an error. */
export interface Failure {
  status: number;
  code: string;
  detail: string;
  errors?: FieldError[] | undefined;
  headers?: Record<string, string> | undefined;
  retryAfterSeconds?: number | undefined;
  quota?: { limit: number; used: number } | undefined;
}

const databaseRetryAfterSeconds = 2;

/** The parts of the failed request that its error answer mentions. */
interface Asked {
  /** The media types that the operation accepts. */
  bodyTypes?: readonly string[] | undefined;
  /** The parsed body, to quote a wrong value from. */
  body?: unknown;
}

/** Describes every error that can reach the API in the client's terms. An unknown one is a 500 without details. */
export function describeFailure(error: unknown, asked: Asked = {}): Failure {
  if (error instanceof DomainError) return describeDomainError(error);
  if (error instanceof URIError) {
    return { status: 400, code: 'INVALID_PATH', detail: 'The path is not valid percent-encoding.' };
  }
  if (isDatabaseUnavailable(error)) {
    return {
      status: 503,
      code: 'DATABASE_UNAVAILABLE',
      detail: 'The database does not answer. Try again in a moment.',
      retryAfterSeconds: databaseRetryAfterSeconds,
    };
  }
  return describeHttpError(error, asked) ?? internalError;
}

const internalError: Failure = {
  status: 500,
  code: 'INTERNAL_ERROR',
  detail: 'Something went wrong on the server. An operator can find the error in the log by the request id.',
};

function describeDomainError(error: DomainError): Failure {
  const { code, message, errors, retryAfterSeconds, link, quota } = error;
  const headers = link && { link: `<${link.path}>; rel="${link.rel}"` };
  return { status: statusOf[error.kind], code, detail: message, errors, headers, retryAfterSeconds, quota };
}

/** What the body parser and the contract's validator throw. */
interface HttpError {
  status: number;
  type?: string;
  headers?: Record<string, string>;
  /** The size limit of the body parser, in bytes. */
  limit?: number;
  errors?: ValidatorFault[];
}

function describeHttpError(error: unknown, { bodyTypes = [], body }: Asked): Failure | undefined {
  const { status, type, headers, errors } = error as HttpError;
  switch (status) {
    case 400:
      if (type === 'entity.parse.failed') {
        return { status, code: 'INVALID_JSON', detail: 'The body is not valid JSON.' };
      }
      // The validator's errors always name fields. All others come from the body parser or below.
      if (errors === undefined) return { status, code: 'INVALID_BODY', detail: unreadable };
      return describeFields(status, meantFaults(errors), body);
    case 401:
      return describeDomainError(notAuthenticated());
    case 404:
      return { status, code: 'NOT_FOUND', detail: 'There is nothing at this path. /docs lists all paths.' };
    case 405:
      return { status, code: 'METHOD_NOT_ALLOWED', detail: `This path accepts only ${headers?.allow}.`, headers };
    case 426:
      return {
        status,
        code: 'UPGRADE_REQUIRED',
        detail: 'This path is for WebSockets. Connect with a WebSocket client.',
        headers,
      };
    case 413:
      return { status, code: 'BODY_TOO_LARGE', detail: `The body is larger than ${sizeOf(error as HttpError)}.` };
    case 415:
      return { status, code: 'UNSUPPORTED_MEDIA_TYPE', detail: describeMediaType(type, bodyTypes) };
    default:
      return undefined;
  }
}

/** The size limit of the body. Forms have a smaller one than JSON. */
function sizeOf({ limit = 2 ** 20 }: HttpError): string {
  return limit < 2 ** 20 ? `${limit / 2 ** 10} KiB` : `${limit / 2 ** 20} MiB`;
}

const unreadable = 'The body could not be read. It does not match its Content-Encoding, or the connection was cut off.';

/** Tells the client what to send instead. */
function describeMediaType(type: string | undefined, bodyTypes: readonly string[]): string {
  if (type === 'charset.unsupported') return 'Send the body in UTF-8.';
  if (type === 'encoding.unsupported') return 'Send the body uncompressed, or compressed with gzip, deflate or br.';
  return `Send the body as ${bodyTypes.join(' or ')}.`;
}

function describeFields(status: number, faults: readonly ValidatorFault[], body: unknown): Failure {
  const errors = faults.map((fault) => fieldErrorOf(fault, body));
  const { pointer, detail } = errors[0] ?? fieldErrorOf({}, body);
  const whole = `${pointer === '' ? 'The body' : pointer} ${detail}.`;
  return { status, code: 'INVALID_REQUEST', detail: whole, errors };
}

/** `/body/name` becomes the pointer `/name`; `/query/limit` the parameter `limit`. */
function fieldErrorOf({ path = '', message = 'is wrong' }: ValidatorFault, body: unknown): FieldError {
  const pointer = path.replace(/^\/body/, '').replace(/^\/(query|params|headers)\//, '');
  const words = plainWords(message);
  // Quote the value: in a list, the caller knows the value but not its index.
  const value = path.startsWith('/body/') && words.startsWith('must be one of:') ? valueAt(body, pointer) : undefined;
  const isShort = typeof value === 'string' && value.length <= 100;
  const detail = isShort ? `is ${JSON.stringify(value)}, and ${words}` : words;
  return { pointer: pointer.slice(0, 1_000), detail: detail.slice(0, 1_000) };
}

/** The value at a JSON pointer. Undefined when there is none. */
function valueAt(body: unknown, pointer: string): unknown {
  const names = pointer.split('/').slice(1);
  return names.reduce<unknown>((value, name) => {
    const key = name.replaceAll('~1', '/').replaceAll('~0', '~');
    const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, key);
    return isThere ? (value as Record<string, unknown>)[key] : undefined;
  }, body);
}

/** A fault as the contract's validator reports it. */
export interface ValidatorFault {
  path?: string;
  message?: string;
}

const ofForms = /^must match (exactly one schema in oneOf|a schema in anyOf)$/;
const ofTypes = /^must be [a-z]+(?:,[a-z]+)*$/;
/** The validator checks these rules only for values of the right type. */
const ofRightType = /^must (NOT have (fewer|more) than|match (pattern|format)|be (>=?|<=?|multiple of)) /;
const ofFields = /^must (have required property|NOT have additional properties)/;

/**
 * Where a value may have one of several forms, the validator reports faults against each of them. A value with the
 * right fields but a wrong value in one of them is meant to have that form, so faults about the other forms are
 * dropped. So are faults about types if the value has a right type, and something else is wrong with it.
 */
export function meantFaults(faults: readonly ValidatorFault[]): readonly ValidatorFault[] {
  const choices = faults.filter(({ message = '' }) => ofForms.test(message)).map(({ path = '' }) => path);
  return choices.reduce((left: readonly ValidatorFault[], at) => {
    const below = ({ path = '' }: ValidatorFault) => path.startsWith(`${at}/`);
    const isOfValue = (fault: ValidatorFault) =>
      below(fault) && !ofFields.test(fault.message ?? '') && !ofForms.test(fault.message ?? '');
    const whole = left.filter(({ path, message = '' }) => path === at && ofRightType.test(message));
    if (whole.length > 0 && left.every((fault) => !isOfValue(fault) || ofTypes.test(fault.message ?? ''))) {
      return [...left.filter((fault) => !(fault.path === at || below(fault))), ...withoutCopies(whole)];
    }
    if (!left.some(isOfValue)) return left;
    return left.filter((fault) => isOfValue(fault) || !(fault.path === at || below(fault)));
  }, faults);
}

/** Several forms may have the same rule. */
function withoutCopies(faults: readonly ValidatorFault[]): ValidatorFault[] {
  return [...new Map(faults.map((fault) => [fault.message, fault])).values()];
}
