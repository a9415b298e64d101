import { randomUUID } from 'node:crypto';
import type { operations } from '../../api/generated/types.gen.ts';
import { signWebhook } from '../../integrations/webhooks/standardWebhooks.ts';
import { waitFor } from '../support/waitFor.ts';
import type { ChatUser } from './chat.ts';
import { driveOf } from './drive.ts';
import type { TestProduct } from './product.ts';

export type AppBody = operations['getApp']['responses'][200]['content']['application/json'];

export type VersionBody = operations['refuseAppVersion']['responses'][200]['content']['application/json'];
type VersionDetails = operations['getAppVersion']['responses'][200]['content']['application/json'];
export type RunBody = operations['getRun']['responses'][200]['content']['application/json'];
export type TimelineBody = operations['getRunTimeline']['responses'][200]['content']['application/json'];
type OutcomeBody = operations['runApp']['responses'][200]['content']['application/json'];

export type DeliveryBody =
  operations['listDeliveries']['responses'][200]['content']['application/json']['data'][number];
export type ScheduleBody = operations['pauseSchedule']['responses'][200]['content']['application/json'];
type DeliveryKept = operations['deliverToApp']['responses'][200]['content']['application/json'];

interface Sent {
  secret?: string;
  id?: string;
  /** In seconds since 1970. */
  timestamp?: number;
  /** Default: the default component. */
  component?: string;
  method?: string;
  query?: string;
  body?: string | Buffer;
  headers?: Record<string, string>;
}

interface Answer<T> {
  status: number;
  body: T & { code?: string; detail?: string; errors?: { pointer: string; detail: string }[] };
}

/** A manifest with one component that runs this command. */
export function manifestOf(command: string, more: Record<string, unknown> = {}): string {
  return JSON.stringify({ name: 'App', components: [{ name: 'run', kind: 'process', command, ...more }] });
}

/** A manifest with one webhook that runs this command. */
export function webhookManifest(command: string, more: Record<string, unknown> = {}): string {
  return JSON.stringify({ name: 'App', components: [{ name: 'receive', kind: 'webhook', command, ...more }] });
}

/** A manifest with one schedule that runs this command. Its tick does not come during a test. */
export function scheduleManifest(command: string, more: Record<string, unknown> = {}): string {
  const component = { name: 'nightly', kind: 'schedule', command, cron: '0 3 1 1 *', timeZone: 'UTC', ...more };
  return JSON.stringify({ name: 'App', components: [component] });
}

