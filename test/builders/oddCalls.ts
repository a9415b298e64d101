import type { Operation } from '../../api/frame/contract.ts';
import { bodyFor, describedParametersOf, fieldsOf, parametersOf, pathWith, statusesOf } from './operationCall.ts';
import type { World } from './world.ts';

/** A request that is wrong or odd in one place. */
export interface OddCall {
  /** The odd part. */
  name: string;
  path: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array<ArrayBuffer>;
  /** The expected status, if only one is right. */
  status?: number;
}

const deep = (open: string, close: string) => open.repeat(50_000) + close.repeat(50_000);
const segments = [
  'x',
  'x'.repeat(5_000),
  '%00',
  'a%00b',
  '%ff',
  '%',
  '%ED%A0%80',
  '..%2f..%2fetc',
  '%F0%9F%98%80',
  'null',
  '%20',
  '-1',
];
const queryValues = [
  '',
  '%00',
  '-1',
  '0',
  '1.5',
  '1e3',
  'abc',
  '99999999999999999999',
  '%ff',
  '%ED%A0%80',
  '../..',
  '//',
];
/** Texts that JavaScript accepts as a number or boolean, but the contract does not. */
const notWritten: Record<string, string[]> = {
  integer: [
    '',
    '1e3',
    '0x10',
    '%205',
    '+5',
    '%2B5',
    '5%20',
    '5.0',
    'Infinity',
    '-Infinity',
    'NaN',
    'null',
    'true',
    '1_0',
    '%D9%A5',
  ],
  number: ['', '1e3', '0x10', '%205', '+5', '%2B5', '5%20', '.5', '5.', 'Infinity', 'NaN', 'null', '%D9%A5'],
  boolean: ['', '1', '0', 'TRUE', 'yes', '%20true', 'null'],
};
/** NUL, invalid UTF-8, and half of a surrogate pair. */
const notText = ['%00', 'a%00b', '%ff', '%C0%80', '%ED%A0%80'];
const headerValues = ['', 'x', '"', '-1', '1e9', '*', 'W/"x"', 'x'.repeat(3_000)];
const bodies = [
  '',
  'null',
  '[]',
  '"x"',
  '123',
  '{',
  '{"a":1,}',
  "{'a':1}",
  'NaN',
  '\u0000',
  deep('[', ']'),
  deep('{"a":', '}'),
];
const types = [
  'text/plain',
  'application/jsonx',
  'application/json-seq',
  'application/json; charset=iso-8859-1',
  'multipart/form-data-x; boundary=x',
  'application/x-www-form-urlencoded; charset=utf-16',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
  'application/json; charset=utf-16',
  'x',
];
const fieldValues: unknown[] = [
  null,
  -1,
  1.5,
  1e308,
  2 ** 60,
  true,
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  '__proto__',
  'x'.repeat(5_000),
  [],
  {},
  [null],
  { $ne: null },
];

