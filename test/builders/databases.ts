import mysql, { type Connection } from 'mysql2/promise';
import type { operations } from '../../api/generated/types.gen.ts';
import type { ChatUser } from './chat.ts';

export type DatabaseBody = operations['getDatabase']['responses'][200]['content']['application/json'];
export type ConnectionBody = operations['getDatabaseConnection']['responses'][200]['content']['application/json'];

export type BackupBody = operations['backUpDatabase']['responses'][201]['content']['application/json'];

/** The databases of a person's space, as a client of the HTTP API. */
export function databasesOf(user: ChatUser) {
  const root = `/api/spaces/${user.spaceId}/databases`;
  async function send<T>(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<T> {
    const response = await user.fetch(`${root}${path}`, { method, body, ...(headers && { headers }) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }
  return {
    root,
    send,
    make: (name: string, key?: string) =>
      send<DatabaseBody>('POST', '', { name }, key === undefined ? undefined : { 'idempotency-key': key }),
    get: (id: string) => send<DatabaseBody>('GET', `/${id}`),
    list: async () => (await send<{ data: DatabaseBody[] }>('GET', '')).data,
    remove: (id: string) => send<void>('DELETE', `/${id}`),
    restore: (id: string) => send<DatabaseBody>('POST', `/${id}/restore`),
    connection: (id: string) => send<ConnectionBody>('GET', `/${id}/connection`),
    backups: async (id: string) => (await send<{ data: BackupBody[] }>('GET', `/${id}/backups`)).data,
    backUp: (id: string, key?: string) =>
      send<BackupBody>('POST', `/${id}/backups`, undefined, key === undefined ? undefined : { 'idempotency-key': key }),
    restoreFrom: (id: string, backup: string, name: string, key?: string) =>
      send<DatabaseBody>(
        'POST',
        `/${id}/backups/${backup}/restore`,
        { name },
        key === undefined ? undefined : { 'idempotency-key': key },
      ),
    compact: (id: string) => send<void>('POST', `/${id}/compact`),
    rename: (id: string, name: string) => send<DatabaseBody>('PATCH', `/${id}`, { name }),
    purge: (id: string) => send<void>('POST', `/${id}/purge`),
    rotate: (id: string, key?: string, body?: { now: boolean }) =>
      send<ConnectionBody>('POST', `/${id}/rotate`, body, key === undefined ? undefined : { 'idempotency-key': key }),
    /** The status and the code of a refusal. */
    async refusal(method: string, path: string, body?: unknown, as = user): Promise<[number, string | undefined]> {
      const response = await as.fetch(`${root}${path}`, { method, body });
      const text = await response.text();
      return [response.status, text === '' ? undefined : (JSON.parse(text) as { code?: string }).code];
    },
  };
}

/** Connects to a database. `Symbol.asyncDispose` closes the connection. */
export async function enter({ url }: Pick<ConnectionBody, 'url'>): Promise<Connection & AsyncDisposable> {
  const connection = await mysql.createConnection({ uri: url });
  connection.on('error', () => undefined); // tests let the server end connections
  return Object.assign(connection, { [Symbol.asyncDispose]: async () => connection.destroy() });
}

/** Whether a client can connect with these details. */
export async function opens(details: Pick<ConnectionBody, 'url'>): Promise<boolean> {
  return enter(details).then(
    (connection) => {
      connection.destroy();
      return true;
    },
    () => false,
  );
}