/** A user's requests about apps, over the API. */
export function appsOf(product: Pick<TestProduct, 'url'>, user: ChatUser) {
  const drive = driveOf(product, user);
  const space = `/api/spaces/${user.spaceId}`;
  async function send<T = AppBody>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer<T>> {
    const response = await user.fetch(path, {
      method,
      ...(body !== undefined && { body }),
      ...(headers !== undefined && { headers }),
    });
    const text = await response.text();
    return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Answer<T>['body'] };
  }

  /** Writes a file into an app's folder, replacing an existing one. */
  async function put(folderId: string, name: string, content: string): Promise<void> {
    const { path } = (await send<{ path: string }>('GET', `${space}/drive/items/${folderId}`)).body;
    await drive.put(`${path}/${name}`, content, 'replace');
  }

  /** A new folder with these files. */
  async function folder(files: Record<string, string> = {}): Promise<string> {
    const { id } = (await send<{ id: string }>('POST', `${space}/drive/folders`, { path: `/app ${randomUUID()}` }))
      .body;
    for (const [name, content] of Object.entries(files)) await put(id, name, content);
    return id;
  }

  return {
    space,
    send,
    put,
    folder,
    make: (itemId: string) => send('POST', `${space}/apps`, { itemId }),
    get: (itemId: string) => send('GET', `/api/apps/${itemId}`),
    list: () => send<{ data: AppBody[] }>('GET', `${space}/apps`),
    versions: (itemId: string) => send<{ data: VersionBody[] }>('GET', `/api/apps/${itemId}/versions`),
    version: (itemId: string, versionId: string) =>
      send<VersionDetails>('GET', `/api/apps/${itemId}/versions/${versionId}`),
    approve: (itemId: string, versionId: string) =>
      send<VersionBody>('POST', `/api/apps/${itemId}/versions/${versionId}/approve`),
    refuse: (itemId: string, versionId: string) =>
      send<VersionBody>('POST', `/api/apps/${itemId}/versions/${versionId}/refuse`),
    run: (itemId: string, body: object = {}, headers?: Record<string, string>) =>
      send<OutcomeBody>('POST', `/api/apps/${itemId}/process/run`, body, headers),
    runs: (itemId: string) => send<{ data: RunBody[] }>('GET', `/api/apps/${itemId}/runs`),
    getRun: (runId: string) => send<RunBody>('GET', `/api/runs/${runId}`),
    cancel: (runId: string) => send<RunBody>('POST', `/api/runs/${runId}/cancel`),
    /** The run, once it has ended. */
    ended: (runId: string): Promise<RunBody> =>
      waitFor(
        'the end of a run',
        async () => {
          const { body } = await send<RunBody>('GET', `/api/runs/${runId}`);
          return body.endedAt === null ? undefined : body;
        },
        { timeoutMs: 150_000 },
      ),
    async log(runId: string, after = 0) {
      const response = await user.fetch(`/api/runs/${runId}/log?after=${after}`);
      const position = Number(response.headers.get('x-output-position'));
      return { status: response.status, text: await response.text(), position };
    },
    /** Makes a new secret for the app's webhooks. */
    async secret(itemId: string, body?: { revokePrevious: boolean }): Promise<string> {
      return (await send<{ secret: string }>('POST', `/api/apps/${itemId}/webhook/secret`, body)).body.secret;
    },
    schedules: (itemId: string) => send<{ data: ScheduleBody[] }>('GET', `/api/apps/${itemId}/schedules`),
    pause: (itemId: string, component = 'nightly') =>
      send<ScheduleBody>('POST', `/api/apps/${itemId}/schedules/${component}/pause`),
    resume: (itemId: string, component = 'nightly') =>
      send<ScheduleBody>('POST', `/api/apps/${itemId}/schedules/${component}/resume`),
    deliveries: (itemId: string) => send<{ data: DeliveryBody[] }>('GET', `/api/apps/${itemId}/deliveries`),
    replay: (deliveryId: string, headers?: Record<string, string>) =>
      send<DeliveryKept>('POST', `/api/deliveries/${deliveryId}/replay`, undefined, headers),
    /** Sends a delivery to the app's webhook. Signs it if there is a secret. */
    async deliver(
      itemId: string,
      { secret, id, timestamp, component, method = 'POST', query = '', body = '', headers }: Sent = {},
    ) {
      const name = id ?? (secret === undefined ? undefined : `msg_${randomUUID()}`);
      const at = `${timestamp ?? Math.floor(Date.now() / 1_000)}`;
      const response = await fetch(
        `${product.url}/api/webhooks/${user.spaceId}/${itemId}${component === undefined ? '' : `/${component}`}${query}`,
        {
          method,
          ...(method !== 'GET' && { body }),
          headers: {
            ...(name !== undefined && { 'webhook-id': name }),
            ...(secret !== undefined && {
              'webhook-timestamp': at,
              'webhook-signature': signWebhook(
                Buffer.from(method === 'GET' ? '' : body),
                { id: name ?? '', timestamp: at },
                secret,
              ),
            }),
            ...headers,
          },
        },
      );
      const text = await response.text();
      return {
        status: response.status,
        body: JSON.parse(text) as Answer<DeliveryKept>['body'],
        headers: response.headers,
      };
    },
    remove: (itemId: string) => send('DELETE', `/api/apps/${itemId}`),
    /** A new app: a folder with this manifest and these files. */
    async app(manifest: string, files: Record<string, string> = {}): Promise<string> {
      const id = await folder({ 'atrium.yaml': manifest, ...files });
      const made = await send('POST', `${space}/apps`, { itemId: id });
      if (made.status !== 201) throw new Error(`The app was answered by ${made.status} ${made.body.code}`);
      return id;
    },
  };
}