/** Requests of this operation that a careless client or an attacker might send, each derived from a valid one. */
export function oddCallsOf(operation: Operation, world: World, ids: Record<string, string>): OddCall[] {
  const path = pathWith(operation, ids);
  const example = bodyFor(operation, world);
  const json = { 'content-type': 'application/json' };
  const base =
    example === undefined ? { path, ...bytesFor(operation) } : { path, headers: json, body: JSON.stringify(example) };
  const query = (text: string) => `${path}${path.includes('?') ? '&' : '?'}${text}`;
  const calls: OddCall[] = [];

  const takes = new Map(operation.parameters.map((one) => [`${one.in} ${one.name}`, one]));
  for (const name of parametersOf(operation)) {
    const wrong = [...notText, ...(notWritten[takes.get(`path ${name}`)?.type ?? ''] ?? [])].filter(
      (one) => one !== '',
    );
    for (const segment of new Set([...segments, ...wrong])) {
      // Inserted unencoded, since pathWith would encode it.
      const marked = pathWith(operation, { ...ids, [name]: '~odd~' }).replace(encodeURIComponent('~odd~'), segment);
      const status = wrong.includes(segment) ? 400 : undefined;
      calls.push({ ...base, name: `{${name}} ${segment.slice(0, 20)}`, path: marked, status });
    }
  }
  calls.push({ ...base, name: 'an unknown query parameter', path: query('unknown=1') });
  for (const { in: place, name } of describedParametersOf(operation)) {
    if (place === 'query') {
      const { type = '', isList } = takes.get(`query ${name}`) ?? {};
      const wrong = [...notText, ...(notWritten[type] ?? [])];
      for (const value of new Set([...queryValues, ...wrong])) {
        const status = wrong.includes(value) ? 400 : undefined;
        calls.push({ ...base, name: `?${name}=${value}`, path: query(`${name}=${value}`), status });
      }
      for (const odd of [`${name}=1&${name}=2`, `${name}[]=1`, `${name}[a]=1`]) {
        calls.push({ ...base, name: `?${odd}`, path: query(odd), status: isList === true ? undefined : 400 });
      }
    }
    if (place === 'header') {
      for (const value of headerValues) {
        calls.push({ ...base, name: `${name}: ${value.slice(0, 20)}`, headers: { ...base.headers, [name]: value } });
      }
      calls.push({
        ...base,
        name: `${name} in Latin-1`,
        headers: { ...base.headers, [name]: 'caf\u00e9' },
        status: 400,
      });
    }
  }
  if (statusesOf(operation).includes(406)) {
    for (const accept of ['image/x-none', 'application/*;q=0, text/*;q=0, x/y']) {
      calls.push({ ...base, name: `Accept: ${accept}`, headers: { ...base.headers, accept }, status: 406 });
    }
  }
  if (operation.bodyTypes.length > 0) {
    for (const type of types) {
      const status = operation.bodyTypes.some((taken) => taken === type || taken === '*/*') ? undefined : 415;
      calls.push({ ...base, name: type, headers: { 'content-type': type }, body: base.body ?? 'x', status });
    }
  }
  if (example === undefined) return calls;

  for (const body of bodies) calls.push({ ...base, name: `the body ${body.slice(0, 12)}`, body });
  calls.push({ ...base, name: 'no gzip', headers: { ...json, 'content-encoding': 'gzip' } });
  calls.push({ ...base, name: 'an unknown encoding', headers: { ...json, 'content-encoding': 'x' } });
  calls.push({ ...base, name: 'an unknown field', body: JSON.stringify({ ...example, isAdmin: true }) });
  calls.push({ ...base, name: 'no UTF-8', body: Buffer.from('{"a":"\xff"}', 'latin1'), status: 400 });
  // Written as text, since assigning `__proto__` would set the prototype.
  const text = JSON.stringify(example);
  const rest = text === '{}' ? '}' : `,${text.slice(1)}`;
  for (const poison of [
    '"__proto__":{"x":1}',
    '"a":[{"__proto__":1}]',
    '"constructor":{"prototype":{"x":1}}',
    '"a\\u0000":1',
  ]) {
    calls.push({ ...base, name: poison, body: `{${poison}${rest}`, status: 400 });
  }
  for (const field of fieldsOf(operation)) {
    const { [field]: _left, ...rest } = example;
    calls.push({ ...base, name: `no ${field}`, body: JSON.stringify(rest) });
    for (const value of fieldValues) {
      const body = JSON.stringify({ ...example, [field]: value });
      const isText = typeof value !== 'string' || (value.isWellFormed() && !value.includes('\0'));
      calls.push({
        ...base,
        name: `${field}: ${JSON.stringify(value).slice(0, 20)}`,
        body,
        status: isText ? undefined : 400,
      });
    }
  }
  return calls;
}

/** A body for operations that take bytes. Without one they would refuse the call for that reason alone. */
function bytesFor({ bodyTypes }: Operation): Pick<OddCall, 'headers' | 'body'> {
  const type = 'application/octet-stream';
  return bodyTypes.includes(type) ? { headers: { 'content-type': type }, body: 'x' } : {};
}
