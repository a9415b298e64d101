import { readDataUrl } from '../../models/chat/attachments.ts';
import type { StoredPart } from '../../models/chat/message.ts';
import type { CompletionBody } from './conversation.ts';
import { refused } from './refusals.ts';

export type GivenFile = Extract<StoredPart, { type: 'file' }>;
type Content = CompletionBody['messages'][number]['content'];
type FileBody = NonNullable<Exclude<NonNullable<Content>, string>[number]['file']>;

/** How a file of `/v1/files` is named while its request is read. No client can send such a URL. */
const storedPrefix = 'stored-file:';

/** A picture or another file by its `data:`, `https:` or `http:` URL. Throws 400 for other URLs. */
export function givenByUrl(url: string, pointer: string, filename?: string): GivenFile {
  const named = filename === undefined ? {} : { filename };
  if (isRemote(url)) {
    if (!URL.canParse(url)) throw refused('FILE_URL_INVALID', pointer, 'This is not a valid URL.');
    const { username, password } = new URL(url);
    if (`${username}${password}` !== '') {
      throw refused('FILE_URL_INVALID', pointer, 'The URL of a file must not contain a user name or a password.');
    }
    return { type: 'file', url, mediaType: '', ...named };
  }
  if (!/^data:/i.test(url)) {
    throw refused('FILE_URL_UNSUPPORTED', pointer, 'Send the file as a data: URL, or by an https: or http: URL.');
  }
  if (readDataUrl(url) === undefined) throw refused('FILE_URL_INVALID', pointer, 'This data: URL cannot be read.');
  const mediaType = /^data:([^;,]*)/i.exec(url)?.[1] ?? '';
  return { type: 'file', url, mediaType: mediaType === '' ? 'text/plain' : mediaType.toLowerCase(), ...named };
}

/** A file in base64, or by its id. */
export function givenFile({ file_data, file_id, filename }: FileBody, pointer: string): GivenFile {
  if (file_id != null) return { type: 'file', url: `${storedPrefix}${file_id}`, mediaType: '' };
  if (file_data == null) {
    throw refused('CONTENT_REQUIRED', pointer, 'A file needs `file_data` in base64, or `file_id`.');
  }
  // OpenAI's documentation has both forms.
  const isUrl = /^data:/i.test(file_data);
  const url = isUrl ? file_data : `data:application/octet-stream;base64,${file_data}`;
  return givenByUrl(url, `${pointer}/file_data`, filename ?? undefined);
}

export function isRemote(url: string): boolean {
  return /^https?:\/\//i.test(url);
}

/** The id of a file that was given by it. */
export function storedIdOf(url: string): string | undefined {
  return url.startsWith(storedPrefix) ? url.slice(storedPrefix.length) : undefined;
}
