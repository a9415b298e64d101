import type { Duplex } from 'node:stream';
import type { DomainError } from '../../../base/errors.ts';
import { type GitFailure, gitError } from '../rules/failures.ts';
import { decoded, parseRemoteUrl, type RemoteUrl } from '../rules/remoteUrl.ts';
import type { RemoteSource } from '../types.ts';

/**
 * Git runs this script to ask for a credential. The script hands the question to us over descriptor 3, which git and
 * its helpers inherit, and prints our answer. So the secret is in no argument, variable or file.
 */
const helperScript = [
  '!f() { test "$1" = get || exit 0;',
  '{ cat; echo "."; } >&3;',
  'while IFS= read -r line <&3 && test "$line" != "."; do printf "%s\\n" "$line"; done; }; f',
].join(' ');

export const helperSettings = { 'credential.helper': helperScript } as const;

const maxQuestion = 8_192;

/**
 * Answers git's questions for exactly the URL that the credential is for: after a redirect, git asks for the credential
 * of the new address. `onSecret` gets each secret that was shown, so that no output repeats it. `onFailure` gets the
 * reason why there is no credential: git only learns that there is none.
 */
export function answerHelper(
  socket: Duplex,
  source: RemoteSource,
  { onSecret, onFailure }: { onSecret: (secret: string) => void; onFailure: (error: unknown) => void },
): void {
  const remote = parseRemoteUrl(source.url);
  let open = '';
  socket.setEncoding('utf8').on('data', (text: string) => {
    open += text;
    if (open.length > maxQuestion) return void socket.destroy();
    for (let end = open.indexOf('\n.\n'); end >= 0; end = open.indexOf('\n.\n')) {
      const question = open.slice(0, end);
      open = open.slice(end + 3);
      answer(question, remote, source, onSecret).then(
        (lines) => socket.write(`${lines}.\n`),
        (error: unknown) => {
          onFailure(error);
          socket.write('quit=1\n.\n');
        },
      );
    }
  });
}

async function answer(
  question: string,
  remote: RemoteUrl,
  source: RemoteSource,
  onSecret: (secret: string) => void,
): Promise<string> {
  if (source.credential === undefined || !isFor(question, remote)) return 'quit=1\n';
  const { username, password } = await source.credential();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a line of the protocol must not become two
  if (/[\x00\n\r]/.test(`${username}${password}`)) return 'quit=1\n';
  onSecret(password);
  return `username=${username}\npassword=${password}\n`;
}

function isFor(question: string, remote: RemoteUrl): boolean {
  const asked = new Map(question.split('\n').map((line) => line.split(/=(.*)/s, 2) as [string, string]));
  const hosts = remote.port === 443 ? [remote.host, `${remote.host}:443`] : [`${remote.host}:${remote.port}`];
  const path = decoded(remote.path) ?? remote.path;
  // A server may redirect to the name with ".git"; it is the same repository.
  const paths = [path, `${path}.git`];
  const [protocol, host = '', asks = ''] = ['protocol', 'host', 'path'].map((name) => asked.get(name));
  return protocol === 'https' && hosts.includes(host) && paths.includes(asks);
}

/** `kept`: there is a credential, but git did not ask for it, or asked only for another address. */
export type ShownCredential = 'none' | 'kept' | 'shown';

const remedy =
  'Add one for its server (POST …/git/credentials), and name it as `credentialId` in PATCH …/git/{itemId}, or in retry-clone if the clone has failed.';

const sentences: Readonly<Partial<Record<string, Partial<Record<ShownCredential, string>>>>> = {
  GIT_AUTHENTICATION_FAILED: {
    none: `The remote wants a credential for this, and the repository has none. ${remedy}`,
    shown: 'The remote refuses the repository’s credential, or does not let it do this.',
  },
  GIT_REMOTE_NOT_FOUND: {
    none: 'The remote has no such repository, or shows it only to those with a credential, and this one has none.',
    kept: 'The remote has no such repository. It has not asked for the credential.',
    shown: 'The remote has no such repository, or not for this credential.',
  },
};

/** Says why a remote refuses: git does not say whether it has shown a credential. */
export function describeCredential(error: DomainError, shown: ShownCredential): DomainError {
  const sentence = sentences[error.code]?.[shown];
  return sentence === undefined ? error : gitError(error.code as GitFailure, sentence, { cause: error });
}
