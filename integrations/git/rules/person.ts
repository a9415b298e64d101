import type { GitPerson } from '../types.ts';

/** What git takes off both ends of a name; it refuses a name that is nothing else. */
const crud = /[\s\p{Cc}.,:;<>"\\']/gu;
const maxLength = 200;

/**
 * Variables by which git knows who commits in a process that somebody has started. Not settings of the home: several
 * people share that. Without an address, git asks as it does anywhere.
 */
export function signatureOf(author: GitPerson | undefined): Record<string, string> {
  const person = personOf(author);
  return person.email === '' ? {} : variablesOf(person);
}

/** The same of a commit that we make for somebody, with when it was asked for: made again it is the same commit. */
export function datedSignatureOf(author: GitPerson | undefined, at: Date): Record<string, string> {
  const date = `@${Math.floor(at.getTime() / 1_000)} +0000`;
  return { ...variablesOf(personOf(author)), GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date };
}

export function variablesOf({ name, email }: GitPerson): Record<string, string> {
  return { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email };
}

/** Whose commits these are, as git takes it: with a name that is never empty, whatever they call themselves. */
function personOf(author: GitPerson | undefined): GitPerson {
  const { name = '', email = '' } = author ?? {};
  const usable = [name, email].find((text) => text.replaceAll(crud, '') !== '');
  return { name: usable === undefined ? 'Atrium' : oneLine(usable), email: oneLine(email) };
}

function oneLine(text: string): string {
  // A variable has no NUL, and a name is one line.
  return text
    .replace(/\p{Cc}/gu, ' ')
    .trim()
    .slice(0, maxLength);
}
