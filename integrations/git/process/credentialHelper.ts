import type { Duplex } from 'node:stream';
import { parseRemoteUrl, type RemoteUrl } from '../rules/remoteUrl.ts';
import type { RemoteSource } from '../types.ts';

/**
 * What git runs to ask for a credential: it hands the question to us over descriptor 3, which git and its helpers have
 * inherited, and prints what we answer. So the secret is in no argument, variable or file.
 */
const helperScript = [
  '!f() { test "$1" = get || exit 0;',
  '{ cat; echo "."; } >&3;',
  'while IFS= read -r line <&3 && test "$line" != "."; do printf "%s\\n" "$line"; done; }; f',
].join(' ');

export const helperSettings = { 'credential.helper': helperScript } as const;

const maxQuestion = 8_192;

/**
 * Answers git's questions, for the URL that the credential is for and nothing else: after a redirect, git asks for the
 * credential of where it was sent. `onSecret` learns what was given away, so that nothing repeats it; `onFailure` why
 * there is none, of which git only knows that it got no answer.
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
  const host = remote.port === 443 ? [remote.host, `${remote.host}:443`] : [`${remote.host}:${remote.port}`];
  const path = decoded(remote.path);
  // Servers send to the name with ".git"; it is the same repository.
  return (
    asked.get('protocol') === 'https' &&
    host.includes(asked.get('host') ?? '') &&
    [path, `${path}.git`].includes(asked.get('path') ?? '')
  );
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
