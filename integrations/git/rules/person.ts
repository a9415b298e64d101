import type { GitPerson } from '../types.ts';

/** What git takes off both ends of a name; it refuses a name that is nothing else. */
const crud = /[\s\p{Cc}.,:;<>"\\']/gu;
const maxLength = 200;

/** Whose commits these are, as git takes it. */
export function personOf(author: { name: string; email: string } | undefined): GitPerson {
  const { name = '', email = '' } = author ?? {};
  const isUsable = name.replaceAll(crud, '') !== '';
  return { name: isUsable ? oneLine(name) : oneLine(email) || 'Atrium', email: oneLine(email) };
}

/**
 * Variables by which git knows who commits in a process that somebody has started. Not settings of the home: several
 * people share that. Without an address, git asks as it does anywhere.
 */
export function signatureOf(author: { name: string; email: string } | undefined): Record<string, string> {
  const { name, email } = personOf(author);
  if (email === '') return {};
  return { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email };
}

function oneLine(text: string): string {
  // A variable has no NUL, and a name is one line.
  return text
    .replace(/\p{Cc}/gu, ' ')
    .trim()
    .slice(0, maxLength);
}
