import { InvalidArgumentError } from 'commander';

const maxLength = 200;

/** Checks a name as the contract's schema `Name` does, so that the command line takes what the API takes. */
export function parseName(text: string): string {
  if (text.trim() !== '' && [...text].length <= maxLength && !/\p{Cc}/u.test(text)) return text;
  throw new InvalidArgumentError(
    `A name has 1 to ${maxLength} characters, not only white space, and no control characters.`,
  );
}
