import type { Config } from '../../config/index.ts';
import { connectedPath, createGitHosting } from '../../integrations/gitHosting/index.ts';
import { type CheckResult, off, ok, wrong } from './check.ts';

/** Whether GitHub accepts the App's key, and people and notifications can come back. */
export async function checkGitHosting(config: Config): Promise<CheckResult> {
  const { appId, privateKey, clientId, clientSecret, webhookSecrets, gitHost } = config.gitHosting.github;
  const hosting = createGitHosting(config);
  if (appId === undefined && privateKey === undefined) return off('no App at GitHub; credentials are given by hand');
  if (config.env === 'production' && !config.gitHosting.github.address.startsWith('https:')) {
    return wrong('ATRIUM_GITHUB_ADDRESS is not https: tokens would be shown to everybody on the way');
  }
  const { name } = await hosting.require('tokens').about();
  const people =
    clientId === undefined || clientSecret === undefined
      ? 'nobody can connect it (ATRIUM_GITHUB_CLIENT_ID, ATRIUM_GITHUB_CLIENT_SECRET)'
      : `people come back to ${config.http.publicUrl.replace(/\/+$/, '')}/${connectedPath}`;
  return ok(`the App ${name}, repositories at ${gitHost}; ${people}; ${webhookSecrets.length} webhook secrets`);
}
