import type { GitPerson } from '../types.ts';

/** Characters that git strips from both ends of a name. It refuses a name with no other characters. */
const crud = /[\s\p{Cc}.,:;<>"\\']/gu;
const maxLength = 200;

/**
 * Variables that tell git who commits in a process that this person has started. They are not settings of the home,
 * which several people share. Without an e-mail address, git asks as usual.
 */
export function signatureOf(author: GitPerson | undefined): Record<string, string> {
  const person = personOf(author);
  return person.email === '' ? {} : variablesOf(person);
}

/** The same for a commit that Atrium makes, dated by the request, so that a retry makes the same commit. */
export function datedSignatureOf(author: GitPerson | undefined, at: Date): Record<string, string> {
  const date = `@${Math.floor(at.getTime() / 1_000)} +0000`;
  return { ...variablesOf(personOf(author)), GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date };
}

export function variablesOf({ name, email }: GitPerson): Record<string, string> {
  return { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email };
}

/** A person that git accepts: the name is never empty. */
function personOf(author: GitPerson | undefined): GitPerson {
  const { name = '', email = '' } = author ?? {};
  const usable = [name, email].find((text) => text.replaceAll(crud, '') !== '');
  return { name: usable === undefined ? 'Atrium' : oneLine(usable), email: oneLine(email) };
}

function oneLine(text: string): string {
  // A variable cannot contain NUL, and a name is one line.
  return text
    .replace(/\p{Cc}/gu, ' ')
    .trim()
    .slice(0, maxLength);
}
