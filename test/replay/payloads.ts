import type { SavedHistory } from './histories.ts';

/** An id of the product, which may stand under any key. */
const id = /^[a-z]{2,4}_[0-9A-HJKMNP-TV-Z]{26}$/;
/** A name from the program: of a kind, a status or an activity. */
const name = /^[A-Za-z][A-Za-z-]{0,40}$/;
const code = /^[A-Z][A-Z_]{2,60}$/;
const modelId = /^(demo|fake-\d)$/;

/** Messages that our own code gives failures. They quote no user. */
const sentences = [
  /^\d+ parts are still to come, among them [\d, ]+\.$/,
  /^Missing parts: \d+, such as [\d, ]+\. Upload them, and complete the upload again\.$/,
  /^The payment provider did not do what was asked of it\.$/,
  /^The mail server refuses this mail\.$/,
  /^Stripe answered \d{3} \(Stripe[A-Za-z]+\)\.$/,
  /^Activity task failed$/,
  /^(Activity|activity ScheduleToClose) timeout$/,
  /^Activity timed out$/,
  /^(CALLED_OFF|NO_HOST|HOST_FAILED|START_FAILED|NOT_ORDERED|DESKTOPS_UNAVAILABLE|RECORDING_UNAVAILABLE|PROFILE_TOO_LARGE|PROFILE_UNUSABLE|QUOTA_EXCEEDED|ROW_TOO_LARGE|GIT_[A-Z_]+)$/,
  /^activity Heartbeat timeout$/,
  /^A part is away\.$/,
  /^A service is unavailable; trying again\.$/,
  /^Nobody here waits for it any more\.$/,
  /^Nothing in this process waits for this model call any more\.$/,
  /^UnhandledCommand$/, // a signal came in between
  /^Connection lost: The server closed the connection\.$/, // to the database
  /^The database did not answer in time\.$/,
];

/** What the program calls its workflows and activities in the Temporal UI. */
const summaries = [
  /^Chat turn on (demo|fake-\d)$/,
  /^step \d+, (demo|fake-\d)$/,
  /^make room, (demo|fake-\d)$/,
  /^[a-z_]{1,64}$/, // the name of a tool
  /^Send a mail$/,
  /^Webhooks of an endpoint$/,
  /^Run of an app$/,
  /^Desktop session$/,
  /^Browser session$/,
  /^Recording of a desktop$/,
  /^Backup of a database$/,
  /^(generation \d+, )?hst_([0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{20})$/,
  /^clear up$/,
  /^Automation: start (what is due|a run)$/,
  /^App: start what is due$/,
  /^Sweep: start what was lost, end what has vanished$/,
  /^Contents: hold what may be damaged against its hash$/,
  /^Reconcile payments: credit what was paid, report what cannot be explained$/,
];

const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;
/** How long a schedule's workflow waits for its activities. */
const duration = /^\d+ (minutes|hours)$/;
const installationId = /^ins_[0-9a-f]{20}$/;
const scheduleId = /^test-[0-9a-f]{12}-(reconcile|sweeper|contents|(automation\/atm|app\/sch)_[0-9A-HJKMNP-TV-Z]{26})$/;

/**
 * The strings that a payload may hold besides ids, by their key. The empty key stands for a payload that is a string by
 * itself.
 */
const shapes: Record<string, readonly RegExp[]> = {
  '': [name, time, duration, installationId, scheduleId, ...summaries],
  activity_id: [/^\d+$/],
  activity_type: [name],
  by: [name],
  code: [code],
  detail: sentences,
  do: [name],
  eventId: [/^evt_[a-z_]+$/],
  eventIds: [/^evt_[a-z_]+$/],
  fallbackModelId: [modelId],
  finishReason: [name],
  runQueue: [/^test-[0-9a-f]{12}-runs$/],
  component: [name],
  hostId: [/^hst_[0-9a-f]{20}$/], // of a real host
  gitQueue: [/^test-[0-9a-f]{12}-git$/],
  webhookQueue: [/^test-[0-9a-f]{12}-webhooks$/],
  backupQueue: [/^test-[0-9a-f]{12}-backups$/],
  longQueue: [/^test-[0-9a-f]{12}-databases$/],
  id: [name],
  kind: [name],
  modelId: [modelId],
  nanos: [/^\d+$/],
  queuePrefix: [/^test-[0-9a-f]{12}-host-$/],
  seconds: [/^\d+$/],
  step: [name],
  status: [name],
  toolName: [/^[a-z_]{1,64}$/],
};

/**
 * The texts in a history other than ids, names and numbers, as `key: value`. There must be none. A string under an
 * unknown key counts unless it is an id, so that a new field is reviewed before its first history is saved.
 */
export function foreignTexts({ history }: Pick<SavedHistory, 'history'>): string[] {
  const text = JSON.stringify(history);
  const payloads = [...text.matchAll(/"data":"([^"]+)"/g)].flatMap(([, data = '']) =>
    foreignIn('', JSON.parse(Buffer.from(data, 'base64').toString()) as unknown),
  );
  const failures = [...text.matchAll(/"message":"((?:[^"\\]|\\.)*)"/g)].flatMap(([, message = '']) =>
    sentences.some((sentence) => sentence.test(message)) ? [] : [`message: ${message}`],
  );
  return [...payloads, ...failures];
}

function foreignIn(key: string, value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => foreignIn(key, item));
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value).flatMap(([name, item]) => foreignIn(name, item));
  }
  if (typeof value !== 'string') return [];
  return [id, ...(shapes[key] ?? [])].some((shape) => shape.test(value)) ? [] : [`${key}: ${value}`];
}
