import { createHash } from 'node:crypto';
import type { LanguageModelV4Message } from '@ai-sdk/provider';
import { firstOf } from '../../../base/text.ts';
import type { CatalogueModel, ProviderName } from '../../../integrations/chat/catalogue.ts';
import { detectContentType, sampleBytes } from '../../../integrations/storage/contentType.ts';
import { contentOfAttached, readDataUrl } from '../../../models/chat/attachments.ts';
import type { AttachedFile, Message, StoredPart } from '../../../models/chat/message.ts';
import type { Database } from '../../../models/database/database.ts';
import { aside } from './aside.ts';
import type { AttachmentReader, FileSource, FileView } from './attachmentReader.ts';
import { charactersFor, tokensOfText } from './budget.ts';
import { describeSender } from './senderContext.ts';

export type UserContent = Extract<LanguageModelV4Message, { role: 'user' }>['content'];
type InlineFile = Extract<StoredPart, { type: 'file' }>;

/**
 * How much file content the messages of one prompt may still show. The newest messages take their share first, so the
 * oldest go without.
 */
export interface FileAllowance {
  /** For images and PDFs. Providers limit the size of a request as well. */
  seenCharacters: number;
  textTokens: number;
}

/** Anthropic takes 5 MB in base64. Others take more, up to what a prompt holds. */
const maxImageBytesOf: Partial<Record<ProviderName, number>> = { openai: 15_000_000, compatible: 15_000_000 };
/** In base64. Together with its prompt it must fit the 32 MB that providers accept. */
const maxSeenCharacters = 20_000_000;
const maxTextTokens = 30_000;

export function fileAllowance(promptTokens: number): FileAllowance {
  return { seenCharacters: maxSeenCharacters, textTokens: Math.min(maxTextTokens, Math.floor(promptTokens / 4)) };
}

export interface ContentDeps {
  database: Database;
  attachments: AttachmentReader;
  model: Pick<CatalogueModel, 'capabilities' | 'adapter'>;
  spaceId: string;
  /**
   * Attached files lie in the drive, those of earlier messages too. A turn that may not read the drive sees only those
   * that were sent within their messages.
   */
  mayReadDrive: boolean;
  allowance: FileAllowance;
}

/** A user's message as a model reads it: the text, its files, and what the sender's device was showing. */
export async function userContent(
  deps: ContentDeps,
  message: Pick<Message, 'parts' | 'turnId'>,
  context: Record<string, unknown> | undefined,
): Promise<UserContent> {
  const content: UserContent = [];
  for (const part of message.parts) {
    if (part.type === 'text') content.push({ type: 'text', text: part.text });
    if (part.type === 'data-file') content.push(...(await attached(deps, part.data)));
    if (part.type === 'file') content.push(...(await inline(deps, part)));
  }
  const sender = context && describeSender(context);
  if (sender !== undefined) content.push({ type: 'text', text: sender, ...aside });
  return content;
}

async function attached(deps: ContentDeps, file: AttachedFile): Promise<UserContent> {
  if (!deps.mayReadDrive && file.isSent !== true) {
    const why = 'the API key that started this turn may not read the drive';
    return show(file.path, file.mimeType, { kind: 'absent', why }, deps.allowance);
  }
  const found = await contentOfAttached(deps.database, file, deps.spaceId);
  const view: FileView =
    found === undefined
      ? { kind: 'absent', why: 'the file has been deleted since' }
      : await deps.attachments.view(deps.attachments.stored(found), readerOf(deps));
  return show(file.path, file.mimeType, view, deps.allowance);
}

async function inline(deps: ContentDeps, part: InlineFile): Promise<UserContent> {
  const name = part.filename ?? 'unnamed';
  const bytes = readDataUrl(part.url);
  // The API refuses unreadable URLs. If one is stored nevertheless, it must not fail every turn of its thread.
  if (bytes === undefined) {
    return show(name, part.mediaType, { kind: 'absent', why: 'its data: URL cannot be read' }, deps.allowance);
  }
  const source: FileSource = {
    key: createHash('sha256').update(part.url).digest('hex'),
    // The bytes decide: a provider refuses the whole request over one invalid picture.
    contentType: await detectContentType(bytes.subarray(0, sampleBytes), part.filename ?? ''),
    size: bytes.length,
    read: async (range) => (range === undefined ? bytes : bytes.subarray(range.start, range.end + 1)),
  };
  const view = await deps.attachments.view(source, readerOf(deps));
  return show(name, part.mediaType, view, deps.allowance);
}

function readerOf({ spaceId, model }: ContentDeps) {
  return { spaceId, model: model.capabilities, maxImageBytes: maxImageBytesOf[model.adapter] };
}

function show(name: string, contentType: string, view: FileView, allowance: FileAllowance): UserContent {
  const say = (text: string): UserContent[number] => ({ type: 'text', text, ...aside });
  if (view.kind === 'absent') return [say(`[Attached file: ${name} (${contentType}), not shown: ${view.why}]`)];
  if (view.kind === 'text') return [say(textOf(name, view, allowance))];
  if (view.base64.length > allowance.seenCharacters) {
    return [say(`[Attached file: ${name} (${contentType}), not shown again: later files take its place]`)];
  }
  allowance.seenCharacters -= view.base64.length;
  const { mediaType, base64 } = view;
  const filename = name.split('/').at(-1);
  return [say(`[Attached file: ${name}]`), { type: 'file', mediaType, filename, data: { type: 'data', data: base64 } }];
}

/** The text, cut to its budget, with a mark that says how much is missing. */
function textOf(name: string, view: Extract<FileView, { kind: 'text' }>, allowance: FileAllowance): string {
  const kept = firstOf(view.text, charactersFor(allowance.textTokens, view.text)).toWellFormed();
  allowance.textTokens = Math.max(0, allowance.textTokens - tokensOfText(kept));
  const isCut = kept.length < view.text.length || view.hasMore;
  const pages = view.pageCount === undefined ? '' : ` of a document of ${view.pageCount} pages`;
  const mark = isCut ? `\n[… cut here: these are the first ${kept.length} characters${pages}]` : '';
  return `[Attached file: ${name}]\n${kept}${mark}\n[End of ${name}]`;
}
