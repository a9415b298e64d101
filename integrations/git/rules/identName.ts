/** What git takes off both ends of a name, and refuses where nothing is left. */
const crud = String.raw`[\x00-\x20.,:;<>"\\']`;
const crudAtEnds = new RegExp(`^${crud}+|${crud}+$`, 'g');

/** A person’s name as git takes it: never empty, whatever they call themselves. */
export function identName({ name, email }: { name: string; email: string }): string {
  return [name, email].map((text) => text.replace(crudAtEnds, '')).find((text) => text !== '') ?? 'Atrium';
}
