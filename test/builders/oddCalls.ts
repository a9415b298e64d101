import type { Operation } from '../../api/frame/contract.ts';
import { bodyFor, describedParametersOf, fieldsOf, parametersOf, pathWith } from './operationCall.ts';
import type { World } from './world.ts';

/** A request that is wrong in one place, or at least odd there. */
export interface OddCall {
  /** What is odd about it. */
  name: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
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

/** Requests of this operation that a careless client or an attacker would send, each made from one that is right. */
export function oddCallsOf(operation: Operation, world: World, ids: Record<string, string>): OddCall[] {
  const path = pathWith(operation, ids);
  const example = bodyFor(operation, world);
  const json = { 'content-type': 'application/json' };
  const base = example === undefined ? { path } : { path, headers: json, body: JSON.stringify(example) };
  const query = (text: string) => `${path}${path.includes('?') ? '&' : '?'}${text}`;
  const calls: OddCall[] = [];

  for (const name of parametersOf(operation)) {
    for (const segment of segments) {
      // Put in as it is: pathWith would encode it.
      const marked = pathWith(operation, { ...ids, [name]: '~odd~' }).replace(encodeURIComponent('~odd~'), segment);
      calls.push({ ...base, name: `{${name}} ${segment.slice(0, 20)}`, path: marked });
    }
  }
  calls.push({ ...base, name: 'an unknown query parameter', path: query('unknown=1') });
  for (const { in: place, name } of describedParametersOf(operation)) {
    if (place === 'query') {
      for (const value of queryValues)
        calls.push({ ...base, name: `?${name}=${value}`, path: query(`${name}=${value}`) });
      for (const odd of [`${name}=1&${name}=2`, `${name}[]=1`, `${name}[a]=1`]) {
        calls.push({ ...base, name: `?${odd}`, path: query(odd) });
      }
    }
    if (place === 'header') {
      for (const value of headerValues) {
        calls.push({ ...base, name: `${name}: ${value.slice(0, 20)}`, headers: { ...base.headers, [name]: value } });
      }
    }
  }
  if (operation.bodyTypes.length > 0) {
    for (const type of types)
      calls.push({ ...base, name: type, headers: { 'content-type': type }, body: base.body ?? 'x' });
  }
  if (example === undefined) return calls;

  for (const body of bodies) calls.push({ ...base, name: `the body ${body.slice(0, 12)}`, body });
  calls.push({ ...base, name: 'no gzip', headers: { ...json, 'content-encoding': 'gzip' } });
  calls.push({ ...base, name: 'an unknown encoding', headers: { ...json, 'content-encoding': 'x' } });
  calls.push({ ...base, name: 'an unknown field', body: JSON.stringify({ ...example, isAdmin: true }) });
  for (const field of fieldsOf(operation)) {
    const { [field]: _left, ...rest } = example;
    calls.push({ ...base, name: `no ${field}`, body: JSON.stringify(rest) });
    for (const value of fieldValues) {
      const text = JSON.stringify({ ...example, [field]: value });
      calls.push({ ...base, name: `${field}: ${JSON.stringify(value).slice(0, 20)}`, body: text });
    }
  }
  return calls;
}
