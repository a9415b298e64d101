import type { Connection } from '@temporalio/client';

/** The search attributes of workflows, by which an operator finds them in the Temporal UI. All are keywords. */
export const searchAttributes = ['SpaceId', 'ThreadId', 'UserId', 'Kind', 'Outcome'] as const;

/**
 * Registers the missing search attributes of a namespace and returns their names. A workflow that starts with an
 * unregistered one fails, so this runs at each start. Throws the server's PERMISSION_DENIED or UNIMPLEMENTED if that is
 * not allowed (Temporal Cloud). An operator has to make them there.
 */
export async function registerSearchAttributes(connection: Connection, namespace: string): Promise<string[]> {
  const missing = await missingSearchAttributes(connection, namespace);
  if (missing.length === 0) return missing;
  const { default: proto } = await import('@temporalio/proto'); // CommonJS: its names are not seen as named exports
  const keyword = proto.temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD;
  await connection.operatorService.addSearchAttributes({
    namespace,
    searchAttributes: Object.fromEntries(missing.map((name) => [name, keyword])),
  });
  return missing;
}

/** The names that `registerSearchAttributes` would register. */
export async function missingSearchAttributes(connection: Connection, namespace: string): Promise<string[]> {
  const known = await connection.operatorService.listSearchAttributes({ namespace });
  return searchAttributes.filter((name) => known.customAttributes?.[name] === undefined);
}
