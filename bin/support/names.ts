import { InvalidArgumentError } from 'commander';

const maxLength = 200;

/** A name as the contract's schema `Name` has it: what the API takes is what the command line takes. */
export function parseName(text: string): string {
  if (text.trim() !== '' && [...text].length <= maxLength && !/\p{Cc}/u.test(text)) return text;
  throw new InvalidArgumentError(
    `A name has 1 to ${maxLength} characters, not only white space, and no control characters.`,
  );
}
