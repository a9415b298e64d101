import { createHash } from 'node:crypto';
import type { ChatUser } from '../builders/chat.ts';

/** The ids and texts of a filled installation, which its test needs. */
export interface Filled {
  spaceId: string;
  threadId: string;
  turnId: string;
  sharePath: string;
  /** The address and the id of an invited person. */
  invited: { email: string; invitationId: string };
  key: string;
  /** The versions of files. */
  files: { itemId: string; version: number }[];
  trashedId: string;
  upload: { id: string; text: string };
  automationId: string;
  automationSecret: string;
  app: { itemId: string; runId: string; secret: string };
  computerId: string;
  repository: { itemId: string; commits: string[] };
  database: { id: string; backupId: string };
  webhook: { endpointId: string; deliveryId: string; secret: string };
  waiting: Record<'approval' | 'form', { threadId: string; turnId: string; toolCallId: string }>;
  /** A space with work that ran when the installation stopped. */
  busy: { spaceId: string; turnId: string; cloneId: string; operationId: string };
}

/** What a client reads of the space and does not change by reading. */
const pathsOf = ({ spaceId, ...ids }: Filled) => [
  '/api/spaces',
  '/api/keys',
  ...[
    ...['', '/members', '/invitations', '/threads', '/chat-settings', '/egress', '/secrets', '/secrets/env'],
    ...['/drive/items?path=/', '/drive/items?path=/notes', '/drive/trash', '/computers', '/automations', '/apps'],
    ...['/databases', '/git/credentials', '/webhook-endpoints', '/mcp-servers', '/browsers/profiles'],
    ...ids.files.map(({ itemId }) => `/drive/items/${itemId}/versions`),
    `/drive/uploads/${ids.upload.id}`,
    `/computers/${ids.computerId}/secrets`,
    `/automations/${ids.automationId}/runs`,
    `/databases/${ids.database.id}/backups`,
    `/git/${ids.repository.itemId}`,
  ].map((path) => `/api/spaces/${spaceId}${path}`),
  ...['messages', 'turns', 'shares', 'export'].map((part) => `/api/threads/${ids.threadId}/${part}`),
  `/chat/turns/${ids.turnId}/timeline`,
  ...Object.values(ids.waiting).map(({ turnId }) => `/chat/turns/${turnId}`),
  ...['', '/versions', '/runs', '/schedules', '/deliveries'].map((part) => `/api/apps/${ids.app.itemId}${part}`),
  ...['', '/entries', '/checkouts'].map((part) => `/api/billing/${spaceId}${part}`),
];

/** Answers that are compared as bytes. */
const contentsOf = ({ spaceId, ...ids }: Filled) => [
  ...ids.files.map((file) => `/api/spaces/${spaceId}/drive/items/${file.itemId}/content?version=${file.version}`),
  `/api/spaces/${spaceId}/computers/${ids.computerId}/files?path=work/note.txt`,
  `/api/runs/${ids.app.runId}/log`,
  `/chat/turns/${ids.turnId}/stream`,
  `/api/billing/${spaceId}/entries.csv`,
];

/** What a client reads of a filled installation: bodies without times, and hashes of contents. */
export async function readContents(user: ChatUser, filled: Filled): Promise<Record<string, unknown>> {
  const read: Record<string, unknown> = {};
  for (const path of pathsOf(filled)) read[path] = withoutTimes(await user.get(path));
  for (const path of contentsOf(filled)) {
    const response = await user.fetch(path);
    const bytes = Buffer.from(await response.arrayBuffer());
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${bytes.toString()}`);
    read[path] = createHash('sha256').update(bytes).digest('hex');
  }
  return read;
}

const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d/;

/** Without times and signed links, which differ at each reading. */
function withoutTimes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTimes);
  if (typeof value !== 'object' || value === null) return value;
  const isSame = ([name, one]: [string, unknown]) =>
    !/At$|Cursor$|^(url|cost|sizeBytes)$/.test(name) && !(typeof one === 'string' && time.test(one));
  return Object.fromEntries(
    Object.entries(value)
      .filter(isSame)
      .map(([name, one]) => [name, withoutTimes(one)]),
  );
}
