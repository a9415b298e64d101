import type { operations } from '../../api/generated/types.gen.ts';
import { waitFor } from '../support/waitFor.ts';
import type { ChatUser } from './chat.ts';

export type EnvironmentBody = operations['getEnvironment']['responses'][200]['content']['application/json'];

/** The environments of a user's space, over the API. */
export function environmentsOf(user: ChatUser) {
  const base = `/api/spaces/${user.spaceId}/environments`;
  const environments = {
    /** A response with any status. */
    send: (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
      user.fetch(base + path, { method, body, headers }),
    async make(body: object, headers?: Record<string, string>): Promise<EnvironmentBody> {
      return bodyOf(await environments.send('POST', '', body, headers));
    },
    look: (id: string) => user.get<EnvironmentBody>(`${base}/${id}`),
    /** The environment, once its newest version is built. */
    async built(id: string): Promise<EnvironmentBody> {
      await waitFor(
        'the build to end',
        async () => !['queued', 'building'].includes((await environments.look(id)).status),
        {
          timeoutMs: 300_000,
        },
      );
      return environments.look(id);
    },
    async again(id: string, body?: object): Promise<EnvironmentBody> {
      return bodyOf(await environments.send('POST', `/${id}/build`, body));
    },
    async log(id: string, headers: Record<string, string> = {}): Promise<string> {
      return (await environments.send('GET', `/${id}/log`, undefined, headers)).text();
    },
  };
  return environments;
}

async function bodyOf(response: Response): Promise<EnvironmentBody> {
  const text = await response.text();
  if (response.status !== 201) throw new Error(`${response.url} answered ${response.status}: ${text}`);
  return JSON.parse(text) as EnvironmentBody;
}
