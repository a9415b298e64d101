import { randomUUID } from 'node:crypto';
import { loadContract, type Operation } from '../../api/frame/contract.ts';
import { builderOf, objects, type World } from './world.ts';

const { document } = loadContract();

interface Media {
  schema?: Schema | Reference;
  example?: object;
  examples?: Record<string, { value: object }>;
}

interface Schema {
  properties?: Record<string, unknown>;
}

interface Reference {
  $ref: string;
}

interface Parameter {
  in: string;
  name: string;
  required?: boolean;
  example?: unknown;
  schema?: object;
}

interface RawOperation {
  parameters?: (Parameter | Reference)[];
  requestBody?: { content: Record<string, Media> };
  responses?: object;
}

/** The parameter names in an operation's path. */
export function parametersOf({ path }: Operation): string[] {
  return [...path.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => name);
}

/** Makes an object in the world for each parameter of the operation's path and for ids that its query requires. */
export async function objectsFor(operation: Operation, world: World): Promise<Record<string, string>> {
  const ids: Record<string, string> = {};
  for (const name of [...parametersOf(operation), ...namedInQuery(operation)]) {
    ids[name] = await builderOf(name, operation.area, operation.id)(world);
  }
  return ids;
}

/** The operation's path with these ids, and with the required query parameters from the contract's examples. */
export function pathWith(operation: Operation, ids: Record<string, string>): string {
  const path = operation.path.replace(/\{([^}]+)\}/g, (_all, name: string) =>
    encodeURIComponent(ids[name] ?? 'absent'),
  );
  const query = new URLSearchParams();
  for (const { in: place, name, required, example } of describedParametersOf(operation)) {
    if (place === 'query' && required) query.set(name, ids[name] ?? String(example ?? 'a'));
  }
  return query.size === 0 ? path : `${path}?${query}`;
}

/** The contract's example of the operation's body, adapted to this world. Undefined if it takes no JSON. */
export function bodyFor(operation: Operation, { spaceId, people }: World): Record<string, unknown> | undefined {
  const media = rawOf(operation).requestBody?.content['application/json'];
  if (media === undefined) return undefined;
  const example = media.example ?? Object.values(media.examples ?? {})[0]?.value ?? {};
  const { spaceId: _elsewhere, ...body } = example as Record<string, unknown>;
  if ('email' in body) body.email = people.stranger.email;
  return fieldsOf(operation).includes('spaceId') ? { ...body, spaceId } : body;
}

/** A body of a type that the operation takes: its example as JSON or a form, or a file. */
export async function anyBodyFor(operation: Operation, world: World): Promise<unknown> {
  const content = rawOf(operation).requestBody?.content ?? {};
  const form = content['application/x-www-form-urlencoded'];
  if (form !== undefined) return new URLSearchParams({ ...(form.example as Record<string, string> | undefined) });
  if (content['multipart/form-data'] === undefined) {
    const json = bodyFor(operation, world);
    for (const name of ['itemId', 'computerId', 'snapshotId']) {
      if (json !== undefined && name in json) json[name] = await bodyObjects[name]?.(world);
    }
    return json;
  }
  const body = new FormData();
  const { properties = {} } = resolve(content['multipart/form-data'].schema ?? {});
  if ('threadId' in properties) body.append('threadId', await builderOf('threadId', 'Threads')(world));
  body.append('file', new Blob(['a']), `${randomUUID()}.txt`);
  return body;
}

/** Builders for the ids in a body, by field. Some fields name another kind of object than their name says. */
const bodyObjects: Record<string, (world: World) => Promise<string>> = {
  parentId: async (world) => builderOf('itemId', 'Drive')(world),
  itemId: async (world) => builderOf('itemId', 'Drive')(world),
  containerId: async (world) => `thread:${await builderOf('threadId', 'Threads')(world)}`,
  credentialId: async (world) => builderOf('credentialId', 'Git')(world),
  computerId: async (world) => builderOf('computerId', 'Computers')(world),
  snapshotId: async (world) => builderOf('snapshotId', 'Computers')(world),
  fromSnapshotId: async (world) => builderOf('snapshotId', 'Computers')(world),
  spaceId: async (world) => world.spaceId,
  threadId: async (world) => builderOf('threadId', 'Threads')(world),
};

/** The fields of an operation's JSON body that contain an id, with their builders. */
export function objectFieldsOf(operation: Operation): [string, (world: World) => Promise<string>][] {
  const fields = fieldsOf(operation);
  return Object.entries(bodyObjects).filter(([name]) => fields.includes(name));
}

/** The schema of an operation's JSON body. It may be a reference. */
export function bodySchemaOf(operation: Operation): Schema | Reference | undefined {
  return rawOf(operation).requestBody?.content['application/json']?.schema;
}

/** The fields of an operation's JSON body. */
export function fieldsOf(operation: Operation): string[] {
  const schema = bodySchemaOf(operation);
  return schema === undefined ? [] : Object.keys(resolve(schema).properties ?? {});
}

/** The statuses that the contract lists for an operation. */
export function statusesOf(operation: Operation): number[] {
  return Object.keys(rawOf(operation).responses ?? {}).map(Number);
}

/** The parameters of an operation, including those of its path. */
export function describedParametersOf(operation: Operation): Parameter[] {
  const item = document.paths?.[operation.path] as Pick<RawOperation, 'parameters'> | undefined;
  return [...(item?.parameters ?? []), ...(rawOf(operation).parameters ?? [])].map(resolve);
}

/** The ids that the query requires. */
function namedInQuery(operation: Operation): string[] {
  return describedParametersOf(operation)
    .filter(
      ({ in: place, name, required }) =>
        place === 'query' && required && (name.endsWith('Id') || `${operation.id}.${name}` in objects),
    )
    .map(({ name }) => name);
}

function rawOf({ path, method }: Operation): RawOperation {
  return (document.paths?.[path] as Record<string, RawOperation> | undefined)?.[method.toLowerCase()] ?? {};
}

function resolve<T extends object>(value: T | Reference): T {
  if (!('$ref' in value)) return value;
  const path = value.$ref.slice(2).split('/');
  return path.reduce((place, key) => (place as Record<string, unknown>)[key], document as unknown) as T;
}
