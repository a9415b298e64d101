import type { ProvenInstallation, ProvenPerson } from '../../integrations/gitHosting/provider.ts';
import { type Html, html } from '../frame/pages/html.ts';
import type { Page } from '../frame/pages/page.ts';

export interface Choice {
  space: string;
  /** The e-mail address of the user who began this. */
  askedBy: string;
  person: ProvenPerson;
  token: string;
  /** Where the App is installed. */
  installUrl?: string | undefined;
  /** Ids of the installations that the space uses already. */
  connected: ReadonlySet<string>;
}

/** The page on which a person at GitHub chooses what a space may use. */
export function choicePage({ space, askedBy, person, token, installUrl, connected }: Choice): Page {
  const rows = person.installations.map((installation) => row(installation, token, connected.has(installation.id)));
  const none = html`<p role="status">None of your GitHub accounts has this App installed. Install it on GitHub, and start again.</p>`;
  return {
    title: 'Connect GitHub',
    body: html`<p>At GitHub you are <strong>${person.login}</strong>. <strong>${askedBy}</strong> asks for the space
<strong>${space}</strong>: whoever belongs to it will be able to read, and where you may, change the repositories that
you choose here. If you do not know who that is, close this page: nothing has been changed.</p>
${rows.length === 0 ? [none] : rows}
${person.isCut && html`<p class="quiet">Your GitHub account has more installations or repositories than can be shown here. The others are not listed.</p>`}
${installUrl !== undefined && html`<p class="quiet"><a href="${installUrl}">Install the App for another account</a></p>`}`,
  };
}

function row(installation: ProvenInstallation, token: string, isConnected: boolean): Html {
  const { id, account, status } = installation;
  if (status === 'suspended') return html`<p>${account}: suspended at GitHub.</p>`;
  const state = isConnected && html`<p role="status">${account} is connected. You can close this page.</p>`;
  return html`${state}<form method="post" action="/git/github/connect">
<input type="hidden" name="token" value="${token}"><input type="hidden" name="installationId" value="${id}">
<button class="${isConnected ? 'button second' : 'button'}">Connect ${account}${isConnected ? ' again' : ''}</button>
<p class="quiet">${scopeOf(installation)}</p></form>`;
}

function scopeOf({ repositories }: ProvenInstallation): string {
  if (repositories === 'all') return 'All repositories that the App may see';
  const writable = repositories.filter(({ mayWrite }) => mayWrite).length;
  const which = repositories.length === 1 ? 'The repository' : `The ${repositories.length} repositories`;
  return `${which} that you may see, ${writable} to be changed too`;
}
