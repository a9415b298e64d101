import { createHash, randomFillSync } from 'node:crypto';
import { encodeTime, monotonicFactory } from 'ulid';

/** Every kind of id that Atrium makes. The prefix tells a reader of a log what an id names. */
export const idPrefixes = {
  user: 'usr',
  space: 'spc',
  session: 'ses',
  apiKey: 'key',
  thread: 'thr',
  threadShare: 'shr',
  turn: 'trn',
  message: 'msg',
  toolCall: 'tcl',
  embedding: 'emb',
  operation: 'op',
  ledgerTransaction: 'ltx',
  grant: 'grt',
  hold: 'hld',
  checkout: 'chk',
  driveItem: 'itm',
  driveUpload: 'upl',
  signingKey: 'sgk',
  dataKey: 'dek',
  dynamicSecret: 'sec',
  auditEntry: 'aud',
  invitation: 'inv',
  mail: 'mai',
  pushSubscription: 'psh',
  mcpServer: 'mcp',
  computer: 'cmp',
  computerHost: 'hst',
  homeSave: 'hsv',
  computerSnapshot: 'snp',
  portLink: 'pln',
  process: 'prc',
  desktopSession: 'dsk',
  desktopLink: 'dln',
  browserProfile: 'brp',
  browserSession: 'brs',
  browserFolder: 'brf',
  browserLink: 'brl',
  desktopRecording: 'rec',
  gitCredential: 'gcr',
  gitDraft: 'drf',
  app: 'app',
  run: 'run',
  delivery: 'dlv',
  webhookSecret: 'whs',
  webhookEndpoint: 'whe',
  webhookDelivery: 'whd',
  appSchedule: 'sch',
  appVersion: 'ver',
  automation: 'atm',
  automationRun: 'arn',
  spaceDatabase: 'dbs',
  databaseAccount: 'dba',
  databaseBackup: 'dbb',
  environment: 'env',
  environmentVersion: 'evr',
} as const;

/** A kind of this list, or an area's own prefix with its underscore: `rem_`. */
export type IdKind = keyof typeof idPrefixes | `${string}_`;

const prefixOf = (kind: IdKind): string =>
  kind in idPrefixes ? `${idPrefixes[kind as keyof typeof idPrefixes]}_` : kind;

// Fetch random bytes for 256 ids at a time. The library by default asks the system for each letter.
const random = new Uint8Array(4_096);
let used = random.length;

function randomShare(): number {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  return (random[used++] ?? 0) / 256;
}

// Monotonic, so that ids made in one millisecond still sort in the order in which they were made.
const nextUlid = monotonicFactory(randomShare);

const timeLength = 10;

/** Sorts before every id of this kind made at `time` or later, and after all earlier ones. */
export function idBound(kind: IdKind, time: Date): string {
  return `${prefixOf(kind)}${encodeTime(time.getTime(), timeLength)}`;
}

/** A new id, `<prefix>_<ULID>`: unique, sortable by creation time, safe in a URL. */
export function newId(kind: IdKind): string {
  return `${prefixOf(kind)}${nextUlid()}`;
}

const letters = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const randomLength = 16;

/** Several ids that follow from one, always the same and in order, for a request that makes several objects. */
export function idsFrom(id: string, count: number): string[] {
  const beginning = id.slice(0, -randomLength);
  const ids = Array.from({ length: count }, (_, index) => {
    const hash = createHash('sha256').update(`${id}/${index}`).digest();
    return beginning + Array.from(hash.subarray(0, randomLength), (byte) => letters[byte % letters.length]).join('');
  });
  return ids.toSorted();
}
