import type { FakeGitHub, FakePerson } from '../fakes/githubServer.ts';
import type { Client, TestApi } from './api.ts';
import { buildSpace, buildUser } from './identity.ts';

export interface HostingSpace {
  as: Client;
  userId: string;
  spaceId: string;
  /** `/api/spaces/{spaceId}` */
  space: string;
}

export async function hostingSpace(api: TestApi): Promise<HostingSpace> {
  const { user, token } = await buildUser(api.identity);
  const { space } = await buildSpace(api.identity, user.id);
  return { as: api.as(token), userId: user.id, spaceId: space.id, space: `/api/spaces/${space.id}` };
}

/** Follows the connection's URL like a browser: the person signs in and arrives at the page with the choice. */
export async function visit(api: TestApi, github: FakeGitHub, { as, space }: HostingSpace, person: FakePerson) {
  const { url } = (await as.get(`${space}/git/github/connect`)).body as { url: string };
  const back = new URL(github.authorize(url, person));
  return api
    .as()
    .get(back.pathname + back.search)
    .set('accept', 'text/html');
}

/** Chooses an installation on that page. */
export function choose(api: TestApi, page: { text: string }, installationId: number | string) {
  const token = /name="token" value="([^"]+)"/.exec(page.text)?.[1] ?? 'none';
  const form = api.as().post('/git/github/connect').set('accept', 'text/html').type('form');
  return form.send({ token, installationId: String(installationId) });
}

/** Visits the page and chooses the installation. */
export async function connect(api: TestApi, github: FakeGitHub, at: HostingSpace, person: FakePerson, id: number) {
  return choose(api, await visit(api, github, at, person), id);
}
