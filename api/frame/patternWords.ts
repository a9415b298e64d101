const control = 'must not contain control characters';
const notBlank = 'must not be blank';

/** The contract's patterns in words. A test checks that every pattern is here. */
export const patternWords: ReadonlyMap<string, string> = new Map([
  [String.raw`\S`, notBlank],
  [String.raw`^\S(?:[^\n\r]*\S)?$`, 'must be one line, without a space at its beginning or end'],
  ['^0?[0-7]{3}$', 'must be three octal digits, such as 644'],
  [
    '^[A-Za-z_][A-Za-z0-9_]{0,127}$',
    'must be the name of a variable: letters, digits and "_", at most 128, not beginning with a digit',
  ],
  ['^[A-Za-z_][A-Za-z0-9_]*$', 'must be the name of a variable: letters, digits and "_", not beginning with a digit'],
  [
    '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$',
    'must be lowercase letters and digits, with "-" only between them, such as my-app-1',
  ],
  [
    '^[0-9A-Za-z*,/-]+( [0-9A-Za-z*,/-]+){4}$',
    'must be a cron expression: five fields with a space between them, such as 0 8 * * MON-FRI',
  ],
  ['^[A-Za-z][A-Za-z0-9_+/-]*$', 'must be the name of a time zone, such as Europe/Berlin'],
  ['^[A-Za-z][A-Za-z0-9_-]*$', 'must be letters, digits, "_" and "-", beginning with a letter'],
  ["^[A-Za-z0-9!#$%&'*+.^_|~-]{1,100}$", 'must be the name of a header, with at most 100 characters'],
  [String.raw`^[^\u0000]*[^\s\u0000][^\u0000]*$`, 'must not be blank or contain a NUL character'],
  ['^/[A-Za-z0-9._~/-]*$', 'must be a path that begins with "/", of letters, digits, ".", "_", "~" and "-"'],
  [String.raw`^[^:\u0000-\u001F\u007F]+$`, 'must not contain colons or control characters'],
  [String.raw`^[^\u0000-\u001F\u007F]+$`, control],
  ['^[0-9]{1,20}$', 'must be a number of at most 20 digits'],
  ['^blob:(none|limit=[0-9]{1,12})$', 'must be blob:none, or blob:limit= and a number of bytes'],
  [
    String.raw`^[^-\u0000-\u0020\u007F][^\u0000-\u0020\u007F]*$`,
    'must not contain spaces or control characters, or begin with "-"',
  ],
  [String.raw`^[^\u0000]*$`, 'must not contain a NUL character'],
  [
    String.raw`^[^\u0000-\u001F\u007F]*[^\s\u0000-\u001F\u007F][^\u0000-\u001F\u007F]*$`,
    `${notBlank}, and ${control.slice(5)}`,
  ],
  ['^[a-z][a-z0-9-]*$', 'must be lowercase letters, digits and "-", beginning with a letter'],
  ['^[A-Za-z0-9-]{1,100}$', 'must be the name of a header: letters, digits and "-", at most 100'],
  [String.raw`^[\x20-\x7e]*$`, 'must contain only printable ASCII characters'],
  ['^[A-Za-z0-9][A-Za-z0-9._-]*$', 'must be letters, digits, ".", "_" and "-", beginning with a letter or a digit'],
  ['^[A-Za-z0-9._-]+$', 'must be letters, digits, ".", "_" and "-"'],
  ['^[A-Za-z0-9_-]+$', 'must be letters, digits, "_" and "-"'],
  [
    '^[a-z0-9][a-z0-9._-]{0,62}$',
    'must be at most 63 lowercase letters, digits, ".", "_" and "-", beginning with a letter or a digit',
  ],
  [
    '^([a-z0-9][a-z0-9._-]{0,62}|env_[0-9A-Z]{26})$',
    'must be a name of at most 63 lowercase letters, digits, ".", "_" and "-", or the id of an environment',
  ],
  ['^[^\\0\\n]+$', 'must be one line without a NUL character'],
  [
    '^[a-z_0-9][a-z0-9_-]{0,31}(:[a-z_0-9][a-z0-9_-]{0,31})?$',
    'must be the name or number of a user, and may have a group, such as app:staff',
  ],
  [
    String.raw`^[^,\s]([^,]{0,98}[^,\s])?$`,
    'must be at most 100 characters without a comma, and neither begin nor end with a space',
  ],
]);
